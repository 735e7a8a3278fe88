// Memory of the GPU, and that of the host which it copies without anybody waiting.
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/host/memory.hpp"

namespace asterism::device::gpu {
namespace {

/// Blocks cut from slabs that stay with the process; of few sizes.
class Slabs {
 public:
  Slabs(std::size_t slab, void* (*more)(std::size_t bytes)) : slab_(slab), more_(more) {}
  /// nullptr: there is no more.
  void* take(std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    if (auto& list = free_[bytes]; !list.empty()) {
      void* const p = list.back();
      list.pop_back();
      return p;
    }
    if (left_ < bytes) {
      auto* const fresh = static_cast<std::byte*>(more_(slab_));
      if (!fresh) return nullptr;
      next_ = fresh;
      left_ = slab_;
    }
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }
  void put(void* block, std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    free_[bytes].push_back(block);
  }

 private:
  std::size_t slab_, left_ = 0;
  void* (*more_)(std::size_t);
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::byte* next_ = nullptr;
};

/// Pinning is slow: a slab at a time.
Slabs& pinned() {
  static auto* const slabs = new Slabs(std::size_t(4) << 20, [](std::size_t bytes) {
    OnDevice const here;
    void* fresh = nullptr;
    return api()->pin(&fresh, bytes) ? nullptr : fresh;
  });
  return *slabs;
}

/// What scalars take, several times in an iteration: no calls of the runtime.
constexpr std::size_t small = 256;
std::size_t rounded(std::size_t bytes) { return bytes <= 64 ? 64 : bytes <= 128 ? 128 : small; }
Slabs& small_blocks() {
  static auto* const slabs = new Slabs(std::size_t(256) << 10, [](std::size_t bytes) {
    OnDevice const here;
    void* fresh = nullptr;
    auto* const stream = threads_stream();
    // waited for, so that any stream may use it
    return api()->allocate(&fresh, bytes, stream) || api()->stream_wait(stream) ? nullptr : fresh;
  });
  return *slabs;
}

struct State {
  std::atomic<std::size_t> now{0}, most{0}, cap{0};
  std::mutex mutex;
  std::unordered_map<void*, Allocator> users;  // who gave a block, where it was not the runtime
  Allocator allocator{};
};
State& state() {
  static auto* const s = new State;  // queues may end after static destruction began
  return *s;
}

}  // namespace

void pin_small_arrays() {
  host::set_small_allocator({[](std::size_t bytes, std::size_t) { return pinned().take(bytes); },
                             [](void* data, std::size_t bytes) { pinned().put(data, bytes); }});
}

void* allocate(std::size_t bytes, void* stream) {
  auto& s = state();
  auto const now = s.now.fetch_add(bytes) + bytes;
  try {
    if (auto const cap = s.cap.load(); cap && now > cap)
      fail(ErrorKind::memory,
           "an array of {} bytes would bring the arrays on this process's GPU to {} bytes, above the cap of {} "
           "(-gpu_memory_cap).",
           bytes, now, cap);
    Allocator users;
    {
      std::lock_guard const lock(s.mutex);
      users = s.allocator;
    }
    OnDevice const here;
    void* data = nullptr;
    if (users.allocate) {
      data = users.allocate(bytes, stream, users.context);
      ASTERISM_REQUIRE(data, memory, "the allocator that was set for the GPU has no {} bytes.", bytes);
      std::lock_guard const lock(s.mutex);
      s.users[data] = users;
    } else {
      int code = 0;
      if (bytes <= small) data = small_blocks().take(rounded(bytes));
      else code = api()->allocate(&data, bytes, stream);
      if (!data) {
        std::size_t free = 0, total = 0;
        api()->memory(&free, &total);
        fail(ErrorKind::memory, "the GPU has no {} bytes ({} of {} free; {} in arrays of this process): {}.", bytes, free, total,
             now - bytes, code ? api()->error_text(code) : "no room for small arrays");
      }
    }
    for (auto before = s.most.load(); before < now && !s.most.compare_exchange_weak(before, now);) {
    }
    return data;
  } catch (...) {
    s.now -= bytes;
    throw;
  }
}

void release(void* data, std::size_t bytes) noexcept {
  auto& s = state();
  s.now -= bytes;
  Allocator users{};
  {
    std::lock_guard const lock(s.mutex);
    if (auto const at = s.users.find(data); at != s.users.end()) users = at->second, s.users.erase(at);
  }
  // all that used it has ended, so any stream of the device will do
  if (users.release) return users.release(data, bytes, nullptr, users.context);
  if (bytes <= small) return small_blocks().put(data, rounded(bytes));
  try {
    OnDevice const here;
    api()->release(data, nullptr);
  } catch (...) {  // the runtime is gone, at the process's end
  }
}

void* allocate_unified(std::size_t bytes) {
  ASTERISM_REQUIRE(api(), unsupported, "unified memory needs a GPU: make a queue on it first.");
  OnDevice const here;
  void* data = nullptr;
  check(api()->allocate_unified(&data, bytes, device()), "allocating unified memory");
  return data;
}

void release_unified(void* data) noexcept {
  try {
    OnDevice const here;
    api()->release_unified(data);
  } catch (...) {  // the runtime is gone, at the process's end
  }
}

MemoryUse memory_use() {
  auto& s = state();
  return {s.now, s.most, s.cap};
}
void set_memory_cap(std::size_t bytes) { state().cap = bytes; }

void set_allocator(Allocator allocator) {
  ASTERISM_REQUIRE(!allocator.allocate == !allocator.release, value,
                   "set_allocator: one function without the other. Give both, or neither for the runtime's pool.");
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  s.allocator = allocator;
}

}  // namespace asterism::device::gpu
