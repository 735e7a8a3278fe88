// Queues of a GPU.
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/gpu/launch_batch.hpp"
#include "asterism/device/host/task_queue.hpp"

namespace asterism::device::gpu {
namespace {

using host::Task;
using host::TaskQueue;
using host::Ticket;

host::ClosedTaskQueues& closed_task_queues() {
  static auto* const task_queues = new host::ClosedTaskQueues;  // queues may end after static destruction began
  return *task_queues;
}

constexpr std::size_t scratch_bytes = std::size_t(2) << 20;

/// Tasks are launched in order, by the worker of a thread task queue or, into a stream of the caller's, by who submits. A task is done when
/// the GPU has done it: an event recorded behind it says so. Events are recorded when somebody asks, and now and then for what tasks hold.
/// What collects launches is told to give them to the stream before anything else goes there.
class GpuTaskQueue final : public TaskQueue {
 public:
  GpuTaskQueue() : TaskQueue(true) {}

  void open(void* users_stream) {
    OnDevice const here;
    owns_stream_ = !users_stream;
    error_ = nullptr;
    failed_ = false;
    forget_waits();
    collecting_ = false;
    queue_.collector = nullptr;
    queue_.gpu_stream = users_stream;
    if (owns_stream_) check(api()->stream_new(&queue_.gpu_stream), "creating a stream");
    try {
      queue_.scratch = allocate(scratch_bytes, queue_.gpu_stream);
      queue_.scratch_bytes = scratch_bytes;
      check(api()->zero(queue_.scratch, 64, queue_.gpu_stream), "clearing memory");
    } catch (...) {
      if (owns_stream_) api()->stream_free(queue_.gpu_stream);
      throw;
    }
    batch_.open(queue_.gpu_stream);
    launcher_ = owns_stream_ ? host::thread_task_queue() : nullptr;
    if (launcher_) base_ = launcher_->last() - added_;
    else launched_ = added_.load();
  }

  void close() override {
    if (launcher_) launcher_->close();  // all is launched
    else submitted();
    batch_.close();
    api()->stream_wait(queue_.gpu_stream);  // an error shows in the next call
    done_ = added_.load();
    std::deque<Held> held;
    {
      std::lock_guard const lock(mutex_);
      for (auto& m : marks_) spare_.push_back(m.event);
      marks_.clear();
      held.swap(held_);
    }
    held.clear();
    for (auto* const e : spare_) api()->event_free(e);
    spare_.clear();
    gpu::release(queue_.scratch, scratch_bytes);
    if (owns_stream_) api()->stream_free(queue_.gpu_stream);
    closed_task_queues().put(this);
  }

  void make_room() override {
    if (launcher_) launcher_->make_room();
  }

  std::uint64_t add(Task task) override {
    auto const number = ++added_;
    auto work = std::make_shared<std::function<void(Executor&)>>(std::move(task.work));
    {
      std::lock_guard const lock(mutex_);
      held_.push_back({number, work});
    }
    if (launcher_) {
      launcher_->add(
          {[this, work = work.get(), before = std::move(task.elsewhere)](Executor&) { launch(*work, before); }, {}, {}, task.event});
    } else {
      std::lock_guard const lock(mutex_);
      pending_.push_back({number, work, std::move(task.elsewhere), task.event});
    }
    if (number % often == 0) {
      tidy(number - often);
      retire();
    }
    return number;
  }

  bool collect_launches(bool on) override {
    if (!launcher_ || !(on || collecting_)) return false;
    collecting_ = on;
    add({[this, on, before = last()](Executor&) {
           batch_.launch();
           queue_.collector = on ? &batch_ : nullptr;
           mark_piece(before);
         },
         {},
         {},
         -1});
    return true;
  }

  /// Into the caller's stream: when the ledgers are free again, since what runs on the host may use them.
  void submitted() override {
    if (launcher_ || launching_ == std::this_thread::get_id()) return;
    std::lock_guard const one_at_a_time(launch_mutex_);
    launching_ = std::this_thread::get_id();
    for (;;) {
      Pending next;
      {
        std::lock_guard const lock(mutex_);
        if (pending_.empty()) break;
        next = std::move(pending_.front());
        pending_.pop_front();
      }
      if (!failed_) try {
          profile::QueuedScope const scope(next.event);
          host::InTask const here;
          launch(*next.work, next.before);
        } catch (...) {
          error_ = std::current_exception();
          failed_ = true;
        }
      launched_ = next.number;
      launched_.notify_all();
    }
    launching_ = std::thread::id();
  }

  std::uint64_t last() const override { return added_.load(std::memory_order_relaxed); }

  bool reached(std::uint64_t number) const override { return const_cast<GpuTaskQueue*>(this)->look(number); }

  void reach(std::uint64_t number) override {
    if (look(number)) return;
    if (!launcher_) host::note_blocking_reach();
    reach_launched(number);
    void* event = nullptr;
    {
      std::lock_guard const lock(mutex_);
      event = mark_locked(number);
    }
    if (event) check(api()->event_wait(event), "waiting for the GPU");
    advance(number);
  }

  void retire() override {
    std::deque<Held> ended;  // what tasks held may end other objects: without the lock
    std::lock_guard const lock(mutex_);
    while (!held_.empty() && held_.front().number <= done_.load()) {
      ended.push_back(std::move(held_.front()));
      held_.pop_front();
    }
  }

  std::exception_ptr take_error() override {
    if (launcher_) return launcher_->take_error();
    failed_ = false;
    return std::exchange(error_, nullptr);
  }

  void* stream() const { return queue_.gpu_stream; }
  void* launched_stream() {
    reach_launched(last());
    batch_.launch();
    return queue_.gpu_stream;
  }
  void reach_launched(std::uint64_t number) {
    if (launcher_) return launcher_->reach(base_ + number);
    ASTERISM_REQUIRE(launched_.load() >= number || launching_ != std::this_thread::get_id(), unsupported,
                     "a task waits for its own queue, which would wait for ever. Read what it needs in the task itself.");
    for (auto now = launched_.load(); now < number; now = launched_.load()) launched_.wait(now);  // by who submitted it
  }

  /// What comes next on that stream comes after that task, which is launched.
  void let_follow(void* stream, std::uint64_t number) {
    if (done_.load() >= number) return;
    reach_launched(number);
    std::lock_guard const lock(mutex_);
    if (auto* const event = mark_locked(number)) check(api()->stream_after(stream, event), "ordering two streams");
  }

 private:
  static constexpr std::uint64_t often = 64;
  struct Mark {
    std::uint64_t number;
    void* event;
  };
  struct Held {
    std::uint64_t number;
    std::shared_ptr<std::function<void(Executor&)>> work;
  };

  void launch(std::function<void(Executor&)>& work, std::vector<Ticket> const& before) {
    OnDevice const here;
    for (auto const& t : before) {
      if (auto* const other = dynamic_cast<GpuTaskQueue*>(t.tasks)) other->let_follow(queue_.stream(), t.number);
      else t.tasks->reach(t.number);
    }
    queue_.guard_count = 0;  // an error may have left some
    work(queue_);
    check(api()->launch_error(), "launching a kernel");
  }

  bool is_launched(std::uint64_t number) const { return launcher_ ? launcher_->reached(base_ + number) : launched_.load() >= number; }

  /// The event behind a launched task, recorded now if none is; nullptr: it is done.
  void* mark_locked(std::uint64_t number) {
    if (done_.load() >= number) return nullptr;
    for (auto const& m : marks_)
      if (m.number >= number) return m.event;
    void* event = nullptr;
    if (!spare_.empty()) event = spare_.back(), spare_.pop_back();
    else {
      OnDevice const here;
      check(api()->event_new(&event), "creating an event");
    }
    batch_.launch();
    check(api()->event_record(event, queue_.gpu_stream), "recording an event");
    marks_.push_back({number, event});
    return event;
  }

  /// So that what ended tasks held can go. Not within a piece of work that is collected: it would end there.
  void tidy(std::uint64_t number) {
    std::lock_guard const lock(mutex_);
    if (number > 0 && !collecting_ && is_launched(number)) mark_locked(number);
    take_ended();
  }
  void mark_piece(std::uint64_t number) {
    if (number < marked_ + often / 2) return;
    marked_ = number;
    std::lock_guard const lock(mutex_);
    mark_locked(number);
  }

  void advance(std::uint64_t number) {
    std::lock_guard const lock(mutex_);
    while (!marks_.empty() && marks_.front().number <= number) {
      spare_.push_back(marks_.front().event);
      marks_.pop_front();
    }
    if (done_.load() < number) done_.store(number);
  }

  bool look(std::uint64_t number) {
    if (done_.load() >= number) return true;
    if (!is_launched(number)) return false;
    std::lock_guard const lock(mutex_);
    mark_locked(number);
    take_ended();
    return done_.load() >= number;
  }

  void take_ended() {
    while (!marks_.empty()) {
      int ended = 0;
      check(api()->event_done(marks_.front().event, &ended), "asking for an event");
      if (!ended) break;
      if (done_.load() < marks_.front().number) done_.store(marks_.front().number);
      spare_.push_back(marks_.front().event);
      marks_.pop_front();
    }
  }

  bool owns_stream_ = true, failed_ = false;
  std::atomic<bool> collecting_{false};
  LaunchBatch batch_;
  std::uint64_t marked_ = 0;  // the last by mark_piece()
  Executor queue_;
  TaskQueue* launcher_ = nullptr;
  std::uint64_t base_ = 0;  // its last task before ours
  std::atomic<std::uint64_t> added_{0}, done_{0};
  std::exception_ptr error_;
  std::mutex mutex_;
  std::deque<Mark> marks_;
  std::vector<void*> spare_;
  std::deque<Held> held_;
  // into the caller's stream
  struct Pending {
    std::uint64_t number;
    std::shared_ptr<std::function<void(Executor&)>> work;
    std::vector<Ticket> before;
    int event;
  };
  std::deque<Pending> pending_;
  std::atomic<std::uint64_t> launched_{0};
  std::mutex launch_mutex_;
  std::atomic<std::thread::id> launching_;
};

host::TaskQueue* open_task_queue(void* users_stream) {
  auto* tasks = static_cast<GpuTaskQueue*>(closed_task_queues().take());
  if (!tasks) tasks = new GpuTaskQueue;
  try {
    tasks->open(users_stream);
  } catch (...) {
    closed_task_queues().put(tasks);
    throw;
  }
  return tasks;
}

}  // namespace

host::TaskQueue* tasks() { return open_task_queue(nullptr); }

host::TaskQueue* task_queue_on(void* stream) {
  constexpr std::uintptr_t legacy_default = 1;  // cudaStreamLegacy: a name for the stream whose handle is 0
  return open_task_queue(stream ? stream : reinterpret_cast<void*>(legacy_default));
}

void* stream_of(host::TaskQueue const& tasks) { return dynamic_cast<GpuTaskQueue const&>(tasks).stream(); }

void* launched_stream(host::TaskQueue& tasks) { return dynamic_cast<GpuTaskQueue&>(tasks).launched_stream(); }

}  // namespace asterism::device::gpu
