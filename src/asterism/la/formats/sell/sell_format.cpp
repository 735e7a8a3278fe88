#include "asterism/la/formats/sell/sell_format.hpp"

#include <algorithm>
#include <numeric>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/gpu_tiles.hpp"

namespace asterism::la {

using kernel::SliceRun;

namespace {

constexpr std::int32_t window = 4096;  // their part of y stays in the first cache

/// Rows whose lengths change from one to the next make the end of each inner loop a misprediction.
bool irregular(Csr const& a, Writes writes) {
  auto const* const offsets = a.offsets.as<std::int64_t>();
  std::int64_t changes = 0, rows = 0, before = 0;
  for (std::int32_t i = 0; i < a.rows; ++i) {
    auto const length = offsets[i + 1] - offsets[i];
    if (writes == Writes::rows_with_entries && length == 0) continue;
    changes += rows > 0 && length != before;
    before = length;
    ++rows;
  }
  return rows >= 256 && 12 * changes > rows && a.nnz() < 64 * rows;  // long rows hide it
}

/// Whether x is larger than the second cache and most entries would miss there: counted on a sample of the rows
/// with a cache of one place a line.
bool scattered(Csr const& a) {
  std::int64_t const per_line = std::max<std::int64_t>(1, 64 / std::int64_t(size_of(a.dtype)));
  constexpr std::int64_t lines = 8192;
  if (a.cols / per_line < 4 * lines) return false;
  auto const* const ptr = a.offsets.as<std::int64_t>();
  auto const* const col = a.columns.as<std::int32_t>();
  std::vector<std::int64_t> held(lines, -1);
  std::int64_t entries = 0, misses = 0;
  for (int part = 0; part < 3; ++part) {
    auto const first = std::int32_t(std::int64_t(a.rows) * part / 3), last = std::int32_t(std::min<std::int64_t>(a.rows, first + 16384L));
    for (auto p = ptr[first]; p < ptr[last]; ++p) {
      auto const line = col[p] / per_line;
      auto& place = held[std::size_t(line % lines)];
      misses += place != line;
      place = line;
    }
    entries += ptr[last] - ptr[first];
  }
  return 2 * misses > entries;
}

bool in_cache(Csr const& a) { return !is_complex(a.dtype) && a.rows >= 256 && a.values.bytes() < (std::size_t(16) << 20); }

/// Rows of a group; of complex blocks all rows are listed.
std::int32_t lanes_of(Dtype dtype) { return is_complex(dtype) ? std::int32_t(1) << 30 : std::int32_t(64 / size_of(dtype)); }

}  // namespace

/// Which row stands where.
struct SellFormat::Groups {
  std::vector<SliceRun> runs;
  std::vector<std::int32_t> grouped, rest;
  std::int64_t entries = 0;  // of the groups
  std::int64_t column_bytes = 0;

  Groups(Csr const& a, Writes writes);
  void place_columns(Csr const& a, bool wide);

 private:
  /// As many whole groups as these rows of one length make; returns how many rows that are.
  std::int64_t add(std::span<std::int32_t const> rows, std::int64_t length, std::int32_t lanes, bool consecutive) {
    auto const groups = length > 0 ? std::int32_t(rows.size()) / lanes : 0;
    if (groups == 0) return 0;
    if (!runs.empty() && runs.back().length == length && runs.back().consecutive == consecutive && runs.back().groups < window)
      runs.back().groups += groups;
    else runs.push_back({std::int32_t(grouped.size()), groups, std::int32_t(length), consecutive, SliceRun::wide, entries, 0});
    auto const used = std::int64_t(groups) * lanes;
    entries += used * length;
    grouped.insert(grouped.end(), rows.begin(), rows.begin() + used);
    return used;
  }
};

SellFormat::Groups::Groups(Csr const& a, Writes writes) {
  bool const all = writes == Writes::all_rows;
  auto const ids = all ? std::vector<std::int32_t>() : rows_with_entries(a);
  auto const ptr = a.row_offsets();
  auto const n = all ? a.rows : std::int32_t(ids.size());
  auto const row = [&](std::int32_t i) { return all ? i : ids[std::size_t(i)]; };
  auto const length = [&](std::int32_t i) { return ptr[std::size_t(i) + 1] - ptr[std::size_t(i)]; };
  auto const W = lanes_of(a.dtype);
  std::vector<std::int32_t> group, left, sorted;
  std::vector<std::pair<std::int64_t, std::int32_t>> neighbours;  // length, first row
  std::vector<std::int64_t> count;
  for (std::int32_t first = 0; first < n; first += window) {
    auto const last = std::min(n, first + window);
    // consecutive rows of one length in groups as they stand: y is written as a vector. The groups by length, so that
    // the inner loops' ends can be predicted.
    left.clear();
    neighbours.clear();
    for (auto i = first; i < last;) {
      auto j = i + 1;
      while (j < last && length(row(j)) == length(row(i)) && row(j) == row(j - 1) + 1) ++j;
      for (; j - i >= W && length(row(i)) > 0; i += W) neighbours.emplace_back(length(row(i)), row(i));
      for (; i < j; ++i) left.push_back(row(i));
    }
    std::stable_sort(neighbours.begin(), neighbours.end(), [](auto const& x, auto const& y) { return x.first < y.first; });
    for (auto const& [l, start] : neighbours) {
      group.resize(std::size_t(W));
      std::iota(group.begin(), group.end(), start);
      add(group, l, W, true);
    }
    // the others by length
    std::int64_t longest = 0;
    for (auto const i : left) longest = std::max(longest, length(i));
    longest = std::min<std::int64_t>(longest, 4 * window);  // longer ones share the last place
    count.assign(std::size_t(longest) + 2, 0);
    auto const key = [&](std::int32_t i) { return std::size_t(std::min(length(i), longest)); };
    for (auto const i : left) ++count[key(i) + 1];
    for (std::size_t l = 1; l < count.size(); ++l) count[l] += count[l - 1];
    sorted.resize(left.size());
    for (auto const i : left) sorted[std::size_t(count[key(i)]++)] = i;
    for (std::size_t i = 0; i < sorted.size();) {
      auto j = i;
      while (j < sorted.size() && length(sorted[j]) == length(sorted[i])) ++j;
      std::span const same(sorted.begin() + std::int64_t(i), sorted.begin() + std::int64_t(j));
      auto const used = add(same, length(same[0]), W, false);
      rest.insert(rest.end(), same.begin() + used, same.end());
      i = j;
    }
  }
}

/// Where each run's columns go, and from where on they take 16 bits.
void SellFormat::Groups::place_columns(Csr const& a, bool wide) {
  auto const W = lanes_of(a.dtype);
  auto const ptr = a.row_offsets();
  auto const* const col = a.columns.as<std::int32_t>();
  device::Executor executor;
  if (!wide)
    device::parallel_ranges(
        executor, std::int64_t(runs.size()),
        [&](std::int64_t begin, std::int64_t end) {
          for (auto r = begin; r < end; ++r) {
            auto& run = runs[std::size_t(r)];
            std::int32_t low = a.cols, high = 0;
            for (std::int32_t i = run.first; i < run.first + run.groups * W; ++i)
              for (auto e = ptr[std::size_t(grouped[std::size_t(i)])], last = e + run.length; e < last; ++e)
                low = std::min(low, col[e]), high = std::max(high, col[e]);
            if (high - low < 1 << 16) run.base = low;
          }
        },
        32);
  for (auto& run : runs) {
    run.column_at = column_bytes;
    column_bytes += std::int64_t(run.groups) * W * run.length * (run.base == SliceRun::wide ? 4 : 2);
  }
}

SellFormat::SellFormat(Csr const& a, Writes writes) : SellFormat(a, writes, Groups(a, writes)) {}

SellFormat::SellFormat(Csr const& a, Writes writes, Groups groups)
    : SparseFormat(a), writes_(writes), scattered_(scattered(a)), rest_(a, groups.rest) {
  groups.place_columns(a, scattered_);
  runs_ = Array::of(std::span<SliceRun const>(groups.runs));
  row_ids_ = Array::of(std::span<std::int32_t const>(groups.grouped));
  fill(a, groups);
}

void SellFormat::fill(Csr const& a, Groups const& groups) {
  auto const W = lanes_of(a.dtype);
  auto const ptr = a.row_offsets();
  auto const* const col = a.columns.as<std::int32_t>();
  auto const column_end = std::size_t(kernel::ahead) * sizeof(std::int32_t);
  columns_ = Array(std::size_t(groups.column_bytes) + column_end);
  auto* const columns = columns_.as<std::byte>();
  std::fill_n(columns + groups.column_bytes, column_end, std::byte(0));
  device::Executor executor;
  with_stored(a.dtype, a.bfloat16, [&](auto tag, auto stored) {
    using T = typename decltype(tag)::type;
    using V = typename decltype(stored)::type;
    values_ = Array(std::size_t(groups.entries) * sizeof(V));
    auto const* const val = a.values.as<T>();
    auto* const to_val = values_.template as<V>();
    device::parallel_ranges(
        executor, std::int64_t(groups.runs.size()),
        [&](std::int64_t begin, std::int64_t end) {
          for (auto r = begin; r < end; ++r) {
            auto const& run = groups.runs[std::size_t(r)];
            auto const copy_run = [&](auto* to_col, std::int32_t base) {
              for (std::int32_t i = 0; i < run.groups * W; ++i) {
                auto const from = ptr[std::size_t(groups.grouped[std::size_t(run.first + i)])];
                auto const to = std::int64_t(i / W) * W * run.length + i % W;
                for (std::int32_t e = 0; e < run.length; ++e) {
                  to_col[to + e * W] = std::remove_pointer_t<decltype(to_col)>(col[from + e] - base);
                  to_val[run.entry_at + to + e * W] = V(val[from + e]);
                }
              }
            };
            if (run.base == SliceRun::wide) copy_run(reinterpret_cast<std::uint32_t*>(columns + run.column_at), 0);
            else copy_run(reinterpret_cast<std::uint16_t*>(columns + run.column_at), run.base);
          }
        },
        32);
  });
}

double SellFormat::bytes(std::int64_t k) const {
  return double(runs_.bytes() + row_ids_.bytes() + columns_.bytes() + values_.bytes()) + rest_.bytes() +
         vector_bytes(k, writes_, rest_.count() + grouped());
}

Array const& SellFormat::tiles() const {
  return tiles_.made_by([this] {
    return gpu_tiles(runs_.as<SliceRun>(), std::int32_t(runs_.bytes() / sizeof(SliceRun)), grouped(),
                     [lanes = lanes_of(dtype_)](SliceRun const& r) { return r.first + r.groups * lanes; });
  });
}

template <class T, class V>
kernel::SellBlock<T, V> SellFormat::view(device::Memory m) const {
  kernel::SellBlock<T, V> out{};
  out.grouped = {runs_.as<SliceRun>(m),
                 std::int32_t(runs_.bytes() / sizeof(SliceRun)),
                 row_ids_.as<std::int32_t>(m),
                 columns_.as<std::byte>(m),
                 values_.as<V>(m),
                 scattered_,
                 grouped(),
                 tiles_ ? tiles_->as<std::int32_t>(m) : nullptr};
  out.rest = rest_.view<T, V>(m);
  return out;
}

void SellFormat::run(device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                     Array const& w) const {
  ASTERISM_ASSERT(written_by(e) == writes_);
  with_stored(dtype_, bfloat16_, [&](auto tag, auto stored) {
    using T = typename decltype(tag)::type;
    using V = typename decltype(stored)::type;
    submit_product<T, V>(kernel::sell_product<T, V>, *this, queue, e, k, x, y, b, w);
  });
}

FormatEntry sell_format() {
  return {
      "sell", [](Csr const& block, Writes writes, FormatChoice choice) -> std::shared_ptr<SparseFormat const> {
        bool const all = writes == Writes::all_rows;
        if (choice == FormatChoice::where_it_suits && !(all && in_cache(block)) && !irregular(block, writes) && !(all && scattered(block)))
          return nullptr;
        return std::make_shared<SellFormat const>(block, writes);
      }};
}

}  // namespace asterism::la
