// A block of a given pattern for tests of formats.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "asterism/la/formats/csr.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::test {

/// One of that pattern with entries of all sizes, or all 0.5.
inline la::Csr hashed(Dtype d, std::int32_t rows, std::int32_t cols, std::vector<std::int64_t> const& ptr,
                      std::vector<std::int32_t> const& col, bool same = false) {
  la::Csr a(d, rows, cols, std::int64_t(col.size()));
  std::copy(ptr.begin(), ptr.end(), a.row_offsets().begin());
  std::copy(col.begin(), col.end(), a.column_indices().begin());
  la::Vector values(comm::Layout::from_offsets(comm::Communicator(), {0, std::int64_t(col.size())}), d);
  if (same) fill(values, 0.5);
  else fill_hashed(values, 4);
  std::memcpy(a.values.raw(), values.data().raw(), a.values.bytes());
  return a;
}

}  // namespace asterism::test
