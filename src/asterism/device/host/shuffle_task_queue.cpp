#include <random>
#include <unordered_set>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/host/task_queue.hpp"

namespace asterism::device::host {

namespace {

ClosedTaskQueues& closed_lots() {
  static auto* const task_queues = new ClosedTaskQueues;  // queues may end after static destruction began
  return *task_queues;
}

class ShuffleTaskQueue final : public TaskQueue {
 public:
  ShuffleTaskQueue() : TaskQueue(false) {}

  void open(std::uint64_t seed) {
    random_.seed(seed);
    error_ = nullptr;
    forget_waits();
  }
  void close() override {
    drain();
    closed_lots().put(this);
  }

  std::uint64_t add(Task task) override {
    pending_.push_back(std::move(task));
    return next_++;
  }
  std::uint64_t last() const override { return next_ - 1; }
  bool reached(std::uint64_t number) const override { return number < drained_; }
  void reach(std::uint64_t number) override {
    if (!reached(number)) drain();
  }
  std::exception_ptr take_error() override { return std::exchange(error_, nullptr); }

 private:
  void drain() {
    ASTERISM_REQUIRE(!draining_, unsupported, "a task waits for its own queue. Read what it needs in the task itself.");
    if (pending_.empty()) return;
    draining_ = true;
    auto const base = drained_;
    auto tasks = std::move(pending_);
    pending_.clear();
    std::vector<int> missing(tasks.size(), 0);
    std::vector<std::vector<std::size_t>> unblocks(tasks.size());
    std::vector<std::size_t> ready;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      std::unordered_set<std::uint64_t> const distinct(tasks[t].after.begin(), tasks[t].after.end());
      for (auto const a : distinct)
        if (a >= base && a < base + tasks.size()) {
          ++missing[t];
          unblocks[a - base].push_back(t);
        }
      if (missing[t] == 0) ready.push_back(t);
    }
    Executor executor;
    std::size_t ran = 0;
    while (!ready.empty()) {
      auto const pick = std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random_);
      auto const t = ready[pick];
      ready[pick] = ready.back();
      ready.pop_back();
      for (auto const& e : tasks[t].elsewhere) e.tasks->reach(e.number);
      try {
        if (!error_) {
          profile::QueuedScope const scope(tasks[t].event);
          InTask const here;
          tasks[t].work(executor);
        }
      } catch (...) {
        error_ = std::current_exception();
      }
      ++ran;
      for (auto const u : unblocks[t])
        if (--missing[u] == 0) ready.push_back(u);
    }
    drained_ = base + tasks.size();
    draining_ = false;
    ASTERISM_ASSERT(ran == tasks.size());
  }

  std::mt19937_64 random_;
  std::uint64_t next_ = 1, drained_ = 1;  // tasks below `drained_` are done
  std::vector<Task> pending_;             // task number drained_ + position
  std::exception_ptr error_;
  bool draining_ = false;
};

}  // namespace

TaskQueue* shuffle_task_queue(std::uint64_t seed) {
  auto* tasks = static_cast<ShuffleTaskQueue*>(closed_lots().take());
  if (!tasks) tasks = new ShuffleTaskQueue;
  tasks->open(seed);
  return tasks;
}

}  // namespace asterism::device::host
