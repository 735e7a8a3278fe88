// Host memory of arrays.
#pragma once
#include <cstddef>
#include <functional>

namespace asterism::device::host {

/// Who gives memory for arrays, instead of the system. Called from any thread; `allocate` returns nullptr where it has none.
struct Allocator {
  std::function<void*(std::size_t bytes, std::size_t alignment)> allocate;
  std::function<void(void* data, std::size_t bytes)> release;
};
/// For arrays made from now on; each block goes back to whom it came from. Without functions: the system again.
void set_allocator(Allocator allocator);

/// The same for arrays of at most 256 KiB alone, unless set_allocator() has been called.
void set_small_allocator(Allocator allocator);

/// Bytes of all arrays now and at most so far (not those in memory shared between processes), and the cap.
struct MemoryUse {
  std::size_t now = 0, most = 0, cap = 0;
};
MemoryUse memory_use();
/// From now on an array that would bring the sum beyond it is a memory error with the figures; 0: no cap.
void set_memory_cap(std::size_t bytes);
/// Bytes that this process may still take: of the machine, of its control group, and below the cap. 0: not known.
std::size_t available_memory();

struct Block {
  void* data = nullptr;
  std::size_t capacity = 0;         ///< what was got for it
  std::size_t counted = 0;          ///< what is in use of that
  Allocator const* from = nullptr;  ///< nothing: the system
  std::size_t behind = 0;           ///< so many bytes behind the beginning of the memory that the system gave
};

/// At least `bytes` bytes, aligned to 64; from 8 MiB on, on 2 MiB pages, in a set-up (KeepFreed) where the system has them ready. From 64
/// KiB on, blocks of the system that follow each other begin at different places of a 4 KiB page, which costs a page: kernels were slower
/// where all their vectors begin at the same one (decision 033). Throws a memory error.
Block allocate(std::size_t bytes);
/// Only so many bytes are needed any more: the rest of a large block is no memory, and not in use.
void shrink(Block& block, std::size_t bytes) noexcept;
void release(Block block) noexcept;

/// While one of these lives, all freed large blocks are kept for the next arrays that fit: a set-up allocates and frees many arrays, and
/// fresh pages are cleared by the system at a few GB/s, which was a fifth of multigrid's set-up. What is kept hardly adds to the peak: an
/// allocation that finds no fitting block first gives back what would bring the sum beyond the most that was in use. Afterwards, as at
/// other times, some are kept too: the next set-up and the next solve need the like again (decision 042).
class KeepFreed {
 public:
  KeepFreed();
  ~KeepFreed();
  KeepFreed(KeepFreed const&) = delete;
  KeepFreed& operator=(KeepFreed const&) = delete;
};

}  // namespace asterism::device::host
