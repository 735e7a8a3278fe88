#include "asterism/device/host/caches.hpp"

#include <unistd.h>

#include <algorithm>

namespace asterism::device::host {

std::int64_t core_cache_bytes() {
  static std::int64_t const bytes = [] {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    if (long const found = sysconf(_SC_LEVEL2_CACHE_SIZE); found > 0)
      return std::max<std::int64_t>(std::int64_t(found) / 4 * 3, std::int64_t(1) << 18);
#endif
    return std::int64_t(1) << 20;
  }();
  return bytes;
}

}  // namespace asterism::device::host
