// Sparse factors of a square matrix that this process has whole: LU, Cholesky, or L D L^H.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "asterism/direct/factor_options.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::direct {

struct FactorInfo {
  FactorPrediction predicted;
  std::int64_t entries = 0;     ///< of the factors, zeros in supernodes counted
  std::int64_t delayed = 0;     ///< pivots that went to the front of their parent, since they were too small in their own
  std::int64_t replaced = 0;    ///< pivots at rounding level that were replaced; more than 0: singular to working precision
  std::int64_t two_by_two = 0;  ///< blocks of two in D
  std::int64_t negative = 0;    ///< negative eigenvalues (Hermitian kinds): the inertia
  double growth = 1;            ///< largest entry of the factors beside the largest of the scaled matrix
  std::int32_t supernodes = 0, largest_front = 0;
  bool matched = false;
  std::string ordering;  ///< natural, rcm, amd or nd
};

/// B = the scaled and permuted matrix, B[k, l] = row_scale[i] a_ij column_scale[j] for i = rows[k], j = columns[l]; B = L U, with L unit
/// lower triangular. L D L^H is given as U = D L^H; Cholesky's L L^H as it is, U = L^H. Blocks of two in D make U upper Hessenberg.
struct ExplicitFactors {
  la::Csr L, U;
  std::vector<std::int32_t> rows, columns;
  std::vector<double> row_scale, column_scale;
};

/// Factors by the multifrontal method (Duff and Reid 1983), of A + A^T's pattern after rows were matched to columns (Duff and Koster 2001).
/// Fronts pivot by a threshold among their own rows; pivots that are too small are delayed to the parent, so that the factors are as stable
/// as with partial pivoting. Subtrees run on the threads of the process, products within large fronts too. The bits of the factors do
/// not depend on the number of threads.
class Factors {
 public:
  /// Errors: shape (not square), value (structurally singular, with its rank and an empty row or column by number; singular with replaced
  /// pivots is no error; not positive definite: breakdown, with the row), memory (predicted bytes), interrupt. NaN and infinity: value.
  Factors(la::Csr const& a, FactorOptions const& options);
  ~Factors();
  Factors(Factors&&) noexcept;
  Factors& operator=(Factors&&) noexcept;

  /// New numbers for the same pattern: orderings, matching and symbolic phase are kept. False, and nothing is changed, if the matching does
  /// not suit these values (a diagonal entry that is weak beside its row and column): make new factors.
  bool update(la::Csr const& a);

  /// b becomes A^-1 b, A^-T b ('T') or A^-H b ('C'). b: n x k numbers of the dtype, row-major. Several threads may call.
  /// Cost: each number of the factors is read once for up to 8 columns.
  void solve(char trans, std::int64_t k, void* b) const;

  std::int32_t size() const;
  Dtype dtype() const;
  FactorOptions const& options() const;
  FactorInfo const& info() const;
  std::size_t memory_bytes() const;
  /// "lu, 120 supernodes, 1.2e6 entries, matched, amd order".
  std::string describe() const;
  /// An estimate of ||B^-1||_1 ||B||_1 of the scaled matrix (Higham and Tisseur 2000); infinity: a pivot was replaced. Computed at the
  /// first call, by some solves.
  double condition() const;
  /// The same where it may be above the limit; 0 where two solves show that it is far below.
  double condition_beyond(double limit) const;
  /// Sign (or phase) and logarithm of the magnitude of A's determinant.
  struct Determinant {
    double re = 1, im = 0, log = 0;
  };
  Determinant determinant() const;
  /// Cost: time and memory of the factors.
  ExplicitFactors explicit_factors() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::direct
