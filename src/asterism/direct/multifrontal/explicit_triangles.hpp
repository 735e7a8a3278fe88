// L and U as sparse matrices, from the dense blocks that hold them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "asterism/direct/entry.hpp"
#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"
#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::direct {

/// Entries of L and U. Of L alone where U follows from it.
template <class T>
struct TriangleEntries {
  std::vector<Entry<T>> lower, upper;
  /// Zeros are left out but on the diagonal.
  void put_lower(std::int32_t i, std::int32_t j, T v) { put(lower, i, j, v); }
  void put_upper(std::int32_t i, std::int32_t j, T v) { put(upper, i, j, v); }

 private:
  static void put(std::vector<Entry<T>>& to, std::int32_t i, std::int32_t j, T v) {
    if (v != T(0) || i == j) to.push_back({i, j, v});
  }
};

/// Those of fronts. rows and columns: the places of the fronts' numbers.
template <class T>
void add_fronts(NumericFactors const& factors, std::span<std::int32_t const> rows, std::span<std::int32_t const> columns,
                TriangleEntries<T>& to);

/// An error of kind memory where L and U with so many entries do not fit into what the machine has.
void require_memory_for_triangles(std::string const& name, std::int64_t entries, Dtype dtype);

/// L and U from all entries, of L D L^H with D.
template <class T>
std::pair<la::Csr, la::Csr> triangles_of(FactorKind kind, std::int32_t n, TriangleEntries<T> const& entries,
                                         kernel::BlockDiagonal<T> const& d);

/// L and U of the scaled and permuted matrix, as ExplicitFactors says. Cost: time and memory of the factors.
std::pair<la::Csr, la::Csr> explicit_triangles(NumericFactors const& factors, std::int32_t n, Dtype dtype);

}  // namespace asterism::direct
