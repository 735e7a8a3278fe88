// Memory between two pages that nobody may touch: a kernel that reads or writes beyond the end, or before the start, is ended by a signal.
// The sanitizers look at unoptimized kernels; this sees what the compiler made.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <type_traits>

namespace harness {

enum class Fence { behind, before };

template <class T>
class Fenced {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// `count` zeros, with a page that nobody may touch right behind the last one or right before the first.
  explicit Fenced(std::size_t count, Fence fence = Fence::behind) : count_(count) {
    auto const page = std::size_t(sysconf(_SC_PAGESIZE)), bytes = count * sizeof(T), inner = (bytes + page - 1) / page * page;
    all_ = inner + 2 * page;
    void* const map = mmap(nullptr, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::runtime_error("no memory for fenced numbers");
    map_ = static_cast<std::byte*>(map);
    if (mprotect(map_, page, PROT_NONE) != 0 || mprotect(map_ + page + inner, page, PROT_NONE) != 0)
      throw std::runtime_error("pages cannot be protected");
    first_ = map_ + page + (fence == Fence::behind ? inner - bytes : 0);
  }
  Fenced(Fenced const&) = delete;
  Fenced& operator=(Fenced const&) = delete;
  ~Fenced() { munmap(map_, all_); }

  T* data() const { return reinterpret_cast<T*>(first_); }
  std::span<T> all() const { return {data(), count_}; }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  std::size_t count_, all_ = 0;
  std::byte *map_ = nullptr, *first_ = nullptr;
};

}  // namespace harness
