// Where given entries come to stand: my rows, the columns of each ascending, with the values that make each entry in their order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "asterism/base/limits.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/assembly/entries.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

/// One value and its column; I holds both.
template <class I>
struct EntryItem {
  I column, value;
};

/// The given entries of each of my rows; those of one column stand together, in their order, and columns ascend.
template <class I>
class EntryRows {
 public:
  using Item = EntryItem<I>;

  template <class J>
  EntryRows(Layout const& rows, std::span<EntryStack<J> const> stacks) : starts_(std::size_t(rows.local_size()) + 1, 0) {
    auto const first = rows.begin(), last = rows.end();
    J const no_column = 0;                      // of vectors
    auto const each_run = [&](auto const& f) {  // f(row, stack, columns, first value)
      for (auto const& s : stacks) {
        auto const* row = s.rows;
        auto value = s.first;
        for (std::int64_t k = 0; k < s.count; ++k)
          for (std::int64_t a = 0; a < s.m; ++a, ++row, value += s.n)
            if (*row >= first && *row < last) f(std::size_t(*row - first), s, s.columns ? s.columns + k * s.n : &no_column, value);
      }
    };
    each_run([&](std::size_t row, EntryStack<J> const& s, J const* columns, std::int64_t) {
      std::int64_t count = 0;
      for (std::int64_t b = 0; b < s.n; ++b) count += columns[b] >= 0 ? 1 : 0;
      starts_[row + 1] += count;
    });
    for (std::size_t r = 1; r < starts_.size(); ++r) starts_[r] += starts_[r - 1];
    memory_ = Array(std::size_t(starts_.back()) * sizeof(Item));
    items_ = memory_.template as<Item>();
    ends_.assign(starts_.begin(), starts_.end() - 1);
    each_run([&](std::size_t row, EntryStack<J> const& s, J const* columns, std::int64_t value) {
      auto* to = items_ + ends_[row];
      for (std::int64_t b = 0; b < s.n; ++b)
        if (columns[b] >= 0) *to++ = {I(columns[b]), s.turn & 1 ? I(~(value + b)) : I(value + b)};  // ~: one that replaces
      ends_[row] = to - items_;
    });
    bool const replace = std::any_of(stacks.begin(), stacks.end(), [](auto const& s) { return s.turn & 1; });
    each_range([&](std::int64_t begin, std::int64_t end) {
      for (auto row = std::size_t(begin); row < std::size_t(end); ++row) order(row, replace);
    });
  }

  std::int64_t rows() const { return std::int64_t(ends_.size()); }
  std::span<Item const> items(std::int64_t row) const { return {items_ + starts_[std::size_t(row)], items_ + ends_[std::size_t(row)]}; }
  /// f(column, its values) for each entry of a row.
  template <class F>
  void each_entry(std::int64_t row, F const& f) const {
    auto const all = items(row);
    for (auto p = all.data(), end = p + all.size(); p < end;) {
      auto const* const begin = p;
      while (p < end && p->column == begin->column) ++p;
      f(begin->column, std::span<Item const>(begin, p));
    }
  }
  /// f(begin, end) of rows, by several threads.
  template <class F>
  void each_range(F const& f) const {
    device::Executor executor;
    device::parallel_ranges(executor, rows(), f, 256);
  }

 private:
  void order(std::size_t row, bool replace) {
    auto *const begin = items_ + starts_[row], *end = items_ + ends_[row];
    if (std::adjacent_find(begin, end, [](Item const& a, Item const& b) { return a.column >= b.column; }) == end && !replace) return;
    std::stable_sort(begin, end, [](Item const& a, Item const& b) { return a.column < b.column; });
    if (!replace) return;
    auto* to = begin;  // of the entry that is read
    auto* entry = begin;
    for (auto const* p = begin; p < end; ++p) {
      if (p > begin && p->column != entry->column) entry = to;
      if (p->value < 0) to = entry;
      *to++ = {p->column, p->value < 0 ? I(~p->value) : p->value};
    }
    ends_[row] = to - items_;
  }

  std::vector<std::int64_t> starts_, ends_;
  Array memory_;
  Item* items_ = nullptr;
};

/// The two blocks of my rows, without values.
template <class I>
struct EntryPattern {
  EntryRows<I> rows;
  std::int64_t own, c0, c1;                                 // values from `own` on are of other ranks; my columns
  std::vector<std::int64_t> ghosts;                         // columns of others, ascending
  std::vector<std::int64_t> row_entries[2], row_values[2];  // where a row begins in either block; values of what needs mine alone
  Csr blocks[2];

  template <class J>
  EntryPattern(Layout const& row_layout, Layout const& columns, std::span<EntryStack<J> const> stacks, std::int64_t own_values)
      : rows(row_layout, stacks), own(own_values), c0(columns.begin()), c1(columns.end()) {
    auto const n = std::size_t(rows.rows());
    for (auto* const counts : {&row_entries[0], &row_entries[1], &row_values[0], &row_values[1]}) counts->assign(n + 1, 0);
    std::mutex mutex;
    rows.each_range([&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int64_t> away;
      for (auto row = begin; row < end; ++row)
        rows.each_entry(row, [&](I column, std::span<EntryItem<I> const> items) {
          auto const b = block_of(column);
          ++row_entries[b][std::size_t(row) + 1];
          if (!needs_others(items)) row_values[b][std::size_t(row) + 1] += std::int64_t(items.size());
          if (b == 1) away.push_back(column);
        });
      std::lock_guard const lock(mutex);
      ghosts.insert(ghosts.end(), away.begin(), away.end());
    });
    std::sort(ghosts.begin(), ghosts.end());
    ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
    for (int b = 0; b < 2; ++b)
      for (std::size_t r = 1; r <= n; ++r) row_entries[b][r] += row_entries[b][r - 1], row_values[b][r] += row_values[b][r - 1];
  }

  std::size_t block_of(I column) const { return column >= c0 && column < c1 ? 0 : 1; }
  bool needs_others(std::span<EntryItem<I> const> items) const {
    return std::any_of(items.begin(), items.end(), [this](auto const& item) { return item.value >= own; });
  }
  /// Sets the blocks; f(block, place, where its values begin, items, whether others' values are among them) for each entry, by several
  /// threads.
  template <class F>
  void fill(F const& f) {
    for (std::size_t b = 0; b < 2; ++b) {
      blocks[b].rows = std::int32_t(rows.rows());
      blocks[b].cols = b == 0 ? checked_local_index(c1 - c0, "columns of one rank")
                              : checked_local_index(std::int64_t(ghosts.size()), "ghost columns of one rank");
      blocks[b].offsets = Array::of(std::span<std::int64_t const>(row_entries[b]));
      blocks[b].columns = Array(std::size_t(row_entries[b].back()) * sizeof(std::int32_t));
    }
    rows.each_range([&](std::int64_t begin, std::int64_t end) {
      std::int32_t* const to[] = {blocks[0].columns.template as<std::int32_t>(), blocks[1].columns.template as<std::int32_t>()};
      std::int64_t at[2], values_at[2];
      for (int b = 0; b < 2; ++b) at[b] = row_entries[b][std::size_t(begin)], values_at[b] = row_values[b][std::size_t(begin)];
      for (auto row = begin; row < end; ++row)
        rows.each_entry(row, [&](I column, std::span<EntryItem<I> const> items) {
          auto const b = block_of(column);
          to[b][at[b]] =
              b == 0 ? std::int32_t(column - c0) : std::int32_t(std::lower_bound(ghosts.begin(), ghosts.end(), column) - ghosts.begin());
          auto const others = needs_others(items);
          f(b, at[b]++, values_at[b], items, others);
          if (!others) values_at[b] += std::int64_t(items.size());
        });
    });
  }
};

}  // namespace asterism::la
