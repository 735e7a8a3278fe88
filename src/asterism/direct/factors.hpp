// Sparse direct factors of a square matrix in one process: L L^H, L D L^H, L D L^T or L U.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "asterism/direct/symbolic.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::direct {

enum class Kind : std::uint8_t {
  lu,         ///< any square matrix
  cholesky,   ///< Hermitian and positive definite
  hermitian,  ///< L D L^H of a Hermitian matrix
  symmetric,  ///< L D L^T of a matrix that equals its transpose; for real ones the same as hermitian
};

struct FactorOptions {
  std::string ordering = "auto";  ///< amd, nd, rcm, natural; auto: nd where METIS is found and the matrix is large, else amd
  /// Partial pivoting within supernodes: a pivot is at least so large beside its column's other entries. Columns without one wait for
  /// the parent supernode (Duff and Reid 1983). 0: every pivot is taken, 1: partial pivoting proper.
  double pivot_threshold = 0.01;
  bool match = true;           ///< lu: rows by the maximum product matching; off: as they are
  bool scale = true;           ///< rows and columns by powers of two that the matching finds; cholesky never scales
  double memory_limit = 0;     ///< bytes; more are refused before they are taken. 0: what the machine has left
};

enum class Operation : std::uint8_t { none, transpose, adjoint };

/// What there is to say about factors.
struct FactorInfo {
  Kind kind = Kind::lu;
  std::string ordering;                ///< that was used
  std::int32_t rows = 0, supernodes = 0, levels = 0;
  std::int64_t entries = 0;            ///< of L and U, the diagonal once, as predicted without delays
  std::int64_t stored = 0;             ///< numbers that are kept
  double flops = 0;                    ///< as predicted, in real arithmetic of the dtype
  std::size_t bytes = 0, peak_bytes = 0;  ///< of the factors; with the updates while they are made, as predicted
  std::int64_t delayed = 0;            ///< pivots that had to wait for a parent
  std::int64_t replaced = 0;           ///< pivots that were zero up to rounding and were replaced: the matrix is singular to working precision
  std::int32_t first_replaced = -1;    ///< a column of A of one of those
  double growth = 0;                   ///< largest entry of U (L D) over the largest of the scaled matrix
  std::int64_t positive = 0, negative = 0, zero = 0;  ///< eigenvalues by their sign: cholesky, and ldlt of Hermitian matrices
  double log_abs_determinant = 0;      ///< natural logarithm; -infinity where a pivot was replaced
  std::complex<double> sign_of_determinant = 1;
};

/// Columns of L or U: rows ascend.
struct CscFactor {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> rows;
  la::Array values;  ///< of the factors' dtype
};

/// Pr R A C Pc = L U, where row i of R A becomes row perm_r[i], and column perm_c[j] of A C becomes column j, as SciPy's splu has it.
/// cholesky: L L^H; else L D L^H (L^T) with D in `u`, in blocks of 1 and 2.
struct ExplicitFactors {
  CscFactor l, u;
  std::vector<std::int32_t> perm_r, perm_c;
  std::vector<double> row_scale, column_scale;
};

/// Multifrontal (Duff and Reid 1983; Liu 1992). The set-up is of the dtype of A, by the process's team of threads; its bits do not depend
/// on their number. Heeds Ctrl-C and time limits.
class Factors {
 public:
  /// Errors: not square (shape); NaN or infinite (value); structurally singular, with its rank and an empty row or column (value); not
  /// positive definite, with a column, for cholesky (breakdown); too much memory, with the figure (memory). Pivots that are zero up to
  /// rounding are replaced by sqrt(eps) |A| and counted: whoever solves checks the residual.
  /// cholesky, hermitian and symmetric read the entries of both triangles of A, but use those of one.
  Factors(la::Csr const& a, Kind kind, FactorOptions const& options = {});
  ~Factors();
  Factors(Factors&&) noexcept;
  Factors& operator=(Factors&&) noexcept;

  /// New values in the same pattern: orders, scalings and the symbolic phase are kept. An error of kind value if the pattern differs.
  void update(la::Csr const& a);
  /// The same with orders and scalings made anew.
  void renew(la::Csr const& a);

  /// X = A^-1 B, A^-T B or A^-H B, for row-major arrays of rows x columns numbers of the factors' dtype. b may be x. By several threads at
  /// once if need be; the bits depend neither on threads nor on how many columns there are beside one.
  void solve(Operation op, std::int64_t columns, void const* b, void* x) const;

  Dtype dtype() const;
  FactorInfo const& info() const;
  /// An estimate of |A|_1 |A^-1|_1, mostly exact, at least a third: Hager (1984) and Higham (1988), some 5 solves. Infinite where a pivot
  /// was replaced.
  double condition() const;
  ExplicitFactors explicit_factors() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::direct
