// Whether columns of sparse rows come in groups, as those of several unknowns a node do.
#pragma once
#include <cstdint>
#include <numeric>

namespace asterism::la {

/// The largest width for which every step-th row consists of whole groups of consecutive columns that begin at a multiple of it, and of
/// which `so_far` is a multiple too (0: any). At most one pass over the columns; it ends where the answer is 1.
inline std::int64_t group_width(std::int64_t const* ptr, std::int32_t const* col, std::int64_t rows, std::int64_t so_far = 0,
                                std::int64_t step = 1) {
  for (std::int64_t i = 0; i < rows && so_far != 1; i += step)
    for (auto p = ptr[i], end = ptr[i + 1]; p < end;) {
      auto const begin = p++;
      while (p < end && col[p] == col[p - 1] + 1) ++p;
      so_far = std::gcd(so_far, std::gcd(std::int64_t(col[begin]), p - begin));
    }
  return so_far;
}

}  // namespace asterism::la
