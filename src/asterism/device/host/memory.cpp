#include "asterism/device/host/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "asterism/base/error.hpp"
#include "asterism/device/host/team.hpp"

namespace asterism::device::host {
namespace {

// 2 MiB pages: sparse products read the source vector at random, and 4 KiB pages miss the TLB
constexpr std::size_t huge = std::size_t(2) << 20;
constexpr std::size_t large = 4 * huge;
constexpr std::size_t small = 4096;
constexpr std::size_t staggered = std::size_t(64) << 10;  // blocks from there on
constexpr std::size_t most_loose = 3;                     // a kept block is at most so many times as large as the array that takes it

struct KeptBlock {
  void* data;
  std::uint64_t age;  // the least is the oldest
  std::size_t bytes;  // that may be memory; the rest of its capacity is not
};

struct Kept {
  std::mutex mutex;
  int set_ups = 0;                               // that are under way
  std::multimap<std::size_t, KeptBlock> blocks;  // by capacity
  std::size_t bytes = 0;                         // of these
  std::uint64_t ages = 0;
};

/// The oldest ones, until the others take at most that many bytes.
void give_back(Kept& k, std::size_t most = 0) {
  while (k.bytes > most) {
    auto const oldest =
        std::min_element(k.blocks.begin(), k.blocks.end(), [](auto const& a, auto const& b) { return a.second.age < b.second.age; });
    std::free(oldest->second.data);
    k.bytes -= oldest->second.bytes;
    k.blocks.erase(oldest);
  }
}

Kept& kept() {
  static auto* const k = new Kept;  // arrays may be freed after static destruction began
  // a child of fork has no thread that would unlock it
  static int const once = pthread_atfork([] { kept().mutex.lock(); }, [] { kept().mutex.unlock(); }, [] { kept().mutex.unlock(); });
  static_cast<void>(once);
  return *k;
}

std::size_t page_size() {
  static auto const bytes = std::size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Of this process' control group; none: there is no limit.
std::optional<std::size_t> group_limit() {
  std::size_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) return limit;  // "max" is no number
  return {};
}

std::atomic<std::size_t> in_use{0}, most_in_use{0}, cap{0};
std::atomic<std::size_t> most_written{0};  // at most the same without room that was given back unwritten

void raise(std::atomic<std::size_t>& most, std::size_t now) {
  for (auto before = most.load(); before < now && !most.compare_exchange_weak(before, now);) {
  }
}

/// Bytes to keep while no set-up is under way: no more than were in use before, and of all ranks little beside the machine's.
std::size_t most_kept() {
#if defined(__SANITIZE_ADDRESS__)
  return 0;  // which sees no use of what is kept
#else
  static std::size_t const machine = std::size_t(sysconf(_SC_PHYS_PAGES)) * page_size(),
                           whole = std::min(machine, group_limit().value_or(machine));
  auto const before = most_in_use.load(), now = in_use.load();
  return before > now ? std::min(whole / 8 / std::size_t(node_share().ranks), before - now) : 0;
#endif
}

/// The system takes the pages where memory is short, and no page is cleared anew where it is not.
bool offer_to_system(void* data, std::size_t capacity) { return madvise(data, capacity / page_size() * page_size(), MADV_FREE) == 0; }

/// What is behind the first bytes of a block holds no memory; returns what does.
std::size_t drop_behind(void* data, std::size_t bytes, std::size_t capacity) {
  auto const begin = (bytes + page_size() - 1) / page_size() * page_size(), end = capacity / page_size() * page_size();
  if (begin >= end) return capacity;
  madvise(static_cast<char*>(data) + begin, end - begin, MADV_DONTNEED);
  return begin;
}

/// Where in a page a block begins: those that follow each other as far apart as can be.
std::size_t next_place() {
  constexpr std::size_t places[] = {0, 2048, 1024, 3072};
  static std::atomic<std::size_t> given{0};
  return places[given.fetch_add(1, std::memory_order_relaxed) % std::size(places)];
}

double seconds_to_touch(std::byte* data, std::size_t bytes, std::size_t step) {
  auto const start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < bytes; i += step) static_cast<std::byte volatile*>(data)[i] = std::byte(0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The set-up under way has met huge pages that were slow to touch.
std::atomic<bool> huge_pages_are_slow{false};

/// Says what pages a new large block of a set-up is to have, which is often written and read only once. Huge ones are the quicker to touch
/// first as well, unless a virtual machine's host took back what lay free, or the system must move others' pages to make one: then
/// several times slower. Seen from the first pages of each block: after two that took longer than as many small ones (one may have been a
/// thread that waited for its core), the rest of the set-up has small ones.
void advise(std::byte* data, std::size_t bytes) {
  static double const by_small = [] {
    void* const fresh = mmap(nullptr, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return 1.0;
    madvise(fresh, huge, MADV_NOHUGEPAGE);
    auto const seconds = seconds_to_touch(static_cast<std::byte*>(fresh), huge, small);
    munmap(fresh, huge);
    return seconds;
  }();
  if (!huge_pages_are_slow) {
    madvise(data, 2 * huge, MADV_HUGEPAGE);
    auto const is_slow = [&](int page) { return seconds_to_touch(data + page * huge, huge, small) > by_small; };
    if (is_slow(0) && is_slow(1)) huge_pages_are_slow = true;
  }
  madvise(data, bytes, huge_pages_are_slow ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
}

std::atomic<Allocator const*> allocator{nullptr}, small_allocator{nullptr};
constexpr std::size_t small_array = std::size_t(256) << 10;

/// Kept for good: blocks remember theirs.
Allocator const* keep(Allocator a) {
  static auto* const all = new std::vector<std::unique_ptr<Allocator const>>;
  std::lock_guard const lock(kept().mutex);
  all->push_back(std::make_unique<Allocator const>(std::move(a)));
  return all->back().get();
}

#if defined(__SANITIZE_ADDRESS__)
/// Only the bytes that were asked for may be touched: the sanitizer itself sees the block with what rounding adds.
Block guarded(Block const& b, std::size_t bytes) {
  auto const* const data = static_cast<char const*>(b.data);
  ASAN_POISON_MEMORY_REGION(data - b.behind, b.behind);
  ASAN_POISON_MEMORY_REGION(data + bytes, b.capacity - b.behind - bytes);
  return b;
}
void unguard(Block const& b) { ASAN_UNPOISON_MEMORY_REGION(static_cast<char const*>(b.data) - b.behind, b.capacity); }
#else
Block guarded(Block const& b, std::size_t) { return b; }
void unguard(Block const&) {}
#endif

/// Counts a block before it is there, and no longer where it is not got.
struct Counted {
  explicit Counted(std::size_t n) : bytes(n) {
    auto const now = in_use.fetch_add(n) + n;
    if (auto const limit = cap.load(); limit && now > limit) {
      in_use -= n;
      fail(ErrorKind::memory, "an array of {} bytes would bring the arrays of this process to {} bytes, above the cap of {} (-memory_cap).",
           n, now, limit);
    }
    raise(most_in_use, now);
    raise(most_written, now);
  }
  ~Counted() {
    if (!kept) in_use -= bytes;
  }
  std::size_t bytes;
  bool kept = false;
};

}  // namespace

void set_allocator(Allocator users) {
  ASTERISM_REQUIRE(!users.allocate == !users.release, value,
                   "set_allocator: {} is given without {}. Give both functions, or neither for the system's memory.",
                   users.allocate ? "allocate" : "release", users.allocate ? "release" : "allocate");
  allocator = users.allocate ? keep(std::move(users)) : nullptr;
}

void set_small_allocator(Allocator a) { small_allocator = keep(std::move(a)); }

MemoryUse memory_use() { return {in_use, most_in_use, cap}; }
void set_memory_cap(std::size_t bytes) { cap = bytes; }

Block allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  bool const is_large = bytes >= large;
  std::size_t const align = is_large ? huge : 64;
  std::size_t const whole = (bytes + align - 1) / align * align;
  ASTERISM_REQUIRE(whole >= bytes, memory, "an array of {} bytes overflows the address space.", bytes);
  auto const* const users = allocator.load();
  auto const* const small_ones = !users && whole <= small_array ? small_allocator.load() : nullptr;
  bool const is_staggered = !users && !small_ones && whole >= staggered;
  std::size_t const behind = is_staggered ? next_place() : 0, capacity = whole + (is_staggered ? small : 0);
  Counted counted(capacity);
  if (users) {
    void* const data = users->allocate(capacity, align);
    ASTERISM_REQUIRE(data, memory, "the allocator that was set has no {} bytes.", capacity);
    counted.kept = true;
    return {data, capacity, capacity, users};
  }
  if (small_ones)
    if (void* const data = small_ones->allocate(capacity, align)) {
      counted.kept = true;
      return {data, capacity, capacity, small_ones};
    }
  bool in_set_up = false;
  if (is_large) {
    auto& k = kept();
    std::lock_guard const lock(k.mutex);
    in_set_up = k.set_ups > 0;
    auto const fit = k.blocks.lower_bound(capacity);
    if (fit != k.blocks.end() && fit->first <= most_loose * capacity) {
      auto* const begin = static_cast<char*>(fit->second.data);
      Block const b{begin + behind, fit->first, capacity, nullptr, behind};
      k.bytes -= fit->second.bytes;
      k.blocks.erase(fit);
      drop_behind(begin, capacity, b.capacity);
      counted.kept = true;
      return guarded(b, bytes);
    }
    // what is kept does not add to the most that was in use
    auto const most = most_written.load(), now = in_use.load();
    give_back(k, most > now ? most - now : 0);
  }
  void* data = nullptr;  // not aligned_alloc: the capacity is no multiple of the alignment
  auto const is_given = [&] { return posix_memalign(&data, align, capacity) == 0; };
  if (!is_given()) {  // what is kept may be what is missing
    std::lock_guard const lock(kept().mutex);
    give_back(kept());
    if (!is_given()) data = nullptr;
  }
  ASTERISM_REQUIRE(data, memory, "out of memory: an array of {} bytes cannot be allocated.", bytes);
  // what is behind whole large pages has small ones
  if (in_set_up) advise(static_cast<std::byte*>(data), whole);
  else if (is_large) madvise(data, whole, MADV_HUGEPAGE);
  counted.kept = true;
  return guarded({static_cast<char*>(data) + behind, capacity, capacity, nullptr, behind}, bytes);
}

void shrink(Block& block, std::size_t bytes) noexcept {
  if (block.from || block.capacity < large) return;
  auto const counted =
      std::min(block.counted, drop_behind(static_cast<char*>(block.data) - block.behind, block.behind + bytes, block.capacity));
  auto const unwritten = block.counted - counted, now = in_use.fetch_sub(unwritten) - unwritten;
  for (auto most = most_written.load(); !most_written.compare_exchange_weak(most, std::max(now, most - std::min(most, unwritten)));) {
  }
  block.counted = counted;
}

namespace {
std::size_t bytes_kept() {
  auto& k = kept();
  std::lock_guard const lock(k.mutex);
  return k.bytes;
}
}  // namespace

std::size_t available_memory() {
  std::size_t out = std::numeric_limits<std::size_t>::max();
  std::ifstream machine("/proc/meminfo");
  for (std::string name, unit; machine >> name;) {
    std::size_t kib = 0;
    if (!(machine >> kib)) break;
    if (name == "MemAvailable:") out = std::min(out, kib * 1024);
    std::getline(machine, unit);
  }
  std::size_t used = 0;
  if (auto const limit = group_limit(); limit && (std::ifstream("/sys/fs/cgroup/memory.current") >> used))
    out = std::min(out, *limit - std::min(*limit, used) + bytes_kept());
  if (auto const use = memory_use(); use.cap > 0) out = std::min(out, use.cap > use.now ? use.cap - use.now : 0);
  return out == std::numeric_limits<std::size_t>::max() ? 0 : std::max<std::size_t>(out, 1);
}

void release(Block block) noexcept {
  in_use -= block.counted;
  if (block.from) return block.from->release(block.data, block.capacity);
  unguard(block);
  void* const data = static_cast<char*>(block.data) - block.behind;
  if (block.capacity >= large) {
    auto& k = kept();
    std::lock_guard const lock(k.mutex);
    auto const most = k.set_ups > 0 ? std::numeric_limits<std::size_t>::max() : most_kept();
    if (k.set_ups > 0 || (block.counted <= most && offer_to_system(data, block.capacity))) {
      give_back(k, most - std::min(most, block.counted));
      try {
        k.blocks.emplace(block.capacity, KeptBlock{data, k.ages++, block.counted});
        k.bytes += block.counted;
        return;
      } catch (...) {  // no memory for the list: give the block back
      }
    }
  }
  std::free(data);
}

KeepFreed::KeepFreed() {
  auto& k = kept();
  std::lock_guard const lock(k.mutex);
  if (k.set_ups++ == 0) huge_pages_are_slow = false;
}

KeepFreed::~KeepFreed() {
  auto& k = kept();
  std::lock_guard const lock(k.mutex);
  if (--k.set_ups > 0) return;
  give_back(k, most_kept());
  if (!std::all_of(k.blocks.begin(), k.blocks.end(), [](auto const& block) { return offer_to_system(block.second.data, block.first); }))
    give_back(k);
}

}  // namespace asterism::device::host
