// Blocks that a rank multiplies in one go.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/direct/triangular/block_pattern.hpp"
#include "asterism/direct/triangular/process_grid.hpp"

namespace asterism::direct {

/// Of each block its run's number, which ascends with the columns. The blocks of one rank in a column are one below the other in its panel;
/// a run is some of them, one after the other, with at most 8192 entries; or one block. So small blocks cost little more than their
/// entries, and x of a supernode waits for little. Cost: time and memory of the order of the blocks.
std::vector<std::int32_t> block_runs(BlockPattern const& pattern, ProcessGrid const& grid);

}  // namespace asterism::direct
