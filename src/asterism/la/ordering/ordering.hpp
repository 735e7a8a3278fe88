// Symmetric permutations that make factors small or near the diagonal. They look at the pattern of A + A^T.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

/// order[k]: the row and column that become the k-th. Reverse Cuthill-McKee (Cuthill and McKee 1969; George and Liu 1981), each component
/// from an end that George and Liu's search finds: a small profile. O(nnz log(entries of a row)). Looks for Ctrl-C.
std::vector<std::int32_t> reverse_cuthill_mckee(Csr const& a);

/// Approximate minimum degree (Amestoy, Davis and Duff 1996): little fill. A quotient graph in place, with elements absorbed, alike rows
/// merged, and rows with more than 10 sqrt(n) entries last. Looks for Ctrl-C.
std::vector<std::int32_t> approximate_minimum_degree(Csr const& a);

}  // namespace asterism::la
