// Vectors whose new elements are not set: for what is written at once anyway.
#pragma once
#include <memory>
#include <utility>
#include <vector>

namespace asterism {

template <class T>
struct UnsetAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... A>
  void construct(U* at, A&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<A>(args)...);
  }
};

template <class T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace asterism
