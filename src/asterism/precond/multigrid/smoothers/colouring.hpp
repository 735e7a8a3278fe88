// Rows in colours, so that no two of a colour have an entry in each other's row.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::precond {

/// The colour of each of my rows, from 0 on without gaps over all ranks: the smallest that no neighbour has which is before it in the order
/// of hashes of the global indices (Jones and Plassmann 1993). The same on any number of ranks. An entry in either row makes neighbours;
/// `symmetric`: the pattern is, so that the transpose need not be looked at. As many rounds, each a message to the neighbours, as the
/// longest path that descends in that order: some log n. Collective.
std::vector<std::int32_t> colours_of(la::Matrix const& A, bool symmetric);

}  // namespace asterism::precond
