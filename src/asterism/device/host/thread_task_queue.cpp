#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/host/forks.hpp"
#include "asterism/device/host/patience.hpp"
#include "asterism/device/host/task_queue.hpp"

namespace asterism::device::host {
namespace {

std::atomic<std::int64_t> blocked{0};
thread_local bool is_worker = false;

ClosedTaskQueues& closed_task_queues() {
  static auto* const task_queues = new ClosedTaskQueues;  // queues may end after static destruction began
  return *task_queues;
}

class ThreadTaskQueue;

/// TaskQueues with a thread. A fork waits a while for their tasks, since one that runs may hold a lock, which nobody would give back in the
/// child.
struct OpenTaskQueues {
  std::mutex mutex;
  std::vector<ThreadTaskQueue*> all;

  static OpenTaskQueues& get();
  static void before_fork();
  static void after_fork() { get().mutex.unlock(); }
};

class ThreadTaskQueue final : public TaskQueue {
 public:
  ThreadTaskQueue() : TaskQueue(true) {}

  void open() {
    places_ = std::make_unique<std::array<Task, room>>();
    closed_.store(false);
    error_ = nullptr;
    failed_ = false;
    forget_waits();
    add_helper_threads(1);
    forks_ = forks();
    worker_ = std::thread([this, first = added_.load() + 1] { run(first); });
    std::lock_guard const lock(OpenTaskQueues::get().mutex);
    OpenTaskQueues::get().all.push_back(this);
  }

  /// Whether all tasks are done; waits up to the deadline.
  bool settles(std::int64_t deadline) const {
    for (Patience patience; !is_lost() && !reached(last());)
      if (patience.over()) {
        if (now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    return true;
  }

  void close() override {
    {
      std::lock_guard const lock(OpenTaskQueues::get().mutex);
      std::erase(OpenTaskQueues::get().all, this);
    }
    add_helper_threads(-1);
    if (is_lost()) return;  // not opened again: who knows what the thread held
    closed_.store(true);
    wake_worker();
    // the last holder may be a task, which cannot wait; that task queue is not opened again
    if (is_worker) {
      static auto* const left = new ClosedTaskQueues;
      left->put(this);
      return worker_.detach();
    }
    worker_.join();
    retire();
    places_.reset();
    closed_task_queues().put(this);
  }

  void make_room() override {
    auto const number = added_.load(std::memory_order_relaxed) + 1;
    if (number > room) reach(number - room);
  }

  std::uint64_t add(Task task) override {
    require_thread();
    make_room();
    retire();
    auto const number = added_.load(std::memory_order_relaxed) + 1;
    place(number) = std::move(task);
    added_.store(number);
    wake_worker();
    return number;
  }

  std::uint64_t last() const override { return added_.load(std::memory_order_relaxed); }
  bool reached(std::uint64_t number) const override { return done_.load() >= number; }

  void reach(std::uint64_t number) override {
    if (reached(number)) return;
    require_thread();
    ASTERISM_REQUIRE(std::this_thread::get_id() != worker_.get_id(), unsupported,
                     "a task waits for its own queue, which would wait for ever. Read what it needs in the task itself.");
    ++blocked;
    Patience patience;
    while (!reached(number)) {
      if (!patience.over()) continue;
      std::unique_lock lock(mutex_);
      auto const wake_at = [&] { wanted_.store(std::min(wanted_.load(), number)); };  // all who are woken say so again
      progress_.wait(lock, [&] { return wake_at(), reached(number); });
    }
  }

  void retire() override {
    // taken out of its place first: it may hold the last handle to this queue, whose close() frees the places
    for (auto const end = done_.load(); retired_ < end;) auto const ended = std::exchange(place(++retired_).work, nullptr);
  }

  std::exception_ptr take_error() override {
    if (!failed_.load()) return nullptr;
    std::lock_guard const lock(mutex_);
    failed_ = false;
    return std::exchange(error_, nullptr);
  }

 private:
  bool is_lost() const { return forks_ != forks(); }
  void require_thread() const {
    ASTERISM_REQUIRE(
        !is_lost(), unsupported,
        "this queue was made before a fork, and a child process has no worker threads of its parent. Make queues in the child, "
        "or start processes with multiprocessing's 'spawn' method.");
  }

  static constexpr std::uint64_t room = 4096, nobody = ~std::uint64_t(0);
  Task& place(std::uint64_t number) { return (*places_)[number % room]; }

  // Sequentially consistent: who goes to sleep says so and looks once more, who changes something stores and then looks.
  void wake_worker() {
    if (!asleep_.load()) return;
    std::lock_guard const lock(mutex_);
    work_.notify_one();
  }
  void wake_waiters(std::uint64_t done) {
    if (done < wanted_.load()) return;
    std::lock_guard const lock(mutex_);
    wanted_.store(nobody);
    progress_.notify_all();
  }

  void run(std::uint64_t first) {
    is_worker = true;
    profile::name_thread("queue " + std::to_string(serial()));
    Executor executor;
    for (std::uint64_t next = first;; ++next) {
      Patience patience;
      while (added_.load() < next) {
        if (closed_.load() && added_.load() < next) return;
        if (!patience.over()) continue;
        std::unique_lock lock(mutex_);
        asleep_.store(true);
        work_.wait(lock, [&] { return closed_.load() || added_.load() >= next; });
        asleep_.store(false);
      }
      run_one(executor, place(next));
      done_.store(next);
      wake_waiters(next);
    }
  }

  void run_one(Executor& executor, Task& task) {
    try {
      for (auto const& t : task.elsewhere) t.tasks->reach(t.number);
      if (failed_.load()) return;
      profile::QueuedScope const scope(task.event);
      InTask const here;
      task.work(executor);
    } catch (...) {
      std::lock_guard const lock(mutex_);
      error_ = std::current_exception();
      failed_ = true;
    }
  }

  std::unique_ptr<std::array<Task, room>> places_;
  std::uint64_t retired_ = 0;  // the submitters'
  alignas(64) std::atomic<std::uint64_t> added_{0};
  std::atomic<bool> asleep_{false}, closed_{false};
  alignas(64) std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> wanted_{nobody};  // the least that a sleeper waits for
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::exception_ptr error_;
  std::thread worker_;
  int forks_ = 0;
};

OpenTaskQueues& OpenTaskQueues::get() {
  static auto* const task_queues = [] {
    pthread_atfork(before_fork, after_fork, after_fork);
    return new OpenTaskQueues;
  }();
  return *task_queues;
}

void OpenTaskQueues::before_fork() {
  get().mutex.lock();
  auto const deadline = now() + 1'000'000'000;
  for (auto const* tasks : get().all)
    if (!on_worker() && !tasks->settles(deadline)) return;
}

}  // namespace

TaskQueue* thread_task_queue() {
  auto* tasks = static_cast<ThreadTaskQueue*>(closed_task_queues().take());
  if (!tasks) tasks = new ThreadTaskQueue;
  tasks->open();
  return tasks;
}

bool on_worker() { return is_worker; }
std::int64_t blocking_reaches() { return blocked.load(); }
void note_blocking_reach() { ++blocked; }

}  // namespace asterism::device::host
