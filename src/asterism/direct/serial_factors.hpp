// What factors of a square matrix that this process has whole can do, whoever made them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
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
  bool matched = false, scaled_by_matching = false;
  std::string ordering;  ///< natural, rcm, amd, nd, or what another library calls its own
  std::string by;        ///< the library that made them, with its version; empty: this one
};

/// B = the scaled and permuted matrix, B[k, l] = row_scale[i] a_ij column_scale[j] for i = rows[k], j = columns[l]; B = L U, with L unit
/// lower triangular. L D L^H is given as U = D L^H; Cholesky's L L^H as it is, U = L^H. Blocks of two in D make U upper Hessenberg.
struct ExplicitFactors {
  la::Csr L, U;
  std::vector<std::int32_t> rows, columns;
  std::vector<double> row_scale, column_scale;
};

/// Sign (or phase) and logarithm of the magnitude.
struct Determinant {
  double re = 1, im = 0, log = 0;
};

class SerialFactors {
 public:
  virtual ~SerialFactors() = default;

  /// New numbers for the same pattern: orderings and symbolic phase are kept. False, and nothing is changed, if they do not suit these
  /// values: make new factors.
  virtual bool update(la::Csr const& a) = 0;
  /// b becomes A^-1 b, A^-T b ('T') or A^-H b ('C'). b: n x k numbers of the dtype, row-major. Several threads may call.
  virtual void solve(char trans, std::int64_t k, void* b) const = 0;

  virtual FactorInfo const& info() const = 0;
  virtual std::size_t memory_bytes() const = 0;
  /// An estimate of ||B^-1||_1 ||B||_1 of the scaled matrix (Higham and Tisseur 2000); infinity: a pivot was replaced. Computed at the
  /// first call, by some solves.
  virtual double condition() const = 0;
  /// The same where it may be above the limit; 0 where two solves show that it is far below.
  virtual double condition_beyond(double limit) const = 0;
  /// Of A.
  virtual Determinant determinant() const = 0;
  /// How many of the `count` eigenvalues of D that are nearest to zero are negative, where D is stored. Those of a null space are rounding.
  virtual std::int64_t negative_among_least(std::int64_t) const { return 0; }
  /// Nothing where they are not given. Cost: time and memory of the factors.
  virtual std::shared_ptr<ExplicitFactors> explicit_factors() const { return nullptr; }

 protected:
  SerialFactors() = default;
  SerialFactors(SerialFactors const&) = default;
  SerialFactors(SerialFactors&&) = default;
  SerialFactors& operator=(SerialFactors const&) = default;
  SerialFactors& operator=(SerialFactors&&) = default;
};

}  // namespace asterism::direct
