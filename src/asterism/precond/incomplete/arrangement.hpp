// How a block is arranged before it is factored: which row comes to which column's diagonal, how both are scaled, and in what order.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "asterism/base/options.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::precond {

/// B[k, l] = r_i a_ij c_j for i = rows[k] and j = columns[l]. An approximate inverse of A is that of B between a scaled gather and a scaled
/// scatter.
struct Arrangement {
  std::vector<std::int32_t> rows, columns;
  std::vector<double> row_factor, column_factor;  ///< of B's rows and columns; empty: 1
  bool matched = false;
  std::int32_t structural_rank = 0;  ///< if it is matched
  std::string ordering = "natural";

  la::Csr of(la::Csr const& a) const;
  /// ", matched, amd order".
  std::string describe() const;
  std::size_t memory_bytes() const;
};
using ArrangementPtr = std::shared_ptr<Arrangement const>;  ///< null: as it is

/// What options say of it: -pc_factor_matching and -pc_factor_mat_ordering_type.
struct ArrangementRule {
  enum class Matching { automatic, yes, no } matching;
  std::string ordering;  ///< auto, natural, rcm, amd, nd
  bool by_size;          ///< fill is kept by size, not by level
  bool keep_symmetric;   ///< A is Hermitian, and factors by level are to be so too unless its diagonal has zeros

  static OptionSpec matching_option();
  static std::vector<OptionSpec> options();
  /// definite: pivots are to be positive, so auto does not match.
  ArrangementRule(OptionReader& r, bool by_size, bool keep_symmetric, bool definite);
  bool wants_matching(la::Csr const& a) const;
  ArrangementPtr arrange(la::Csr const& a) const;
  /// Whether one that was made for other values at the same places suits these too. If it is matched: no entry of B's diagonal is small
  /// beside both its row and its column. Else: these values ask for no matching.
  bool suits(Arrangement const* made, la::Csr const& a) const;
};

}  // namespace asterism::precond
