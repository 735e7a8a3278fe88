// A row for each column, so that the product of the entries there is as large as can be, and scalings that make those entries 1.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

/// With r = row_scale and c = column_scale, |r_i a_ij c_j| is at most 1, and 1 where column_of_row[i] is j, up to rounding. Rows and
/// columns without a partner, of a matrix that is structurally singular or not square, are scaled so that nothing is above 1.
struct Matching {
  std::vector<std::int32_t> column_of_row, row_of_column;  ///< -1: none
  std::vector<double> row_scale, column_scale;
  std::int32_t structural_rank = 0;                ///< pairs; no values at these places make a matrix of a higher rank
  std::int32_t empty_row = -1, empty_column = -1;  ///< the first without an entry that is not zero; -1: none
  std::int64_t searched = 0;                       ///< entries that were looked at for paths
};

/// Maximum product transversal: of the matchings with most pairs one with the largest product of magnitudes. Duff and Koster (2001), the
/// fifth of MC64's tasks: shortest augmenting paths by Dijkstra's algorithm on logarithms, after a start that finds most pairs by looking
/// one step ahead. O(rows + columns) memory beside a; O(n nnz log n) at worst, mostly a few passes over the entries. After as much as
/// twenty passes the rows that are left bid for columns (Jonker and Volgenant 1987), and the searches go on from there. Entries that are
/// zero count as absent. Looks for Ctrl-C. An error if an entry is NaN or infinite.
Matching maximum_product_matching(Csr const& a);

}  // namespace asterism::la
