#include "asterism/direct/triangular/process_grid.hpp"

#include <charconv>
#include <optional>

#include "asterism/base/error.hpp"

namespace asterism::direct {
namespace {

std::optional<int> count_from(std::string_view text, int ranks) {
  if (text == "P" || text == "p") return ranks;
  int n = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size() || n < 1) return std::nullopt;
  return n;
}

}  // namespace

std::string ProcessGrid::describe() const { return format("{} x {}", rows, columns); }

ProcessGrid process_grid(std::string_view text, int ranks) {
  if (text == "square") {
    int columns = 1;
    for (int c = 1; c * c <= ranks; ++c)
      if (ranks % c == 0) columns = c;
    return {ranks / columns, columns};
  }
  auto const x = text.find('x');
  if (x != std::string_view::npos) {
    auto const rows = count_from(text.substr(0, x), ranks), columns = count_from(text.substr(x + 1), ranks);
    if (rows && columns) {
      ASTERISM_REQUIRE_ALIKE(std::int64_t(*rows) * *columns == ranks, option,
                             "process grid {}: that is {} ranks, and there are {}. Use {}x1, 1x{} or square.", text,
                             std::int64_t(*rows) * *columns, ranks, ranks, ranks);
      return {*rows, *columns};
    }
  }
  throw Error(ErrorKind::option, format("process grid '{}': write rows x columns as in 2x3, Px1 or 1xP, or square.", text), true);
}

}  // namespace asterism::direct
