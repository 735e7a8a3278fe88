#pragma once
#include <vector>

#include "asterism/direct/triangular/process_grid.hpp"

/// All grids of so many ranks.
inline std::vector<asterism::direct::ProcessGrid> grids_of(int ranks) {
  std::vector<asterism::direct::ProcessGrid> out;
  for (int r = 1; r <= ranks; ++r)
    if (ranks % r == 0) out.push_back({r, ranks / r});
  return out;
}

/// All grids of 1 to so many ranks.
inline std::vector<asterism::direct::ProcessGrid> grids_up_to(int ranks) {
  std::vector<asterism::direct::ProcessGrid> out;
  for (int p = 1; p <= ranks; ++p)
    for (auto const& grid : grids_of(p)) out.push_back(grid);
  return out;
}
