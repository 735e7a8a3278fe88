// Caches of the processor.
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// What a core's own cache holds, less some for what is on its way. Where that is below 1 MB: its share of the third cache, which is near
/// then; beside larger ones it is as slow as memory.
std::int64_t core_cache_bytes();

}  // namespace asterism::device::host
