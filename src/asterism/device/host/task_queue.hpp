// What queues of the host are made of: tasks, numbered in the order of their submission.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "asterism/device/parallel.hpp"

namespace asterism::device::host {

class TaskQueue;

/// A task of a task queue; nothing: no task. Closed task queues are not freed but opened again, since ledgers still hold their tickets, for
/// the next queue, where numbers go on.
struct Ticket {
  TaskQueue* tasks = nullptr;
  std::uint64_t number = 0;
};

struct Task {
  std::function<void(Executor&)> work;
  std::vector<std::uint64_t> after;  ///< tasks of the same task queue, where it does not keep the order anyway
  std::vector<Ticket> elsewhere;     ///< tasks of other task queues
  int event = -1;                    ///< the profiling event that its time belongs to
};

class TaskQueue {
 public:
  explicit TaskQueue(bool in_order);
  virtual ~TaskQueue() = default;
  /// Runs what is left, in the end by the caller's time. A worker thread must not wait for others: it leaves its task queue to finish
  /// alone.
  virtual void close() = 0;
  /// Frees what finished tasks held. Done by who submits, not by the worker: neither memory nor counts travel between cores, and
  /// objects of the caller's world end in the caller's thread.
  virtual void retire() {}
  TaskQueue(TaskQueue const&) = delete;
  TaskQueue& operator=(TaskQueue const&) = delete;

  std::uint64_t serial() const { return serial_; }  ///< an address may come back for another task queue, this does not
  bool in_order() const { return in_order_; }
  /// Until a task can be added without waiting.
  virtual void make_room() {}
  /// Its number, from 1 on. One submitter at a time.
  virtual std::uint64_t add(Task task) = 0;
  /// After add(), when the ledgers are free again.
  virtual void submitted() {}
  /// Of Queue::collect_launches(): whether a task was added.
  virtual bool collect_launches(bool) { return false; }
  virtual std::uint64_t last() const = 0;
  virtual bool reached(std::uint64_t number) const = 0;
  /// Returns when the task is done. Never called by one of the task queue's own tasks.
  virtual void reach(std::uint64_t number) = 0;
  /// The first error of its tasks, once. The tasks that came after it were not run.
  virtual std::exception_ptr take_error() = 0;

  /// Waits of the host for this task queue by reason: counted where the host waits (wait_for in ledger.cpp), nowhere else.
  void count_wait(char const* reason, double seconds);
  struct Waits {
    std::map<std::string, std::int64_t> by_reason;
    double seconds = 0;
  };
  Waits waits() const;

 protected:
  void forget_waits();

 private:
  std::uint64_t serial_;
  bool in_order_;
  mutable std::mutex waits_mutex_;
  Waits waits_;
};

/// TaskQueues that are closed, to be opened again; one list for each kind.
class ClosedTaskQueues {
 public:
  void put(TaskQueue* tasks);
  TaskQueue* take();  ///< nullptr: none

 private:
  std::mutex mutex_;
  std::vector<TaskQueue*> task_queues_;
};

/// A worker thread that runs the tasks in order; it opens the parallel regions of its kernels. A submitter that is some thousand
/// tasks ahead waits for room.
TaskQueue* thread_task_queue();
/// Runs tasks when somebody waits, on the waiting thread, in a random order that `after` and `elsewhere` allow, the same for
/// one seed. For tests.
TaskQueue* shuffle_task_queue(std::uint64_t seed);

/// Whether this thread is the worker of a task queue.
bool on_worker();
/// While it lives, this thread runs a task of some queue.
class InTask {
 public:
  InTask();
  ~InTask();
  InTask(InTask const&) = delete;
  InTask& operator=(InTask const&) = delete;
};
bool in_task();

/// Calls of reach() of thread task queues, and of task queues into a caller's stream, that found work left: an independent count of waits,
/// for tests.
std::int64_t blocking_reaches();
void note_blocking_reach();

}  // namespace asterism::device::host
