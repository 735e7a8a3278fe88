#pragma once
#include <cstdint>
#include <vector>

namespace asterism::device {

/// STREAM triad a = b + s c over n doubles with this process's team: seconds of each repeat. Moves 24 n bytes
/// by the usual count.
std::vector<double> stream_triad(std::int64_t n, int repeats);

}  // namespace asterism::device
