#include "asterism/grid/bricks/brick_order.hpp"

#include <algorithm>

namespace asterism::grid {
namespace {

using i64 = std::int64_t;

/// The parts of a box as they follow each other: 9 a + 3 b + c with 0, 1, 2 for the low side, between and the high side. Found by a search
/// (tests/cpp/grid/brick_order_test.cpp counts the runs).
constexpr std::array<int, 27> order = {13, 12, 9, 0, 3, 4, 5, 8, 7, 6, 15, 16, 17, 14, 23, 26, 25, 24, 21, 18, 19, 20, 11, 2, 1, 10, 22};

constexpr std::array<int, 27> places() {
  std::array<int, 27> out{};
  for (int p = 0; p < 27; ++p) out[std::size_t(order[std::size_t(p)])] = p;
  return out;
}
constexpr std::array<int, 27> place = places();

std::array<int, 3> sides(int part) { return {part / 9, part / 3 % 3, part % 3}; }

}  // namespace

std::array<i64, 2> BrickOrder::along(std::size_t d, int side) const {
  i64 const m = sizes_[d];
  if (!cut_[d]) return side == 1 ? std::array<i64, 2>{0, m} : std::array<i64, 2>{0, 0};
  if (side == 0) return {0, std::min<i64>(1, m)};
  if (side == 1) return {1, std::max<i64>(1, m - 1)};
  return {std::max<i64>(1, m - 1), std::max<i64>(1, m)};
}

BrickOrder::BrickOrder(Triple const& sizes, std::array<bool, 3> const& cut) : sizes_(sizes), cut_(cut) {
  for (std::size_t p = 0; p < 27; ++p) {
    auto const s = sides(order[p]);
    i64 count = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      auto const [low, high] = along(d, s[d]);
      count *= high - low;
    }
    first_[p + 1] = first_[p] + count;
  }
}

i64 BrickOrder::number(Triple const& at) const {
  int part = 0;
  i64 within = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    int const side = !cut_[d] ? 1 : at[d] == 0 ? 0 : at[d] == sizes_[d] - 1 ? 2 : 1;
    auto const [low, high] = along(d, side);
    part = 3 * part + side;
    within = within * (high - low) + at[d] - low;
  }
  return first_[std::size_t(place[std::size_t(part)])] + within;
}

std::vector<std::pair<i64, i64>> BrickOrder::runs(Box const& part) const {
  std::vector<i64> numbers;
  numbers.reserve(std::size_t(part.points()));
  for (auto a = part.low[0]; a < part.high[0]; ++a)
    for (auto b = part.low[1]; b < part.high[1]; ++b)
      for (auto c = part.low[2]; c < part.high[2]; ++c) numbers.push_back(number({a, b, c}));
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::pair<i64, i64>> out;
  for (auto const n : numbers)
    if (!out.empty() && out.back().first + out.back().second == n) ++out.back().second;
    else out.emplace_back(n, 1);
  return out;
}

}  // namespace asterism::grid
