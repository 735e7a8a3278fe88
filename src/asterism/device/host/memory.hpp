// Host memory of arrays.
#pragma once
#include <cstddef>

namespace asterism::device::host {

struct Block {
  void* data = nullptr;
  std::size_t capacity = 0;
};

/// At least `bytes` bytes, aligned to 64, on 2 MiB pages from 8 MiB on. Throws a memory error.
Block allocate(std::size_t bytes);
void release(Block block) noexcept;

/// While one of these lives, freed large blocks are kept for the next arrays that fit, and go back to the
/// system with the last of them. A set-up allocates and frees many arrays, and fresh pages are cleared by
/// the system at a few GB/s: a fifth of multigrid's set-up was that. What is kept hardly adds to the
/// peak: an allocation that finds no fitting block first gives all of them back.
class KeepFreed {
 public:
  KeepFreed();
  ~KeepFreed();
  KeepFreed(KeepFreed const&) = delete;
  KeepFreed& operator=(KeepFreed const&) = delete;
};

}  // namespace asterism::device::host
