// Data lines of coordinate files, many at once.
#pragma once
#include <cstdint>

namespace asterism::la::io {

/// What read_entry_lines() found: indices as they are in the file, and values.
struct EntryLines {
  static constexpr std::int64_t most = 256;
  std::int64_t i[most], j[most];
  double re[most], im[most];
  std::int64_t count = 0;
};

/// Reads lines from p on, which end before `stop`, each of two integers and `values` reals (0, 1 or 2) in their usual forms; returns where
/// the next line begins. Up to TextSource::readable_behind characters behind the
/// last line are looked at. It stops at `wanted` lines (at most EntryLines::most) and before a line that is anything else: a comment, an
/// error, or merely unusual.
char const* read_entry_lines(char const* p, char const* stop, int values, std::int64_t wanted, EntryLines& out);

}  // namespace asterism::la::io
