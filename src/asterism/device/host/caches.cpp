#include "asterism/device/host/caches.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace asterism::device::host {
namespace {

/// A core's share of the third cache, where Linux tells both; else 0.
std::int64_t share_of_third_cache() {
  std::string const folder = "/sys/devices/system/cpu/cpu0/cache/index3/";
  std::int64_t kilobytes = 0, cores = 0;
  if (std::ifstream(folder + "size") >> kilobytes; kilobytes <= 0) return 0;
  std::string list;
  std::ifstream(folder + "shared_cpu_list") >> list;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {  // 0-3,8
    std::istringstream ends(range);
    std::int64_t first = 0, last = 0;
    char dash = 0;
    if (!(ends >> first)) return 0;
    cores += ends >> dash >> last ? last - first + 1 : 1;
  }
  return cores > 0 ? kilobytes * 1024 / cores : 0;
}

}  // namespace

std::int64_t core_cache_bytes() {
  static std::int64_t const bytes = [] {
    std::int64_t own = std::int64_t(1) << 20;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    if (long const found = sysconf(_SC_LEVEL2_CACHE_SIZE); found > 0)
      own = std::max<std::int64_t>(std::int64_t(found) / 4 * 3, std::int64_t(1) << 18);
#endif
    if (own >= std::int64_t(3) << 18) return own;
    return std::max(own, share_of_third_cache() / 4 * 3);
  }();
  return bytes;
}

}  // namespace asterism::device::host
