// Whether columns of sparse rows come in groups, as those of several unknowns a node do.
#pragma once
#include <cstdint>
#include <numeric>

namespace asterism::la {

/// The largest width for which every step-th row consists of whole groups of consecutive columns that begin at a multiple of it;
/// 0 if they have none. At most one pass over the columns; it ends where the answer is 1.
inline std::int64_t group_width(std::int64_t const* ptr, std::int32_t const* col, std::int64_t rows, std::int64_t step) {
  std::int64_t width = 0;
  for (std::int64_t i = 0; i < rows && width != 1; i += step)
    for (auto p = ptr[i], end = ptr[i + 1]; p < end;) {
      auto const begin = p++;
      while (p < end && col[p] == col[p - 1] + 1) ++p;
      width = std::gcd(width, std::gcd(std::int64_t(col[begin]), p - begin));
    }
  return width;
}

}  // namespace asterism::la
