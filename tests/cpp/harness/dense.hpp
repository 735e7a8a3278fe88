// Small dense matrices, whole on every rank: what sparse ones, methods and preconditioners are compared with.
#pragma once
#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "asterism/la/matrix.hpp"
#include "asterism/solve/solver.hpp"
#include "harness/repeats.hpp"

namespace asterism::test {

using Value = std::complex<double>;

inline std::vector<Dtype> const all_dtypes = {Dtype::float64, Dtype::float32, Dtype::complex128, Dtype::complex64};
/// Real and complex, single and double precision, or one under a sanitizer: for the i-th of many cases, which cover all dtypes together.
inline std::vector<Dtype> two_dtypes(std::size_t i) {
  if (sanitized) return {all_dtypes[i % 4]};
  return i % 2 == 0 ? std::vector{Dtype::float64, Dtype::complex64} : std::vector{Dtype::float32, Dtype::complex128};
}
/// Of a norm of a few hundred entries near 1.
inline double tolerance(Dtype d) { return real_of(d) == Dtype::float32 ? 2e-5 : 1e-12; }

class Dense {
 public:
  Dense() = default;
  Dense(std::int64_t rows, std::int64_t cols) : rows_(rows), cols_(cols), values_(std::size_t(rows * cols), Value(0)) {}
  static Dense identity(std::int64_t n);
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  Value& operator()(std::int64_t i, std::int64_t j) { return values_[std::size_t(i * cols_ + j)]; }
  Value operator()(std::int64_t i, std::int64_t j) const { return values_[std::size_t(i * cols_ + j)]; }
  Dense& operator*=(Value a);

 private:
  std::int64_t rows_ = 0, cols_ = 0;
  std::vector<Value> values_;
};

Dense operator+(Dense const& a, Dense const& b);
Dense operator-(Dense const& a, Dense const& b);
Dense operator*(Dense const& a, Dense const& b);
Dense operator*(Value a, Dense b);
Dense transposed(Dense const& a, bool conjugate);
inline Dense adjoint(Dense const& a) { return transposed(a, true); }
Dense column(Dense const& a, std::int64_t j);
/// Columns of both, side by side.
Dense beside(Dense const& a, Dense const& b);
/// Frobenius.
double norm(Dense const& a);
/// a^-1 b: Gaussian elimination with the largest pivot of each column.
Dense solved(Dense a, Dense b);
inline Dense inverse(Dense const& a) { return solved(a, Dense::identity(a.rows())); }
/// M of the polynomial of that degree in d a which is smallest on [hi / ratio, hi]: z = M b for d a z = d b.
Dense chebyshev(Dense const& a, Dense const& d, double hi, int degree, double ratio);
/// x after some steps of x += m (b - a x) from 0, for b = I.
Dense richardson(Dense const& a, Dense const& m, int steps);
/// Orthonormal columns of the span (modified Gram-Schmidt, twice).
Dense orthonormal(Dense a);

/// Entries in the square around 0, the same on all ranks.
Dense random(std::int64_t rows, std::int64_t cols, bool complex, unsigned seed);
/// Entries at places (i, j) with |i - j| <= 1 and some others, symmetric in their places; the diagonal outweighs a row.
Dense sparse_general(std::int64_t n, bool complex, unsigned seed);
/// The same, Hermitian and positive definite.
Dense sparse_positive(std::int64_t n, bool complex, unsigned seed);

/// n indices dealt unevenly: the first of several ranks has none, the last the most.
la::Layout uneven(comm::Communicator const& comm, std::int64_t n);
la::Matrix to_sparse(Dense const& a, la::Layout const& rows, la::Layout const& columns, Dtype dtype);
Dense to_dense(la::Matrix const& A);
la::Vector to_vector(Dense const& x, la::Layout const& layout, Dtype dtype);
Dense to_dense(la::Vector const& x);

/// What an operator does to the unit vectors, all of them as columns at once.
Dense columns_of(la::Operator const& op);
/// The same for its transpose or adjoint.
Dense columns_of_transpose(la::Operator const& op, bool conjugate);

solve::Solver solver(la::Matrix const& A, std::string const& options);

/// The text of the error that f throws; "" if it throws none.
std::string error_of(std::function<void()> const& f);

}  // namespace asterism::test
