// What is known of the factors of a direct method.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace asterism::direct {
struct ExplicitFactors;
}

namespace asterism::precond {

struct FactorFacts {
  std::string kind;  ///< lu, cholesky, or ldl
  bool dense = false, matched = false;
  std::string ordering;
  std::string by;  ///< another library that made them, with its version; empty: this one
  std::int64_t entries = 0, bytes = 0;
  std::int64_t delayed = 0, replaced = 0, two_by_two = 0;
  std::int64_t negative = 0;                   ///< negative eigenvalues, of cholesky and ldl
  std::int64_t zero = 0;                       ///< eigenvalues that are zero: pivots that were replaced, or a null space that is known
  double growth = 1;                           ///< NaN: another library made the factors, and does not say
  double condition = 1;                        ///< estimated, in the 1-norm, of the matrix as it was scaled before
  std::array<double, 3> determinant{1, 0, 0};  ///< re and im of its sign, and the logarithm of its size
};

/// What a direct method tells of its factors. Nothing has a default, so that no method, and nothing around one, leaves a part out.
class DirectFactors {
 public:
  /// Complete on rank 0. Collective.
  virtual FactorFacts facts() const = 0;
  /// How many of so many pivots nearest to zero are negative; on the rank that knows.
  virtual std::int64_t negative_among_least(std::int64_t count) const = 0;
  /// Pivots at rounding level that were replaced; on the rank that knows.
  virtual std::int64_t replaced_pivots() const = 0;
  /// Of a sparse method: L, U and how the matrix was permuted and scaled, whole on every rank; nothing of others. Collective.
  virtual std::shared_ptr<direct::ExplicitFactors> explicit_factors() const = 0;

 protected:
  ~DirectFactors() = default;
};

}  // namespace asterism::precond
