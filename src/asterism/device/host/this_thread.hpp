// Which thread this is.
#pragma once
#include <pthread.h>

#include <cstdint>
#include <cstring>

namespace asterism::device::host {

/// A number that no other living thread of this process has; not 0.
inline std::uintptr_t this_thread() {
  auto const id = pthread_self();  // a number or a pointer; quicker than the address of a variable of the thread
  std::uintptr_t mine;
  static_assert(sizeof id == sizeof mine);
  std::memcpy(&mine, &id, sizeof mine);
  return mine;
}

}  // namespace asterism::device::host
