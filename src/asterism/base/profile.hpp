// Events: calls, seconds, flops, bytes, messages. Cheap enough to stay on (two reads of the cycle counter a call).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace asterism::profile {

struct Stats {
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0;       ///< wall time between begin and end
  double self_seconds = 0;  ///< the same less the events inside it
  double flops = 0;
  double bytes = 0;  ///< least memory traffic of the operation, by its own count
  std::int64_t messages = 0;
  double message_bytes = 0;
  std::int64_t reductions = 0;
};

/// Number of an event; the same name gives the same number.
int event(std::string_view name);
void enable(bool on);
bool enabled();
/// All events of this process that were called, summed over its threads.
std::vector<Stats> snapshot();
void reset();
/// Attributed to the innermost open event.
void count_message(std::int64_t messages, double bytes);
void count_reduction();
double now();
/// The innermost open event of this thread, or -1.
int current();
std::string name_of(int event);

/// Times its own lifetime.
class Scope {
 public:
  explicit Scope(int event, double bytes = 0, double flops = 0);
  ~Scope();
  Scope(Scope const&) = delete;
  Scope& operator=(Scope const&) = delete;
  void add(double bytes, double flops);

 private:
  int event_, parent_;
  bool on_;
  std::int64_t start_;
};

/// What each thread does, and when, from now on; a span for each event and for what is noted. Costs some 30 bytes a span.
void start_trace();
/// Chrome's trace format, which Perfetto (ui.perfetto.dev) shows; of this process, with microseconds since start_trace().
std::string trace_json(int process);
/// A span that is no event, from `start` (of ticks_now()) to now.
void note_span(char const* name, std::int64_t start);
std::int64_t ticks_now();
/// How this thread is called in traces.
void name_thread(std::string name);

/// Work of an event that another thread submitted: its time, and what it counts, but no call.
class QueuedScope {
 public:
  explicit QueuedScope(int event);
  ~QueuedScope();
  QueuedScope(QueuedScope const&) = delete;
  QueuedScope& operator=(QueuedScope const&) = delete;

 private:
  int event_, parent_ = -1;
  bool on_;
  std::int64_t start_ = 0;
};

}  // namespace asterism::profile
