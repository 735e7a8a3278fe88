#include "asterism/base/profile.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "asterism/base/format.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace asterism::profile {
namespace {

struct Slot {
  std::int64_t calls = 0;
  std::int64_t ticks = 0, children = 0;
  double flops = 0, bytes = 0;
  std::int64_t messages = 0;
  double message_bytes = 0;
  std::int64_t reductions = 0;
};

struct Span {
  int event;         // or -1:
  char const* name;  // what is noted, a literal
  std::int64_t start, end;
};

struct ThreadLog {
  std::vector<Slot> slots;
  std::string name;
  std::vector<Span> spans;
  int open = -1;  // innermost open event
  Slot& at(int e) {
    if (std::size_t(e) >= slots.size()) slots.resize(std::size_t(e) + 16);
    return slots[std::size_t(e)];
  }
};

struct Registry {
  std::mutex mutex;
  std::vector<std::string> names;
  std::map<std::string, int, std::less<>> index;
  std::vector<std::shared_ptr<ThreadLog>> logs;
  ThreadLog ended;  // the sums of threads that are no more
};

Registry& registry() {
  static auto* const r = new Registry;  // threads may end after static destruction began
  return *r;
}

void add_to(ThreadLog& sum, ThreadLog const& log) {
  for (std::size_t e = 0; e < log.slots.size(); ++e) {
    auto& a = sum.at(int(e));
    auto const& s = log.slots[e];
    a.calls += s.calls;
    a.ticks += s.ticks;
    a.children += s.children;
    a.flops += s.flops;
    a.bytes += s.bytes;
    a.messages += s.messages;
    a.message_bytes += s.message_bytes;
    a.reductions += s.reductions;
  }
}

bool on = true;
bool traces = false;
std::int64_t trace_start = 0;

// One word of the memory that every thread of the process gets anyway: no call to find it.
thread_local ThreadLog* mine [[gnu::tls_model("initial-exec")]] = nullptr;
thread_local bool ended = false;  // the owner of the thread's log is no more

[[gnu::noinline]] ThreadLog& new_log() {
  struct Owner {
    std::shared_ptr<ThreadLog> log = std::make_shared<ThreadLog>();
    Owner() {
      std::lock_guard lock(registry().mutex);
      registry().logs.push_back(log);
    }
    ~Owner() {  // each queue has a thread: what they leave is one sum, but for the spans of a trace
      mine = nullptr;
      ended = true;
      auto& r = registry();
      std::lock_guard lock(r.mutex);
      add_to(r.ended, *log);
      log->slots.clear();
      if (log->spans.empty()) std::erase(r.logs, log);
    }
  };
  if (ended) {  // an event in the destruction of static objects: the registry alone holds this log
    auto& r = registry();
    std::lock_guard lock(r.mutex);
    mine = r.logs.emplace_back(std::make_shared<ThreadLog>()).get();
    return *mine;
  }
  thread_local Owner const owner;
  mine = owner.log.get();
  return *mine;
}

inline ThreadLog& log() { return mine ? *mine : new_log(); }

// Reading the clock of the system costs 50 ns on some machines, more than a short operation; the processor's counter, where it
// runs at one rate on all cores, less than 10.
bool counter_is_steady() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
#else
  return false;
#endif
}
bool const counts = counter_is_steady();

inline std::int64_t ticks() {
#if defined(__x86_64__)
  if (counts) return std::int64_t(__rdtsc());
#endif
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

struct Start {
  double seconds = now();
  std::int64_t at = ticks();
} const start_of_process;

/// Measured over the life of the process so far, a millisecond at least.
double seconds_per_tick() {
  double elapsed = 0;
  while ((elapsed = now() - start_of_process.seconds) < 1e-3) {
  }
  return elapsed / double(ticks() - start_of_process.at);
}

}  // namespace

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

int event(std::string_view name) {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  if (auto const it = r.index.find(name); it != r.index.end()) return it->second;
  r.names.emplace_back(name);
  r.index.emplace(std::string(name), int(r.names.size()) - 1);
  return int(r.names.size()) - 1;
}

int current() { return on ? log().open : -1; }

std::string name_of(int event) {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  return r.names.at(std::size_t(event));
}

void enable(bool value) { on = value; }
bool enabled() { return on; }

std::vector<Stats> snapshot() {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  double const unit = seconds_per_tick();
  std::vector<Stats> all(r.names.size());
  for (std::size_t e = 0; e < all.size(); ++e) all[e].name = r.names[e];
  ThreadLog sum;
  add_to(sum, r.ended);
  for (auto const& l : r.logs) add_to(sum, *l);
  for (std::size_t e = 0; e < sum.slots.size() && e < all.size(); ++e) {
    auto const& s = sum.slots[e];
    all[e] = {all[e].name,     s.calls,     unit * double(s.ticks), unit * double(s.ticks - s.children), s.flops, s.bytes, s.messages,
              s.message_bytes, s.reductions};
  }
  std::erase_if(all, [](Stats const& s) { return s.calls == 0; });
  return all;
}

void reset() {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  for (auto& l : r.logs)
    for (auto& s : l->slots) s = Slot{};
  r.ended.slots.clear();
}

void count_message(std::int64_t messages, double bytes) {
  auto& l = log();
  if (!on || l.open < 0) return;
  auto& s = l.at(l.open);
  s.messages += messages;
  s.message_bytes += bytes;
}

void count_reduction() {
  auto& l = log();
  if (on && l.open >= 0) ++l.at(l.open).reductions;
}

Scope::Scope(int e, double bytes, double flops) : event_(e), parent_(-1), on_(on), start_(0) {
  if (!on_) return;
  auto& l = log();
  auto& s = l.at(e);
  ++s.calls;
  s.bytes += bytes;
  s.flops += flops;
  parent_ = l.open;
  l.open = e;
  start_ = ticks();
}

Scope::~Scope() {
  if (!on_) return;
  auto& l = log();
  auto const t = ticks() - start_;
  l.at(event_).ticks += t;
  l.open = parent_;
  if (parent_ >= 0) l.at(parent_).children += t;
  if (traces) [[unlikely]]
    l.spans.push_back({event_, nullptr, start_, start_ + t});
}

QueuedScope::QueuedScope(int e) : event_(e), on_(on && e >= 0) {
  if (!on_) return;
  auto& l = log();
  l.at(e);
  parent_ = l.open;
  l.open = e;
  start_ = ticks();
}

QueuedScope::~QueuedScope() {
  if (!on_) return;
  auto& l = log();
  auto const end = ticks();
  l.at(event_).ticks += end - start_;
  l.open = parent_;
  if (traces) [[unlikely]]
    l.spans.push_back({event_, nullptr, start_, end});
}

void start_trace() {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  std::erase_if(r.logs, [](auto& l) {  // nobody else holds the log of a thread that has ended
    l->spans.clear();
    return l.use_count() == 1;
  });
  trace_start = ticks();
  traces = true;
}

std::int64_t ticks_now() { return ticks(); }

void note_span(char const* name, std::int64_t start) {
  if (traces) log().spans.push_back({-1, name, start, ticks()});
}

void name_thread(std::string name) { log().name = std::move(name); }

std::string trace_json(int process) {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  traces = false;
  double const unit = 1e6 * seconds_per_tick();
  std::string out = "{\"traceEvents\": [";
  char const* separator = "\n";
  auto const add = [&](std::string const& entry) {
    out += separator + entry;
    separator = ",\n";
  };
  for (std::size_t t = 0; t < r.logs.size(); ++t) {
    auto const& l = *r.logs[t];
    if (l.spans.empty()) continue;
    auto const where = format("\"pid\": {}, \"tid\": {}", process, t);
    add(format("{\"name\": \"thread_name\", \"ph\": \"M\", ") + where +
        format(", \"args\": {\"name\": \"{}\"}}", l.name.empty() ? "host" : l.name));
    for (auto const& s : l.spans)
      add(format("{\"name\": \"{}\", \"ph\": \"X\", \"ts\": {}, \"dur\": {}, ",
                 s.event >= 0 ? r.names[std::size_t(s.event)] : std::string(s.name), std::to_string(unit * double(s.start - trace_start)),
                 std::to_string(unit * double(s.end - s.start))) +
          where + "}");
  }
  return out + "\n]}\n";
}

void Scope::add(double bytes, double flops) {
  if (!on_) return;
  auto& s = log().at(event_);
  s.bytes += bytes;
  s.flops += flops;
}

}  // namespace asterism::profile
