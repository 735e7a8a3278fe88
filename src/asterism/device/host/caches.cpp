#include "asterism/device/host/caches.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "asterism/base/limits.hpp"

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

using Words = std::uint64_t __attribute__((vector_size(16)));
constexpr std::size_t words_of_block = 4096 / sizeof(Words);

/// Seconds in which a core reads each of these blocks once, which it has read before: in an order that it cannot foresee, as bricks are.
double seconds_of_block(std::vector<Words> const& memory, std::size_t blocks) {
  std::size_t step = blocks * 5 / 8 | 1;
  while (std::gcd(step, blocks) > 1) step += 2;
  double best = 1;
  for (int pass = 0; pass < 5; ++pass) {
    auto const start = std::chrono::steady_clock::now();
    Words sums[8] = {};
    for (std::size_t n = 0, at = 0; n < blocks; ++n, at = (at + step) % blocks)
      for (std::size_t w = 0; w < words_of_block; w += 8)
        for (std::size_t k = 0; k < 8; ++k) sums[k] += memory[at * words_of_block + w + k];
    double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::uint64_t total = 0;
    for (auto const& s : sums) total += s[0] + s[1];
    // memory is all zeros, which the compiler does not know
    if (pass > 0 && total == 0) best = std::min(best, seconds / double(blocks));
  }
  return best;
}

/// Whether reading from so much of the third cache takes at most two and a half times as long as from the second.
bool third_cache_is_near(std::int64_t second, std::int64_t third) {
  std::vector<Words> const memory(std::size_t(third) / sizeof(Words));
  auto const blocks = [](std::int64_t bytes) { return std::max<std::size_t>(std::size_t(bytes) / 4096, 1); };
  return seconds_of_block(memory, blocks(third)) <= 2.5 * seconds_of_block(memory, blocks(second / 2));
}

}  // namespace

std::int64_t core_cache_bytes() {
  static std::int64_t const bytes = [] {
    std::int64_t own = std::int64_t(1) << 20;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    if (long const found = sysconf(_SC_LEVEL2_CACHE_SIZE); found > 0)
      own = std::max<std::int64_t>(std::int64_t(found) / 4 * 3, std::int64_t(1) << 18);
#endif
    auto const most = limits().core_cache, share = share_of_third_cache() / 4 * 3;
    if (own >= most || own >= std::int64_t(5) << 18) return std::min(own, most);
    if (own < std::int64_t(3) << 18) return std::min(std::max(own, share), most);
    auto const some = std::min({share, most, std::int64_t(12) << 20});  // other cores may use more than theirs
    return some > own && third_cache_is_near(own, some) ? some : own;
  }();
  return bytes;
}

}  // namespace asterism::device::host
