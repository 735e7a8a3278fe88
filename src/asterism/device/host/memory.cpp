#include "asterism/device/host/memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "asterism/base/error.hpp"

namespace asterism::device::host {
namespace {

// 2 MiB pages: sparse products read the source vector at random, and 4 KiB pages miss the TLB
constexpr std::size_t huge = std::size_t(2) << 20;
constexpr std::size_t large = 4 * huge;

struct Kept {
  std::mutex mutex;
  int scopes = 0;
  std::multimap<std::size_t, void*> blocks;  // by capacity
};
Kept& kept() {
  static auto* k = new Kept;  // arrays may be freed after static destruction began
  return *k;
}

void give_back(Kept& k) {
  for (auto const& [capacity, data] : k.blocks) std::free(data);
  k.blocks.clear();
}

}  // namespace

Block allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  bool const is_large = bytes >= large;
  std::size_t const align = is_large ? huge : 64;
  std::size_t const capacity = (bytes + align - 1) / align * align;
  ASTERISM_REQUIRE(capacity >= bytes, memory, "an array of {} bytes overflows the address space.", bytes);
  if (is_large) {
    auto& k = kept();
    std::lock_guard const lock(k.mutex);
    auto const fit = k.blocks.lower_bound(capacity);
    if (fit != k.blocks.end()) {
      Block const b{fit->second, fit->first};
      k.blocks.erase(fit);
      // the rest of a longer block holds no memory
      if (b.capacity > capacity) madvise(static_cast<char*>(b.data) + capacity, b.capacity - capacity, MADV_DONTNEED);
      return b;
    }
    give_back(k);
  }
  void* const data = std::aligned_alloc(align, capacity);
  ASTERISM_REQUIRE(data, memory, "out of memory: an array of {} bytes cannot be allocated.", bytes);
  if (is_large) madvise(data, capacity, MADV_HUGEPAGE);
  return {data, capacity};
}

void release(Block block) noexcept {
  if (block.capacity >= large) {
    auto& k = kept();
    std::lock_guard const lock(k.mutex);
    if (k.scopes > 0) {
      try {
        k.blocks.emplace(block.capacity, block.data);
        return;
      } catch (...) {  // no memory for the list: give the block back
      }
    }
  }
  std::free(block.data);
}

KeepFreed::KeepFreed() {
  std::lock_guard const lock(kept().mutex);
  ++kept().scopes;
}

KeepFreed::~KeepFreed() {
  auto& k = kept();
  std::lock_guard const lock(k.mutex);
  if (--k.scopes == 0) give_back(k);
}

}  // namespace asterism::device::host
