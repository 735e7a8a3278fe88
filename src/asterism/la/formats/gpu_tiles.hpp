// Where a GPU's thread finds its row, in formats whose rows stand in runs.
#pragma once
#include <vector>

#include "asterism/la/formats/format.kernels.hpp"

namespace asterism::la {

/// The first run that ends after every tile_rows-th of `rows`; end(run) is its last row's end.
template <class Run, class End>
Array gpu_tiles(Run const* runs, std::int32_t count, std::int32_t rows, End const& end) {
  std::vector<std::int32_t> at(std::size_t((rows + kernel::tile_rows - 1) / kernel::tile_rows));
  std::int32_t run = 0;
  for (std::size_t t = 0; t < at.size(); ++t) {
    while (run < count && end(runs[run]) <= std::int32_t(t) * kernel::tile_rows) ++run;
    at[t] = run;
  }
  return Array::of(std::span<std::int32_t const>(at));
}

}  // namespace asterism::la
