// What the factors of a sparse matrix will look like: the elimination tree, supernodes, and the work and memory that they take.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/la/formats/csr.hpp"

namespace asterism::direct {

/// Columns next to each other that have one pattern below their diagonal block: columns [starts[s], starts[s + 1]) of the permuted
/// matrix, and rows(s), all of which are below. Children come before their parent.
struct Supernodes {
  std::vector<std::int32_t> starts;        ///< count + 1
  std::vector<std::int32_t> parent;        ///< -1: none
  std::vector<std::int64_t> row_offsets;   ///< count + 1
  std::vector<std::int32_t> row_indices;   ///< ascending, of the permuted matrix
  std::int32_t count() const { return std::int32_t(parent.size()); }
  std::int32_t width(std::int32_t s) const { return starts[std::size_t(s) + 1] - starts[std::size_t(s)]; }
  std::int32_t below(std::int32_t s) const { return std::int32_t(row_offsets[std::size_t(s) + 1] - row_offsets[std::size_t(s)]); }
  std::span<std::int32_t const> rows(std::int32_t s) const {
    return std::span(row_indices).subspan(std::size_t(row_offsets[std::size_t(s)]), std::size_t(below(s)));
  }
};

/// Of Cholesky factors; those of lu are twice that.
struct Symbolic {
  std::int32_t n = 0;
  std::vector<std::int32_t> order;  ///< order[k]: the row and column that become the k-th
  Supernodes supernodes;
  std::int64_t entries = 0;         ///< of L with its diagonal, without the zeros that supernodes store
  std::int64_t stored = 0;          ///< places of all panels, (width + below) x width each
  double flops = 0;                 ///< of Cholesky's factorisation in real arithmetic
  std::int32_t levels = 0;          ///< of the tree of supernodes
  std::int64_t stack[2] = {0, 0};   ///< places of the update matrices that are there at once, on either end of the stack
};

/// For the pattern of A + A^T in the order given, which is refined to a postorder of the elimination tree. Liu (1990): the tree; Gilbert, Ng
/// and Peyton (1994): column counts in nearly O(nnz); Ashcraft and Grimes (1989): supernodes that merge where few zeros are stored for it.
Symbolic analyse(la::Csr const& a, std::vector<std::int32_t> order);

}  // namespace asterism::direct
