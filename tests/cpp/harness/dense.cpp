#include "harness/dense.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace asterism::test {

using std::int64_t;

namespace {
/// c + a b of finite numbers: std::complex looks for infinities in each product, which takes most of the time.
inline Value fused(Value c, Value a, Value b) {
  return {c.real() + (a.real() * b.real() - a.imag() * b.imag()), c.imag() + (a.real() * b.imag() + a.imag() * b.real())};
}
}  // namespace

Dense Dense::identity(int64_t n) {
  Dense a(n, n);
  for (int64_t i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

Dense& Dense::operator*=(Value a) {
  for (auto& v : values_) v *= a;
  return *this;
}

Dense operator*(Value a, Dense b) { return b *= a; }

Dense operator+(Dense const& a, Dense const& b) {
  auto c = a;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.cols(); ++j) c(i, j) += b(i, j);
  return c;
}

Dense operator-(Dense const& a, Dense const& b) { return a + Value(-1) * b; }

Dense operator*(Dense const& a, Dense const& b) {
  Dense c(a.rows(), b.cols());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t k = 0; k < a.cols(); ++k) {
      auto const f = a(i, k);
      if (f == Value(0)) continue;
      for (int64_t j = 0; j < b.cols(); ++j) c(i, j) = fused(c(i, j), f, b(k, j));
    }
  return c;
}

Dense transposed(Dense const& a, bool conjugate) {
  Dense t(a.cols(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.cols(); ++j) t(j, i) = conjugate ? std::conj(a(i, j)) : a(i, j);
  return t;
}

Dense column(Dense const& a, int64_t j) {
  Dense c(a.rows(), 1);
  for (int64_t i = 0; i < a.rows(); ++i) c(i, 0) = a(i, j);
  return c;
}

Dense beside(Dense const& a, Dense const& b) {
  Dense c(b.rows(), a.cols() + b.cols());
  for (int64_t i = 0; i < b.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) c(i, j) = a(i, j);
    for (int64_t j = 0; j < b.cols(); ++j) c(i, a.cols() + j) = b(i, j);
  }
  return c;
}

double norm(Dense const& a) {
  double s = 0;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.cols(); ++j) s += std::norm(a(i, j));
  return std::sqrt(s);
}

Dense solved(Dense a, Dense b) {
  auto const n = a.rows();
  auto const swap_rows = [](Dense& m, int64_t i, int64_t k) {
    for (int64_t j = 0; j < m.cols(); ++j) std::swap(m(i, j), m(k, j));
  };
  for (int64_t k = 0; k < n; ++k) {
    auto pivot = k;
    for (auto i = k + 1; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    swap_rows(a, k, pivot);
    swap_rows(b, k, pivot);
    for (auto i = k + 1; i < n; ++i) {
      auto const f = -(a(i, k) / a(k, k));
      if (f == Value(0)) continue;
      for (auto j = k; j < n; ++j) a(i, j) = fused(a(i, j), f, a(k, j));
      for (int64_t j = 0; j < b.cols(); ++j) b(i, j) = fused(b(i, j), f, b(k, j));
    }
  }
  for (auto i = n; i-- > 0;) {
    for (auto k = i + 1; k < n; ++k)
      for (int64_t j = 0; j < b.cols(); ++j) b(i, j) = fused(b(i, j), -a(i, k), b(k, j));
    for (int64_t j = 0; j < b.cols(); ++j) b(i, j) /= a(i, i);
  }
  return b;
}

Dense chebyshev(Dense const& a, Dense const& d, double hi, int degree, double ratio) {
  double const lo = hi / ratio, theta = (hi + lo) / 2, delta = (hi - lo) / 2, sigma = theta / delta;
  auto const one = Dense::identity(a.rows());
  auto step = Value(1 / theta) * d, z = step;
  double rho = 1 / sigma;
  for (int k = 1; k < degree; ++k) {
    double const next = 1 / (2 * sigma - rho);
    step = Value(next * rho) * step + Value(2 * next / delta) * (d * (one - a * z));
    z = z + step;
    rho = next;
  }
  return z;
}

Dense richardson(Dense const& a, Dense const& m, int steps) {
  Dense x(a.rows(), a.cols());
  for (int k = 0; k < steps; ++k) x = x + m * (Dense::identity(a.rows()) - a * x);
  return x;
}

Dense orthonormal(Dense a) {
  for (int64_t j = 0; j < a.cols(); ++j) {
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < j; ++k) {
        Value s = 0;
        for (int64_t i = 0; i < a.rows(); ++i) s += std::conj(a(i, k)) * a(i, j);
        for (int64_t i = 0; i < a.rows(); ++i) a(i, j) -= s * a(i, k);
      }
    double const size = norm(column(a, j));
    for (int64_t i = 0; i < a.rows(); ++i) a(i, j) /= size;
  }
  return a;
}

Dense random(int64_t rows, int64_t cols, bool complex, unsigned seed) {
  std::mt19937 generator(seed);
  auto const number = [&] { return double(generator()) / 2147483648.0 - 1; };
  Dense a(rows, cols);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      double const re = number(), im = number();
      a(i, j) = {re, complex ? im : 0};
    }
  return a;
}

Dense sparse_general(int64_t n, bool complex, unsigned seed) {
  auto a = random(n, n, complex, seed);
  std::mt19937 generator(seed + 1);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j)
      if (i - j > 1 && generator() % 8 != 0) a(i, j) = a(j, i) = 0;
  for (int64_t i = 0; i < n; ++i) {
    double row = 0;
    for (int64_t j = 0; j < n; ++j) row += i == j ? 0 : std::abs(a(i, j));
    a(i, i) = {1.3 * row + 1, complex ? 0.3 : 0};
  }
  return a;
}

Dense sparse_positive(int64_t n, bool complex, unsigned seed) {
  auto a = sparse_general(n, complex, seed);
  auto const h = adjoint(a);
  return Value(0.5) * (a + h);
}

}  // namespace asterism::test
