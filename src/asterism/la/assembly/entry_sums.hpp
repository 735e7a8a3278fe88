// Given values, summed into arrays at places that are known.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/la/assembly/assembly.kernels.hpp"
#include "asterism/la/assembly/entry_pattern.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::la {

/// Which values make each entry of an array; I holds their numbers.
struct ArraySums {
  std::int64_t entries = 0;
  Array offsets, sources;  // of all entries; no values for those that need others'
  std::int64_t received = 0;
  Array received_places, received_offsets, received_sources;  // of those

  template <class I>
  void make_room(std::int64_t count, std::int64_t values) {
    entries = count;
    offsets = Array(std::size_t(count + 1) * sizeof(I));
    offsets.as<I>()[0] = 0;
    sources = Array(std::size_t(values + kernel::sources_ahead) * sizeof(I));
    std::fill_n(sources.as<I>() + values, kernel::sources_ahead, I(0));
  }
  /// Entry `at`, whose values begin at `source`; entries in any order.
  template <class I>
  void set(std::int64_t at, std::int64_t source, std::span<EntryItem<I> const> items) const {
    auto* to = sources.as<I>() + source;
    for (auto const& item : items) *to++ = item.value;
    offsets.as<I>()[at + 1] = I(source + std::int64_t(items.size()));
  }
};

/// The entries of one array that need others' values, while they are found.
template <class I>
struct ReceivedSums {
  std::vector<I> places, ends{0}, sources;

  void add(std::int64_t place, std::span<EntryItem<I> const> items) {
    places.push_back(I(place));
    for (auto const& item : items) sources.push_back(item.value);
    ends.push_back(I(sources.size()));
  }
  void keep_in(ArraySums& sums) const {
    sums.received = std::int64_t(places.size());
    if (places.empty()) return;
    sums.received_places = Array::of(std::span<I const>(places));
    sums.received_offsets = Array::of(std::span<I const>(ends));
    sums.received_sources = Array::of(std::span<I const>(sources));
  }
};

/// Arrays as sums of the values of `entries`, mine and those of other ranks.
struct EntrySums {
  Layout entries;
  std::int64_t received = 0;                 // values of other ranks, numbered behind mine
  bool narrow = true;                        // 32-bit numbers
  std::optional<comm::QueuedForest> others;  // brings them; none where no rank needs any
  std::vector<ArraySums> arrays;

  EntrySums() = default;
  /// `largest`: another number that the integers must hold. Collective.
  EntrySums(Layout all, std::span<std::int64_t const> numbers, std::int64_t largest);
  /// f(I()) with the integers that hold all numbers.
  template <class F>
  void with_index(F const& f) const {
    if (narrow) f(std::int32_t());
    else f(std::int64_t());
  }
  /// What values must be: one column of my entries, and on all ranks of one dtype, that of the matrix that they are added to, on all or on
  /// none. Collective.
  void check(char const* what, Vector const& values, std::optional<Dtype> added_to) const;
  /// out[a] = base[a], if there is one, + the sums of array a, on the queue of the values. Nobody waits (on several ranks: but for what was
  /// to be sent before).
  void run(Vector const& values, std::span<Array const> base, std::span<Array const> out) const;
};

/// My rows among these, from 0, each once, ascending.
template <class J>
std::vector<std::int64_t> rows_among(std::vector<J> const& given, Layout const& layout) {
  std::vector<std::int64_t> rows;
  for (auto const r : given) rows.push_back(std::int64_t(r) - layout.begin());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace asterism::la
