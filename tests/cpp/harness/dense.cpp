#include "harness/dense.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

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

la::Layout uneven(comm::Communicator const& comm, int64_t n) {
  std::vector<int64_t> offsets;
  for (int r = 0; r <= comm.size(); ++r) offsets.push_back(r <= 1 && comm.size() > 1 ? 0 : n * r * r / (comm.size() * comm.size()));
  return la::Layout::from_offsets(comm, offsets);
}

la::Matrix to_sparse(Dense const& a, la::Layout const& rows, la::Layout const& columns, Dtype dtype) {
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<int64_t> offsets{0}, cols;
    std::vector<T> values;
    for (auto i = rows.begin(); i < rows.end(); ++i) {
      for (int64_t j = 0; j < a.cols(); ++j)
        if (a(i, j) != Value(0) || i == j) cols.push_back(j), values.push_back(from_complex<T>(a(i, j)));
      offsets.push_back(int64_t(cols.size()));
    }
    return la::Matrix::from_rows<int64_t>(rows, columns, dtype, offsets, cols, values.data());
  });
}

namespace {
/// Each rank's (i, j, value), summed into a dense matrix on all.
struct Entry {
  int64_t i, j;
  Value v;
};
Dense summed(comm::Communicator const& comm, int64_t rows, int64_t cols, std::vector<Entry> const& mine) {
  auto const all = comm.all_gather_bytes(std::as_bytes(std::span<Entry const>(mine)));
  Dense a(rows, cols);
  auto const* const entries = reinterpret_cast<Entry const*>(all.data());
  for (std::size_t e = 0; e < all.size() / sizeof(Entry); ++e) a(entries[e].i, entries[e].j) += entries[e].v;
  return a;
}
}  // namespace

Dense to_dense(la::Matrix const& A) {
  auto const rows = A.to_rows();
  std::vector<Entry> mine;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < A.range().local_size(); ++i)
      for (auto p = rows.offsets[std::size_t(i)]; p < rows.offsets[std::size_t(i) + 1]; ++p)
        mine.push_back({A.range().begin() + i, rows.columns[std::size_t(p)], to_complex(rows.values.as<T>()[p])});
  });
  return summed(A.comm(), A.global_rows(), A.global_cols(), mine);
}

la::Vector to_vector(Dense const& x, la::Layout const& layout, Dtype dtype) {
  la::Vector v(layout, dtype, x.cols());
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const to = v.host<T>();
    for (int64_t i = 0; i < layout.local_size(); ++i)
      for (int64_t j = 0; j < x.cols(); ++j) to[std::size_t(i * x.cols() + j)] = from_complex<T>(x(layout.begin() + i, j));
  });
  return v;
}

Dense to_dense(la::Vector const& x) {
  std::vector<Entry> mine;
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const from = x.host<T>();
    for (int64_t i = 0; i < x.local_size(); ++i)
      for (int64_t j = 0; j < x.columns(); ++j)
        mine.push_back({x.layout().begin() + i, j, to_complex(from[std::size_t(i * x.columns() + j)])});
  });
  return summed(x.comm(), x.global_size(), x.columns(), mine);
}

Dense columns_of(la::Operator const& op) {
  auto const x = to_vector(Dense::identity(op.domain().global_size()), op.domain(), op.dtype());
  la::Vector y(op.range(), op.dtype(), x.columns());
  op.apply(x, y);
  return to_dense(y);
}

Dense columns_of_transpose(la::Operator const& op, bool conjugate) {
  auto const x = to_vector(Dense::identity(op.range().global_size()), op.range(), op.dtype());
  la::Vector y(op.domain(), op.dtype(), x.columns());
  op.apply_transpose(x, y, conjugate);
  return to_dense(y);
}

solve::Solver solver(la::Matrix const& A, std::string const& options) {
  Options o;
  o.parse(options, OptionLayer::call, "test");
  return solve::Solver(A, o);
}

std::string error_of(std::function<void()> const& f) {
  try {
    f();
  } catch (Error const& e) {
    return e.what();
  }
  return "";
}

}  // namespace asterism::test
