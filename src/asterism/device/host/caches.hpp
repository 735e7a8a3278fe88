// Caches of the processor.
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// The cache that a core may count on, less some for what is on its way. If its own one has less than 1 MB, this is its share of the third
/// cache. If its own one has less than 1.7 MiB, up to 12 MB of that share, where reading from there is quick: this is measured at the first
/// call, in some milliseconds. Else its own one.
std::int64_t core_cache_bytes();

}  // namespace asterism::device::host
