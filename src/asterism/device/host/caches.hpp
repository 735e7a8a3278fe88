// Caches of the processor.
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// What a core's own cache holds, less some for what is on its way. Or its share of the third cache where that is near: beside own caches
/// below 1 MB, and beside those below 1.7 MiB if reading from it is found to be quick enough, at the first call, in some milliseconds.
/// Beside larger ones it is as slow as memory.
std::int64_t core_cache_bytes();

}  // namespace asterism::device::host
