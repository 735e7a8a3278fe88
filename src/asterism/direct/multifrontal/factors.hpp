// Sparse factors of a square matrix that this process has whole: LU, Cholesky, or L D L^H.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "asterism/direct/serial_factors.hpp"

namespace asterism::direct {

struct NumericFactors;

/// Of pivots in their order: where rows and columns of each are in the right-hand side and in the answer, and their scales by those places.
struct PivotPlaces {
  std::vector<std::int32_t> rows, columns;
  std::vector<double> row_scale, column_scale;
};

/// Factors by the multifrontal method (Duff and Reid 1983), of A + A^T's pattern after rows were matched to columns (Duff and Koster 2001).
/// Fronts pivot by a threshold among their own rows; pivots that are too small are delayed to the parent, so that the factors are as stable
/// as with partial pivoting. Subtrees run on the threads of the process, products within large fronts too. The bits of the factors do
/// not depend on the number of threads.
class Factors final : public SerialFactors {
 public:
  /// Errors: shape (not square), value (structurally singular, with its rank and an empty row or column by number; singular with replaced
  /// pivots is no error; not positive definite: breakdown, with the row), memory (predicted bytes), interrupt. NaN and infinity: value.
  Factors(la::Csr const& a, FactorOptions const& options);
  ~Factors() override;
  Factors(Factors&&) noexcept;
  Factors& operator=(Factors&&) noexcept;

  /// False if the matching does not suit these values (a diagonal entry that is weak beside its row and column).
  bool update(la::Csr const& a) override;

  /// Cost: each number of the factors is read once for up to 8 columns.
  void solve(char trans, std::int64_t k, void* b) const override;

  std::int32_t size() const;
  Dtype dtype() const;
  FactorOptions const& options() const;
  FactorInfo const& info() const override;
  std::size_t memory_bytes() const override;
  /// "lu, 120 supernodes, 1.2e6 entries, matched, amd order".
  std::string describe() const;
  double condition() const override;
  double condition_beyond(double limit) const override;
  Determinant determinant() const override;
  std::int64_t negative_among_least(std::int64_t count) const override;
  std::shared_ptr<ExplicitFactors> explicit_factors() const override;
  /// For solves elsewhere.
  NumericFactors const& numeric() const;
  PivotPlaces places() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::direct
