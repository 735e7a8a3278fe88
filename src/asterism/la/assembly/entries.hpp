// Entries of a matrix or vector as they are given: in any order, repeated, for rows of any rank, in blocks as finite elements have them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/comm/layout/layout.hpp"

namespace asterism::la {

using comm::Layout;

/// `count` blocks of m rows and n columns: value first + (k m + a) n + b is at (rows[k m + a], columns[k n + b]), or ignored where one of
/// them is negative. J: int32 or int64. Single entries have m = n = 1; those of a vector have no columns.
template <class J>
struct EntryStack {
  J const *rows = nullptr, *columns = nullptr;
  std::int64_t count = 0, m = 1, n = 1;
  std::int64_t first = 0;
  /// The entries of all ranks come in the order (turn, rank, position). In an odd turn each takes the place of those before it.
  int turn = 0;

  std::int64_t values() const { return count * m * n; }
};

/// Single entries, as many rows as columns. Collective.
template <class J>
EntryStack<J> single_entries(Layout const& rows, char const* what, std::span<J const> i, std::span<J const> j);

/// Whether entries in rows of other ranks are sent there, or refused.
enum class Remote : std::uint8_t { send, refuse };
Remote remote_from_name(std::string_view name);

/// The first entry that cannot be, and why.
struct BadEntry {
  std::int64_t number, i, j;
  std::string why;
};
template <class J>
std::optional<BadEntry> first_bad_entry(EntryStack<J> const& stack, Layout const& rows, Layout const* columns, Remote remote);

/// The entries of all ranks in my rows.
template <class J>
struct RowEntries {
  std::vector<EntryStack<J>> stacks;  // in their order
  std::vector<J> rows, columns;       // of those of other ranks, whose values are numbered behind mine
  std::vector<std::int64_t> numbers;  // of those in the layout of all entries
};
/// Brings them; `entries`: the values of all ranks. Collective. Cost: one pass over the rows; what is in rows of others is announced there.
template <class J>
RowEntries<J> bring_entries(Layout const& rows, Layout const& entries, std::span<EntryStack<J> const> mine);

}  // namespace asterism::la
