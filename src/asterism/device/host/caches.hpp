// Caches of the processor.
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// What a core's own cache holds, less some for what is on its way.
std::int64_t core_cache_bytes();

}  // namespace asterism::device::host
