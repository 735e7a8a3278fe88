#include "asterism/device/host/line.hpp"

#include <atomic>

namespace asterism::device::host {

Line::Line(bool in_order) : in_order_(in_order) {
  static std::atomic<std::uint64_t> count{0};
  serial_ = ++count;
}

void Line::count_wait(char const* reason, double seconds) {
  std::lock_guard const lock(waits_mutex_);
  ++waits_.by_reason[reason];
  waits_.seconds += seconds;
}

Line::Waits Line::waits() const {
  std::lock_guard const lock(waits_mutex_);
  return waits_;
}

}  // namespace asterism::device::host
