#include "asterism/precond/incomplete/ilu_pattern.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "asterism/base/format.hpp"
#include "asterism/base/progress.hpp"

namespace asterism::precond {

la::Csr with_full_diagonal(la::Csr const& a) {
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  std::int64_t missing = 0;
  auto const has = [&](std::int32_t r) {
    return std::binary_search(col.begin() + ptr[std::size_t(r)], col.begin() + ptr[std::size_t(r) + 1], r);
  };
  for (std::int32_t r = 0; r < a.rows; ++r) missing += !has(r);
  la::Csr f(a.dtype, a.rows, a.cols, a.nnz() + missing);
  auto* fp = f.offsets.as<std::int64_t>();
  auto* fc = f.columns.as<std::int32_t>();
  std::int64_t at = 0;
  for (std::int32_t r = 0; r < a.rows; ++r) {
    fp[r] = at;
    bool placed = has(r);
    for (auto p = std::size_t(ptr[std::size_t(r)]); p < std::size_t(ptr[std::size_t(r) + 1]); ++p) {
      if (!placed && col[p] > r) fc[at++] = r, placed = true;
      fc[at++] = col[p];
    }
    if (!placed) fc[at++] = r;
  }
  return f;
}

la::Csr with_fill(la::Csr const& f, std::int64_t most) {
  Progress progress(format("ilu({}): the places of the fill", most), double(f.rows));
  auto const ptr = f.row_offsets();
  auto const col = f.column_indices();
  auto const n = std::size_t(f.rows);
  constexpr std::int32_t none = -1, end = -2;
  std::vector<std::int32_t> columns, levels, next(n, none), level(n);
  std::vector<std::int64_t> offsets{0}, diagonal(n);
  for (std::size_t i = 0; i < n; ++i) {
    progress.at(double(i));
    // the row as a list of ascending columns
    std::int32_t head = end, last = end;
    for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
      auto const c = col[p];
      (last == end ? head : next[std::size_t(last)]) = c;
      last = c;
      level[std::size_t(c)] = 0;
      next[std::size_t(c)] = end;
    }
    for (auto k = head; k != end && std::size_t(k) < i; k = next[std::size_t(k)]) {
      auto before = k;
      for (auto p = diagonal[std::size_t(k)] + 1; p < offsets[std::size_t(k) + 1]; ++p) {
        auto const c = columns[std::size_t(p)];
        auto const l = level[std::size_t(k)] + levels[std::size_t(p)] + 1;
        if (next[std::size_t(c)] != none) {
          level[std::size_t(c)] = std::min(level[std::size_t(c)], l);
        } else if (l <= most) {
          while (next[std::size_t(before)] != end && next[std::size_t(before)] < c) before = next[std::size_t(before)];
          next[std::size_t(c)] = next[std::size_t(before)];
          next[std::size_t(before)] = c;
          level[std::size_t(c)] = l;
        }
      }
    }
    for (auto c = head; c != end;) {
      if (std::size_t(c) == i) diagonal[i] = std::int64_t(columns.size());
      columns.push_back(c);
      levels.push_back(level[std::size_t(c)]);
      c = std::exchange(next[std::size_t(c)], none);
    }
    offsets.push_back(std::int64_t(columns.size()));
  }
  la::Csr out(f.dtype, f.rows, f.cols, std::int64_t(columns.size()));
  std::copy(offsets.begin(), offsets.end(), out.row_offsets().begin());
  std::copy(columns.begin(), columns.end(), out.column_indices().begin());
  return out;
}

}  // namespace asterism::precond
