// Entries that a file holds more than once.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "asterism/la/matrix.hpp"

namespace asterism::la::io {

/// A was assembled from `put` entries of this rank, mirror images of a symmetric file included. Where that is more than A has, the entries
/// of the file are looked at again: each_entry(f) calls f(row, column) for those that this rank read, as they stand there but counted from
/// 0. A pair (i, j), (j, i) in a file of one triangle is an error that names the first; what merely comes several times was summed, and a
/// warning says so. Collective.
void check_repeated_entries(std::string const& path, Matrix const& A, std::int64_t put, bool one_triangle,
                            std::function<void(std::function<void(std::int64_t, std::int64_t)> const&)> const& each_entry);

}  // namespace asterism::la::io
