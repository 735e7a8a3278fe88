#include "asterism/precond/direct/dense_inverse.kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/direct/lapack.hpp"

// LAPACK's matrices are column-major: there A^T is what A is here, and so are their inverses.
namespace asterism::precond::kernel {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

template <class T>
class Square {
 public:
  Square(int n, T* a) : n_(std::size_t(n)), a_(a) {}
  T& operator()(std::size_t i, std::size_t j) const { return a_[i * n_ + j]; }
  std::size_t size() const { return n_; }
  /// The largest sum of magnitudes in a row.
  double norm() const {
    double most = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n_; ++j) sum += double(magnitude((*this)(i, j)));
      most = std::max(most, sum);
    }
    return most;
  }
  void scale(std::vector<double> const& rows, std::vector<double> const& columns) const {
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j) (*this)(i, j) = (*this)(i, j) * T(rows[i]) * T(columns[j]);
  }

 private:
  std::size_t n_;
  T* a_;
};

/// About 1 / x, and a power of two, so that scaling rounds nothing.
double about_inverse(double x) { return x > 0 && std::isfinite(x) ? std::exp2(std::clamp(-std::round(std::log2(x)), -500.0, 500.0)) : 1; }

/// Up to the rounding of a triple product, with a positive diagonal.
template <class T>
bool is_hermitian_with_positive_diagonal(Square<T> const& A) {
  std::vector<double> root(A.size());
  for (std::size_t i = 0; i < A.size(); ++i) {
    double const d = double(real(A(i, i)));
    if (!(d > 0) || std::abs(double(imag(A(i, i)))) > 1e-13 * d) return false;
    root[i] = std::sqrt(d);
  }
  for (std::size_t i = 0; i < A.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (!(double(magnitude(A(i, j) - conj(A(j, i)))) <= 1e-13 * root[i] * root[j])) return false;
  return true;
}

template <class T>
void mirror(Square<T> const& A) {  // LAPACK's lower triangle is the upper one here
  for (std::size_t i = 0; i < A.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) A(i, j) = conj(A(j, i));
}

/// What is left of A when the first `rank` pivots are eliminated, as the factors of pstrf have it, is zero up to rounding: A has no
/// negative direction that ended the factorisation.
template <class T>
bool rest_is_zero(Square<T> const& A, std::vector<T> factors, std::vector<int> const& order, int rank, double tolerance) {
  int const n = int(A.size()), rest = n - rank;
  auto* const below = factors.data() + rank;                                                // rows of L behind the rank
  auto* const S = factors.data() + std::size_t(rank) * std::size_t(n) + std::size_t(rank);  // its place in the same array
  for (int j = 0; j < rest; ++j)
    for (int i = 0; i < rest; ++i)
      S[std::size_t(j) * std::size_t(n) + std::size_t(i)] =
          A(std::size_t(order[std::size_t(rank + j)] - 1), std::size_t(order[std::size_t(rank + i)] - 1));
  lapack::subtract_product('C', rest, rest, rank, below, below, S, n);
  for (int j = 0; j < rest; ++j)
    for (int i = 0; i < rest; ++i)
      if (!(double(magnitude(S[std::size_t(j) * std::size_t(n) + std::size_t(i)])) <= tolerance)) return false;
  return true;
}

/// By Cholesky factors; where A is singular to rounding, the inverse of a block that is not, found by pivots. False: A has negative
/// directions, and is as it was. A: scaled to a diagonal of ones, about.
template <class T>
bool invert_positive(Square<T> const& A, double noise, Inversion& found) {
  int const n = int(A.size());
  auto const count = A.size() * A.size();
  mirror(A);
  double const norm = A.norm();
  auto* const a = &A(0, 0);
  std::vector<T> inverse(a, a + count);
  Square<T> const X(n, inverse.data());
  if (lapack::potrf(n, inverse.data(), n) == 0 && lapack::potri(n, inverse.data(), n) == 0) {
    mirror(X);
    found.condition = norm * X.norm();
    if (found.condition * n * eps * noise < 1) {
      std::copy(inverse.begin(), inverse.end(), a);
      return true;
    }
  }
  std::copy_n(a, count, inverse.begin());
  std::vector<int> order(A.size());
  std::vector<double> work(2 * A.size());
  double const tolerance = 2 * n * eps * noise;
  int const rank = lapack::pstrf(n, inverse.data(), order.data(), tolerance, work.data());
  if (rank < n && !rest_is_zero(A, inverse, order, rank, 10 * tolerance)) return false;
  if (rank > 0 && lapack::potri(rank, inverse.data(), n) != 0) return false;
  std::fill_n(a, count, T(0));
  for (int i = 0; i < rank; ++i)
    for (int j = i; j < rank; ++j) {
      auto const row = std::size_t(order[std::size_t(i)] - 1), column = std::size_t(order[std::size_t(j)] - 1);
      A(row, column) = X(std::size_t(i), std::size_t(j));
      A(column, row) = conj(A(row, column));
    }
  found = {norm * A.norm(), n - rank};
  return true;
}

template <class T>
void invert_general(Square<T> const& A, double noise, Inversion& found) {
  int const n = int(A.size());
  double const norm = A.norm();
  auto* const a = &A(0, 0);
  std::vector<int> pivots(A.size());
  lapack::getrf(n, n, a, n, pivots.data());
  for (std::size_t i = 0; i < A.size(); ++i)
    if (!(double(magnitude(A(i, i))) > n * eps * noise)) {  // an enormous pivot takes its direction out
      A(i, i) = T(1e30);
      ++found.left_out;
    }
  std::vector<T> work(A.size() * 64);
  lapack::getri(n, a, pivots.data(), work.data(), int(work.size()));
  found.condition = norm * A.norm();
}

/// Directions that are taken out of a matrix before it is inverted, and out of the inverse: each has a value beside zero there.
template <class T>
class Deflation {
 public:
  Deflation(Square<T> const& A, NullVectors<T> const& null) : A_(A) {
    if (null.columns == 0) return;
    std::vector<std::vector<std::size_t>> rows(A.size());
    for (std::size_t i = 0; i < A.size(); ++i) rows[std::size_t(null.parts[i])].push_back(i);
    for (auto const& r : rows)
      if (!r.empty()) add(r, null);
  }
  /// A with the directions' values instead of about zero.
  void take_out() const {
    for (auto const& d : directions_) {
      // (1 - v v^H) A (1 - v v^H), a side after the other
      for (auto const i : d.rows) {
        T sum(0);
        for (std::size_t k = 0; k < d.rows.size(); ++k) sum += A_(i, d.rows[k]) * d.v[k];
        for (std::size_t k = 0; k < d.rows.size(); ++k) A_(i, d.rows[k]) -= sum * conj(d.v[k]);
      }
      for (auto const j : d.rows) {
        T sum(0);
        for (std::size_t k = 0; k < d.rows.size(); ++k) sum += conj(d.v[k]) * A_(d.rows[k], j);
        for (std::size_t k = 0; k < d.rows.size(); ++k) A_(d.rows[k], j) -= d.v[k] * sum;
      }
      add(d, d.value);
    }
  }
  void take_out_of_inverse() const {
    for (auto const& d : directions_) add(d, -1 / d.value);
  }
  int count() const { return int(directions_.size()); }

 private:
  struct Direction {
    std::vector<std::size_t> const rows;
    std::vector<T> v;  // of length 1
    double value;
  };
  void add(Direction const& d, double value) const {
    for (std::size_t k = 0; k < d.rows.size(); ++k)
      for (std::size_t l = 0; l < d.rows.size(); ++l) A_(d.rows[k], d.rows[l]) += T(value) * d.v[k] * conj(d.v[l]);
  }
  /// Each null vector on the rows of one part, where it is one of that part too.
  void add(std::vector<std::size_t> const& rows, NullVectors<T> const& null) {
    auto const first = directions_.size();
    double diagonal = 0;
    for (auto const i : rows) diagonal += double(magnitude(A_(i, i))) / double(rows.size());
    for (int c = 0; c < null.columns; ++c) {
      std::vector<T> v;
      for (auto const i : rows) v.push_back(null.values[i * std::size_t(null.columns) + std::size_t(c)]);
      double const before = length(v);
      for (auto d = first; d < directions_.size(); ++d) {
        T along(0);
        for (std::size_t k = 0; k < v.size(); ++k) along += conj(directions_[d].v[k]) * v[k];
        for (std::size_t k = 0; k < v.size(); ++k) v[k] -= along * directions_[d].v[k];
      }
      double const now = length(v);
      if (!(now > 1e-8 * before)) continue;
      double most = 0, largest = 0;
      for (std::size_t k = 0; k < v.size(); ++k) v[k] = v[k] * T(1 / now), largest = std::max(largest, double(magnitude(v[k])));
      for (auto const i : rows) {
        T sum(0);
        for (std::size_t k = 0; k < rows.size(); ++k) sum += A_(i, rows[k]) * v[k];
        most = std::max(most, double(magnitude(sum)));
      }
      if (most <= null.tolerance * null.scale * largest)
        directions_.push_back({rows, std::move(v), diagonal > 1e-9 * null.scale ? diagonal : null.scale});
    }
  }
  static double length(std::vector<T> const& v) {
    double sum = 0;
    for (auto const& x : v) sum += double(real(x * conj(x)));
    return std::sqrt(sum);
  }
  Square<T> const& A_;
  std::vector<Direction> directions_;
};

}  // namespace

template <class T>
Inversion invert(int n, T* a, double noise, NullVectors<T> const& null) {
  Inversion found;
  if (n == 0) return found;
  Square<T> const A(n, a);
  Deflation<T> const known(A, null);
  known.take_out();
  std::vector<double> rows(A.size()), columns(A.size());
  bool done = false;
  if (is_hermitian_with_positive_diagonal(A)) {
    for (std::size_t i = 0; i < A.size(); ++i) rows[i] = about_inverse(std::sqrt(double(real(A(i, i)))));
    columns = rows;
    A.scale(rows, columns);
    done = invert_positive(A, noise, found);
  }
  if (!done) {
    found = {};
    std::vector<double> row_scale(A.size()), column_scale(A.size());
    for (std::size_t i = 0; i < A.size(); ++i) {
      double most = 0;
      for (std::size_t j = 0; j < A.size(); ++j) most = std::max(most, double(magnitude(A(i, j))));
      row_scale[i] = about_inverse(most);
    }
    for (std::size_t j = 0; j < A.size(); ++j) {
      double most = 0;
      for (std::size_t i = 0; i < A.size(); ++i) most = std::max(most, double(magnitude(A(i, j))) * row_scale[i]);
      column_scale[j] = about_inverse(most);
    }
    A.scale(row_scale, column_scale);
    for (std::size_t i = 0; i < A.size(); ++i) {  // beside what was scaled before
      rows[i] = rows[i] > 0 ? rows[i] * row_scale[i] : row_scale[i];
      columns[i] = columns[i] > 0 ? columns[i] * column_scale[i] : column_scale[i];
    }
    invert_general(A, noise, found);
  }
  A.scale(columns, rows);
  known.take_out_of_inverse();
  found.left_out += known.count();
  return found;
}

template Inversion invert(int, double*, double, NullVectors<double> const&);
template Inversion invert(int, Complex<double>*, double, NullVectors<Complex<double>> const&);

}  // namespace asterism::precond::kernel
