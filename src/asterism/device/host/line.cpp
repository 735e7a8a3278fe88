#include "asterism/device/host/line.hpp"

#include <atomic>

namespace asterism::device::host {

namespace {
thread_local int tasks_running = 0;
}

InTask::InTask() { ++tasks_running; }
InTask::~InTask() { --tasks_running; }
bool in_task() { return tasks_running > 0; }

Line::Line(bool in_order) : in_order_(in_order) {
  static std::atomic<std::uint64_t> count{0};
  serial_ = ++count;
}

void Line::count_wait(char const* reason, double seconds) {
  std::lock_guard const lock(waits_mutex_);
  ++waits_.by_reason[reason];
  waits_.seconds += seconds;
}

void Line::forget_waits() {
  std::lock_guard const lock(waits_mutex_);
  waits_ = {};
}

void ClosedLines::put(Line* line) {
  std::lock_guard const lock(mutex_);
  lines_.push_back(line);
}

Line* ClosedLines::take() {
  std::lock_guard const lock(mutex_);
  if (lines_.empty()) return nullptr;
  auto* const line = lines_.back();
  lines_.pop_back();
  return line;
}

Line::Waits Line::waits() const {
  std::lock_guard const lock(waits_mutex_);
  return waits_;
}

}  // namespace asterism::device::host
