#include "asterism/grid/colouring.hpp"

namespace asterism::grid {

int colour_count(Triple const& shape, std::array<bool, 3> const& periodic, Colouring kind) {
  if (kind == Colouring::none) return 0;
  for (std::size_t d = 0; d < 3; ++d)
    if (periodic[d] && shape[d] % 2 != 0) return 0;
  if (kind == Colouring::red_black) return 2;
  return shape[0] > 1 ? 8 : shape[1] > 1 ? 4 : 2;
}

}  // namespace asterism::grid
