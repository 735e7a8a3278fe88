// Memory, counted, with a ledger of who last wrote and read it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "asterism/device/host/memory.hpp"
#include "asterism/device/host/task_queue.hpp"

namespace asterism::device {

enum class Access : std::uint8_t { read, update, write };

/// Where the kernels of a queue find their data. `apart` is the strict queue's: as a device's memory, nothing else sees it. `gpu` is that
/// of this process's one GPU.
enum class Memory : std::uint8_t { host, apart, gpu };
inline constexpr int memories = 3;

/// Enqueued work holds a count until it has ended, on a GPU too, so a buffer outlives its last user.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes);
  /// Foreign memory, kept alive by owner.
  Buffer(void* data, std::size_t bytes, std::shared_ptr<void> owner);
  /// Foreign memory of the GPU; the host's copy is ours, made when asked for.
  static std::shared_ptr<Buffer> on_gpu(void* data, std::size_t bytes, std::shared_ptr<void> owner);
  /// Memory that the host and the GPU both address: nothing is copied between them.
  static std::shared_ptr<Buffer> unified(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer const&) = delete;
  Buffer& operator=(Buffer const&) = delete;
  /// nullptr where no queue has asked for that copy yet.
  void* data(Memory m = Memory::host) const { return data_[std::size_t(m)]; }
  std::size_t bytes() const { return bytes_; }
  /// Only so many are needed any more, the first ones. No task has used it.
  void shrink(std::size_t bytes);

  /// Divides it into ranges that follow each other, each with a ledger of its own: tasks on different parts are not ordered, and each part
  /// has its own newest copy. In each memory the parts lie in one block. sizes add up to bytes(); no task has used the buffer.
  void divide(std::vector<std::size_t> const& sizes);
  /// None if it was not divided.
  std::vector<std::unique_ptr<Buffer>> const& parts() const { return parts_; }
  /// Where a part begins in the whole.
  std::size_t offset() const { return offset_; }

  /// Whether the ledger must be asked: tasks use it, or it has a copy apart.
  bool involved() const { return involved_.load(std::memory_order_relaxed); }

 private:
  friend class Ledger;
  Buffer(Buffer& whole, std::size_t offset, std::size_t bytes);
  host::Block blocks_[2];  // of the host and apart
  void* data_[memories] = {};
  std::size_t bytes_ = 0;
  std::shared_ptr<void> owner_;
  bool owns_gpu_data_ = true, unified_ = false;
  Buffer* whole_ = nullptr;  // of a part, which it owns
  std::size_t offset_ = 0;
  std::vector<std::unique_ptr<Buffer>> parts_;
  // the ledger's; see ledger.cpp
  host::Ticket writer_, made_[memories];
  std::vector<host::Ticket> readers_;
  std::size_t readers_kept_ = 16;  // looked through beyond that
  bool valid_[memories] = {true, false, false};
  std::atomic<bool> involved_{false};

  /// Makes the copy there, of a part in the memory of the whole.
  void provide(Memory m, void* stream);
  /// What is valid there is valid in the memory that is the same.
  void make_valid(Memory m) {
    valid_[std::size_t(m)] = true;
    if (unified_ && m != Memory::apart) valid_[std::size_t(Memory::host)] = valid_[std::size_t(Memory::gpu)] = true;
  }
};

/// What a task does with a buffer that has no parts; the task's work holds it.
struct Intent {
  Buffer* buffer;
  Access access;
  bool whole = true;              ///< all of the buffer; a view of a part leaves the rest as it is
  std::optional<Memory> at = {};  ///< where it is used; if nothing is said, where the task's kernels find their data
};

}  // namespace asterism::device
