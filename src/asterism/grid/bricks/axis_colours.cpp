#include "asterism/grid/bricks/axis_colours.hpp"

#include <algorithm>

namespace asterism::grid {

using i64 = std::int64_t;

AxisColours::AxisColours(i64 points, bool periodic, i64 reach, i64 low, i64 high) {
  auto const around = [&](i64 p) { return (p % points + points) % points; };
  for (i64 n = 0; n <= 2 * reach; ++n) {
    i64 const offset = n % 2 == 0 ? n / 2 : -(n + 1) / 2;
    bool const again = periodic && std::any_of(offsets.begin(), offsets.end(), [&](i64 o) { return around(o) == around(offset); });
    if (!again) offsets.push_back(offset);
  }
  i64 least = std::min(2 * reach + 1, points), rest = 0;
  if (periodic && points % least != 0) {
    rest = points % least;
    i64 divisor = least;
    while (points % divisor != 0) ++divisor;
    if (divisor <= least + rest) least = divisor, rest = 0;
  }
  count = least + rest;
  auto const colour = [&](i64 p) { return p < points - rest ? p % least : least + p - (points - rest); };
  for (i64 p = low; p < high; ++p) {
    of.push_back(colour(p));
    auto const row = read.size();
    read.resize(row + std::size_t(count), -1);
    for (std::size_t n = 0; n < offsets.size(); ++n) {
      i64 const q = periodic ? around(p + offsets[n]) : p + offsets[n];
      if (q >= 0 && q < points) read[row + std::size_t(colour(q))] = int(n);
    }
  }
}

}  // namespace asterism::grid
