// Rows of a Hermitian matrix that are to be one pivot of two: neighbours in the order, in one supernode.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/la/formats/csr.hpp"
#include "asterism/la/ordering/matching.hpp"

namespace asterism::direct {

/// Of each row its partner, or itself: along the cycles of a matching with the largest product, where an entry on the diagonal is small
/// beside the one that they have in common (Duff and Pralet 2005).
std::vector<std::int32_t> partners(la::Csr const& scaled, la::Matching const& found);

/// A pattern in which partners are one.
struct PairedPattern {
  la::Csr compressed;                 ///< a row for each pair, and for each row that is alone; no values
  la::Csr alike;                      ///< of the rows of A: partners have the same entries; no values
  std::vector<std::int32_t> members;  ///< of each compressed row its rows, at members[first[k]]
  std::vector<std::int32_t> first;
  PairedPattern(la::Csr const& a, std::span<std::int32_t const> partner);
  /// Of rows of A, from one of compressed rows.
  std::vector<std::int32_t> expanded(std::span<std::int32_t const> order) const;
};

}  // namespace asterism::direct
