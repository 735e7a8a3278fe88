// What a model of a triangular solve knows of a machine.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace asterism::direct {

/// n messages of one size from one rank take latency + n size / rate(size).
struct Link {
  double latency = 0;
  std::vector<std::pair<std::int64_t, double>> rates;  ///< bytes of a message, ascending, and bytes per second; none: any are free

  /// A size between two of the list counts as the larger one: Ding et al. (2021), section 5, with powers of two.
  double sending(std::int64_t bytes) const {
    if (rates.empty()) return 0;
    auto const at = std::lower_bound(rates.begin(), rates.end(), bytes, [](auto const& r, std::int64_t b) { return r.first < b; });
    return double(bytes) / (at == rates.end() ? rates.back() : *at).second;
  }
};

struct SweepMachine {
  double bandwidth = 1;     ///< of a rank's memory, in bytes per second
  double task_seconds = 0;  ///< of a supernode or a run of blocks (block_runs.hpp), without numbers
  Link near, far;           ///< within a node and between nodes
  int ranks_per_node = std::numeric_limits<int>::max();
  /// Blocks of threads that reach the bandwidth together, MAX_TB of Ding et al. (2021), and the least and most bandwidth of one of them.
  /// 1: a rank does one task at a time.
  int workers = 1;
  double least_bandwidth = 0, most_bandwidth = std::numeric_limits<double>::infinity();

  Link const& link(int from, int to) const { return from / ranks_per_node == to / ranks_per_node ? near : far; }
};

}  // namespace asterism::direct
