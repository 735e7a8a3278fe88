#include "asterism/device/host/task_queue.hpp"

#include <atomic>

namespace asterism::device::host {

namespace {
thread_local int tasks_running = 0;
}

InTask::InTask() { ++tasks_running; }
InTask::~InTask() { --tasks_running; }
bool in_task() { return tasks_running > 0; }

TaskQueue::TaskQueue(bool in_order) : in_order_(in_order) {
  static std::atomic<std::uint64_t> count{0};
  serial_ = ++count;
}

void TaskQueue::count_wait(char const* reason, double seconds) {
  std::lock_guard const lock(waits_mutex_);
  ++waits_.by_reason[reason];
  waits_.seconds += seconds;
}

void TaskQueue::forget_waits() {
  std::lock_guard const lock(waits_mutex_);
  waits_ = {};
}

void ClosedTaskQueues::put(TaskQueue* tasks) {
  std::lock_guard const lock(mutex_);
  task_queues_.push_back(tasks);
}

TaskQueue* ClosedTaskQueues::take() {
  std::lock_guard const lock(mutex_);
  if (task_queues_.empty()) return nullptr;
  auto* const tasks = task_queues_.back();
  task_queues_.pop_back();
  return tasks;
}

TaskQueue::Waits TaskQueue::waits() const {
  std::lock_guard const lock(waits_mutex_);
  return waits_;
}

}  // namespace asterism::device::host
