#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asterism/la/formats/csr.hpp"
#include "asterism/precond/incomplete/pivots.hpp"

namespace asterism::precond::kernel {

/// f's values become those of its factors on its own places; the inverse pivots are on the diagonal.
template <class T>
void factor_on_places(std::string const& name, la::Csr const& f, std::vector<std::int64_t> const& diagonal, Pivots& pivots);

/// What ILUT keeps, and when it exchanges columns.
struct SizeRule {
  double drop;      ///< entries below this times the row's 2-norm are dropped
  double fill;      ///< most entries of a row of L, and of U, relative to half of A's row, or of the mean row if that is longer
  double pivoting;  ///< columns are exchanged if the diagonal is below this times the row's largest; 0: never
};
struct FactorsBySize {
  la::Csr rows;                         ///< L below, U above, inverse pivots on the diagonal
  std::vector<std::int64_t> diagonal;   ///< place of each row's
  std::vector<std::int32_t> column_at;  ///< A's column that became each; empty if none was exchanged
};
/// ILUT, Saad (1994; 2003, alg. 10.6), and with pivoting ILUTP (2003, sec. 10.4.4). a has a full diagonal.
template <class T>
FactorsBySize factor_by_size(la::Csr const& a, SizeRule const& rule, Pivots& pivots);

}  // namespace asterism::precond::kernel
