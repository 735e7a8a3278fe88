// Memory of this process that other processes of the machine can map.
//
// One sparse memory file a process (memfd, so not bound by a container's small /dev/shm), far longer than it will be full:
// a peer maps it once and never again, and addresses travel as offsets. Nothing is freed collectively.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "asterism/device/host/futex.hpp"

namespace asterism::comm::node {

/// By which a process that sleeps is woken by others. (The waker's store of what is waited for, and its look at `sleepers`, stand to
/// the sleeper's count in `sleepers` and its look at what it waits for as in Dekker's protocol: one of the two sees the other.)
struct Doorbell {
  std::atomic<std::uint32_t> word{0}, sleepers{0};
  /// After the store of something that the process may wait for.
  void ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_relaxed) == 0) return;
    word.fetch_add(1, std::memory_order_seq_cst);
    device::host::futex_wake(word);
  }
};

/// An error of a rank of one communicator, for the others.
struct Failure {
  std::atomic<std::uint64_t> communicator{0};  ///< 0: none. Written last
  std::uint64_t serial = 0;                    ///< of the collective call that it ended
  std::int32_t rank = 0, kind = 0, ended = 0;
  char text[1000] = {};
};

/// The collective call that a process is in.
struct CallNow {
  std::atomic<std::int64_t> since{0};  ///< 0: in none
  std::atomic<std::uint64_t> serial{0};
  std::atomic<int> stack_wanted{0}, roll_is_called{0};
  char name[96] = {};
};

/// What the first pages of an arena hold.
struct Head {
  std::uint64_t magic = 0, token = 0;
  alignas(64) Doorbell bell;
  alignas(64) std::atomic<std::uint32_t> alarms{0};  ///< failures that others have reported to this process, or asked it to look for
  alignas(64) CallNow call;
  alignas(64) Failure failures[16];  ///< of this process, the last ones
};

/// What another process needs to find an arena. Equal bytes on different machines are told apart by `boot`.
struct ArenaName {
  std::uint64_t boot = 0, process = 0, descriptor = 0, token = 0;
};

class Arena {
 public:
  /// This process's, made at first use; nullptr if the system gives none (no memfd, an address-space limit).
  static Arena* mine();
  ArenaName const& name() const { return name_; }
  /// Offset of `bytes` bytes, aligned to 64. Zero pages until first touched. Throws a MemoryError when the arena is full.
  std::uint64_t allocate(std::int64_t bytes);
  /// 0 when it is full, and in a child of fork.
  std::uint64_t try_to_allocate(std::int64_t bytes);
  /// The block may be handed out again. Nobody reads it any more.
  void release(std::uint64_t offset, std::int64_t bytes);
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  bool contains(void const* p) const;
  /// Whether this process is a child of fork: what it writes nobody else sees.
  static bool is_copy();
  std::uint64_t offset_of(void const* p) const { return std::uint64_t(static_cast<std::byte const*>(p) - base_); }
  ~Arena();
  Arena(Arena const&) = delete;

 private:
  Arena() = default;
  struct Free;
  int file_ = -1;
  std::byte* base_ = nullptr;
  ArenaName name_;
  std::unique_ptr<Free> free_;
};

/// Another process's arena, mapped for reading and writing.
class Mapping {
 public:
  /// That of this process, which is made at first use; nullptr if it cannot be opened from here (another machine, another container,
  /// no permission).
  static std::shared_ptr<Mapping const> open(ArenaName const& name);
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  /// Copies from any memory of that process, one pass by the system. False if it does not let us.
  bool read_private(std::uint64_t address, void* to, std::int64_t bytes) const;
  ~Mapping();
  Mapping(Mapping const&) = delete;

 private:
  Mapping() = default;
  static std::shared_ptr<Mapping const> open_anew(ArenaName const& name);
  std::byte* base_ = nullptr;
  std::uint64_t process_ = 0;
};

}  // namespace asterism::comm::node
