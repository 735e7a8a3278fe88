// Queues that work is submitted to.
//
// From the declared intents a queue derives the order that must be kept, also between queues, and which memory must be copied.
//   inline    runs work at once on the caller's thread and team; the default
//   thread    a worker thread runs it in order
//   strict    as thread, but its data lie apart as a device's do, and what must not be read there or here is NaN: for tests
//   cuda, hip a GPU's stream, launched into by a worker thread; what has no form for it runs on the host with its data copied (array.hpp)
//   shuffle   runs it when somebody waits, in a random order that the intents allow: a missing intent shows as a wrong
//             answer. For tests
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/device/buffer.hpp"

namespace asterism::device {

struct WaitCount {
  std::string reason;
  std::int64_t count;
};

/// How a new thread or GPU queue stands to others: PETSc's four kinds of streams.
enum class StreamKind : std::uint8_t {
  shared,               ///< the process's one default queue
  own,                  ///< a queue of its own, ordered with others by intents and events alone
  shared_with_barrier,  ///< the same, and the host waits after every submission: to find where something goes wrong
  own_with_barrier,
};

/// The point that a queue had come to. Of the inline queue: done.
class Event {
 public:
  Event() = default;
  bool done() const;
  /// The host waits; counted.
  void wait(char const* reason = "event") const;

 private:
  friend class Queue;
  host::Ticket ticket_;
};

/// A shared handle to a queue.
class Queue {
 public:
  static Queue const& host();
  static Queue thread(StreamKind kind = StreamKind::own);
  static Queue strict();
  /// Repeatable for a seed. Those forked from it share its lot of tasks.
  static Queue shuffle(std::uint64_t seed);
  /// On this process's GPU; `name` is cuda, hip or auto. An error that says what is missing where there is none.
  static Queue gpu(std::string_view name = "auto", StreamKind kind = StreamKind::own);
  /// Into a stream of the caller's (a cudaStream_t), from the submitting thread at once, so that the caller's own work there keeps its
  /// order. Work that must run on the host makes the caller wait then, which is counted.
  static Queue gpu_on(void* stream, std::string_view name = "auto");
  /// inline, thread, strict, shuffle, cuda or hip; an OptionError lists them otherwise.
  static Queue from_name(std::string_view name, std::uint64_t seed = 1);

  std::string_view kind() const;
  bool runs_inline() const { return impl_ == nullptr; }
  Memory memory() const;
  /// Of a GPU, for libraries and kernels of the user's own; what was submitted before is launched when this returns. Else nullptr.
  void* stream() const;

  /// Another queue of this kind, after all that this one was given so far.
  Queue fork() const;
  /// What comes next here waits for all that the other was given so far.
  void join(Queue const& other) const { wait_for(other.record()); }
  Event record() const;
  /// What comes next here comes after the event. The host does not wait.
  void wait_for(Event const& event) const;

  /// Whether the work has a form for the queue's memory, or works on the host's: data are copied then, which is counted. Or, on a GPU's
  /// queue, is work of the host in its turn that hands addresses of the GPU's memory on.
  enum class Form : std::uint8_t { any, host, host_on_device_data };
  void enqueue(std::vector<Intent> intents, std::function<void(Executor&)> work, Form form = Form::any) const;
  /// What follows comes again and again, as the body of a loop does, and begins anew here. On a GPU kernels are collected until the next
  /// such call, or until somebody waits, and launched together: from the second time on as a graph. `false`: no more.
  void collect_launches(bool on) const;
  /// What a higher floor keeps with a GPU's queue: who carries messages between such queues of all ranks.
  void set_peers(std::shared_ptr<void const> peers) const;
  std::shared_ptr<void const> peers() const;
  /// Until all submitted work is done. Errors of queued work are thrown here, once.
  void wait(char const* reason) const;
  /// The same while an error is under way: what is still queued may use memory that goes with it. Errors of queued work are dropped.
  void finish() const noexcept;
  /// Waits of the host so far, by reason.
  std::vector<WaitCount> waits() const;
  double waited_seconds() const;
  friend bool operator==(Queue const& a, Queue const& b) { return a.impl_ == b.impl_; }

 private:
  friend class Condition;
  friend class Event;
  static Queue on_task_queue(std::string_view kind, Memory memory, std::shared_ptr<host::TaskQueue> tasks);
  static Queue of_kind(std::string_view name, Memory memory, StreamKind kind, host::TaskQueue* (*make)());
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace asterism::device
