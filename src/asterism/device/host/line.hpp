// What queues of the host are made of: lines of tasks, numbered in the order of their submission.
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

class Line;

/// A task of a line; nothing: no task. Closed lines are not freed, because tickets stay in ledgers, but opened again for the next
/// queue, where numbers go on.
struct Ticket {
  Line* line = nullptr;
  std::uint64_t number = 0;
};

struct Task {
  std::function<void(Queue&)> work;
  std::vector<std::uint64_t> after;  ///< tasks of the same line, where it does not keep the order anyway
  std::vector<Ticket> elsewhere;     ///< tasks of other lines
  int event = -1;                    ///< the profiling event that its time belongs to
};

class Line {
 public:
  explicit Line(bool in_order);
  virtual ~Line() = default;
  /// Runs what is left, in the end by the caller's time. A worker thread must not wait for others: it leaves its line to finish alone.
  virtual void close() = 0;
  /// Frees what finished tasks held. Done by who submits, not by the worker: neither memory nor counts travel between cores, and
  /// objects of the caller's world end in the caller's thread.
  virtual void retire() {}
  Line(Line const&) = delete;
  Line& operator=(Line const&) = delete;

  std::uint64_t serial() const { return serial_; }  ///< an address may come back for another line, this does not
  bool in_order() const { return in_order_; }
  /// Until a task can be added without waiting.
  virtual void make_room() {}
  /// Its number, from 1 on. One submitter at a time.
  virtual std::uint64_t add(Task task) = 0;
  /// After add(), when the ledgers are free again.
  virtual void submitted() {}
  /// Of Context::collect_launches(): whether a task was added.
  virtual bool collect_launches(bool) { return false; }
  virtual std::uint64_t last() const = 0;
  virtual bool reached(std::uint64_t number) const = 0;
  /// Returns when the task is done. Never called by one of the line's own tasks.
  virtual void reach(std::uint64_t number) = 0;
  /// The first error of its tasks, once. The tasks that came after it were not run.
  virtual std::exception_ptr take_error() = 0;

  /// Waits of the host for this line by reason: counted where the host waits (wait_for in ledger.cpp), nowhere else.
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

/// Lines that are closed, to be opened again; one list for each kind.
class ClosedLines {
 public:
  void put(Line* line);
  Line* take();  ///< nullptr: none

 private:
  std::mutex mutex_;
  std::vector<Line*> lines_;
};

/// A worker thread that runs the tasks in order; it opens the parallel regions of its kernels. A submitter that is some thousand
/// tasks ahead waits for room.
Line* thread_line();
/// Runs tasks when somebody waits, on the waiting thread, in a random order that `after` and `elsewhere` allow, the same for
/// one seed. For tests.
Line* shuffle_line(std::uint64_t seed);

/// Whether this thread is the worker of a thread line.
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

/// Calls of reach() of thread lines, and of lines into a caller's stream, that found work left: an independent count of waits, for
/// tests.
std::int64_t blocking_reaches();
void note_blocking_reach();

}  // namespace asterism::device::host
