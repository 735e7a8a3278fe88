// Which thread this is.
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// A number that no other living thread of this process has; not 0.
inline std::uintptr_t this_thread() {
  thread_local char const mine = 0;
  return reinterpret_cast<std::uintptr_t>(&mine);
}

}  // namespace asterism::device::host
