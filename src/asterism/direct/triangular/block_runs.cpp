#include "asterism/direct/triangular/block_runs.hpp"

namespace asterism::direct {

std::vector<std::int32_t> block_runs(BlockPattern const& pattern, ProcessGrid const& grid) {
  constexpr std::int64_t most_entries = 8192;
  struct Open {
    std::int32_t column = -1, run = -1;
    std::int64_t entries = 0;
  };
  std::vector<Open> open(std::size_t(grid.rows));  // of each process row
  std::vector<std::int32_t> run_of;
  std::int32_t runs = 0;
  for (std::int32_t i = 0; i < pattern.blocks(); ++i) {
    auto const& b = pattern.block(i);
    auto& o = open[std::size_t(b.row % grid.rows)];
    auto const entries = std::int64_t(b.count) * pattern.nodes().width(b.column);
    if (o.column != b.column || o.entries + entries > most_entries) o = {b.column, runs++, 0};
    o.entries += entries;
    run_of.push_back(o.run);
  }
  return run_of;
}

}  // namespace asterism::direct
