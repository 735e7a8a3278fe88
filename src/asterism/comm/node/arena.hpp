// Memory of this process that other processes of the machine can map.
//
// One sparse memory file a process (memfd, so not bound by a container's small /dev/shm), far longer than it will be full:
// a peer maps it once and never again, and addresses travel as offsets. Nothing is freed collectively.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace asterism::comm::node {

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
  /// The block may be handed out again. Nobody reads it any more.
  void release(std::uint64_t offset, std::int64_t bytes);
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  bool contains(void const* p) const;
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
  /// nullptr if it cannot be opened from here (another machine, another container, no permission).
  static std::shared_ptr<Mapping const> open(ArenaName const& name);
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  /// Copies from any memory of that process, one pass by the system. False if it does not let us.
  bool read_private(std::uint64_t address, void* to, std::int64_t bytes) const;
  ~Mapping();
  Mapping(Mapping const&) = delete;

 private:
  Mapping() = default;
  std::byte* base_ = nullptr;
  std::uint64_t process_ = 0;
};

}  // namespace asterism::comm::node
