#include "asterism/grid/colouring.hpp"

namespace asterism::grid {

using i64 = std::int64_t;

std::vector<int> colour_numbers(Box const& box, Colouring kind) {
  std::vector<int> out;
  out.reserve(std::size_t(box.points()));
  for (i64 i = box.low[0]; i < box.high[0]; ++i)
    for (i64 j = box.low[1]; j < box.high[1]; ++j)
      for (i64 k = box.low[2]; k < box.high[2]; ++k)
        out.push_back(int(kind == Colouring::boxes ? i % 2 * 4 + j % 2 * 2 + k % 2 : (i + j + k) % 2));
  return out;
}

int colour_count(Triple const& shape, std::array<bool, 3> const& periodic, Colouring kind) {
  if (kind == Colouring::none) return 0;
  for (std::size_t d = 0; d < 3; ++d)
    if (periodic[d] && shape[d] % 2 != 0) return 0;
  if (kind == Colouring::red_black) return 2;
  return shape[0] > 1 ? 8 : shape[1] > 1 ? 4 : 2;
}

std::vector<la::Vector> colour_vectors(la::Space const& space, Dtype dtype, std::vector<int> const& numbers, int count) {
  std::vector<la::Vector> out;
  for (int c = 0; c < count; ++c) {
    la::Vector v(space, dtype);
    with_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const to = v.host<T>();
      for (std::size_t i = 0; i < numbers.size(); ++i) to[i] = T(numbers[i] == c ? 1 : 0);
    });
    out.push_back(std::move(v));
  }
  return out;
}

}  // namespace asterism::grid
