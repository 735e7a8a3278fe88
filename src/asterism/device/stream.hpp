#pragma once
#include <cstdint>
#include <vector>

namespace asterism::device {

/// STREAM triad a = b + s c over n doubles with this process's team: seconds of each repeat. Moves 24 n bytes
/// by the usual count. past_caches: with stores that do not read the lines before, on x86.
std::vector<double> stream_triad(std::int64_t n, int repeats, bool past_caches = false);

}  // namespace asterism::device
