// Entries of A, scaled and permuted, where they are factored.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/direct/distributed/distribution.hpp"
#include "asterism/direct/distributed/parcels.hpp"
#include "asterism/direct/symbolic/analysis.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::direct {

/// Of each row and column of A its number in B.
struct Numbers {
  std::vector<std::int32_t> rows, columns;
};

template <class T>
struct DealtEntries {
  std::vector<Entry<T>> forest, top;  ///< with this rank's numbers, and with numbers of the top
  double largest = 0, norm = 0;       ///< the largest entry of B, and its 1-norm
};

/// Of Hermitian kinds the upper triangle alone. Memory: a number for each column of A besides. Collective.
template <class T>
DealtEntries<T> deal_entries(la::Matrix const& A, Analysis const& analysis, Numbers const& numbers, Distribution const& parts,
                             ProcessGrid const& grid);

/// Of LU: whether the largest entries of all rows, as they are scaled, are alike for these values too, and so the entries on the diagonal.
/// No NaN suits. Collective.
bool scales_suit(la::Matrix const& A, Analysis const& analysis, Numbers const& numbers);

}  // namespace asterism::direct
