// Queues and vectors on them, as Python holds them.
#pragma once
#include <utility>

#include "bindings.hpp"

namespace asterism::python {

/// The last handle to a queue closes it, which waits for tasks; one of those may be a Python function that wants the lock.
template <class T>
struct Unlocked {
  T value;
  Unlocked(T v) : value(std::move(v)) {}
  Unlocked(Unlocked const&) = default;
  Unlocked& operator=(Unlocked const&) = default;
  ~Unlocked() {
    GilRelease const gil;
    T const last = std::move(value);
  }
};
using Queue = Unlocked<device::Queue>;
using QueueVector = Unlocked<la::Vector>;

}  // namespace asterism::python
