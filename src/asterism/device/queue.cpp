#include "asterism/device/queue.hpp"

#include <algorithm>
#include <atomic>
#include <complex>
#include <map>
#include <mutex>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/condition.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/ledger.hpp"
#include "asterism/device/race_check.hpp"

namespace asterism::device {

namespace {

/// A shuffle queue's tasks run when somebody waits: here, whoever submits what depends on them.
void run_lots(std::vector<host::Ticket>& before) {
  for (auto const& t : before)
    if (!t.tasks->in_order()) t.tasks->reach(t.number);
  std::erase_if(before, [](auto const& t) { return !t.tasks->in_order(); });
}

std::shared_ptr<host::TaskQueue> shared(host::TaskQueue* tasks) {
  return {tasks, [](host::TaskQueue* l) { l->close(); }};
}

std::uint64_t next_queue() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

}  // namespace

struct Queue::Impl {
  std::shared_ptr<host::TaskQueue> tasks;  // closed with its last handle: what is under way may use what its owner is about to free
  std::string_view kind;
  Memory memory = Memory::host;
  bool barrier = false;
  std::shared_ptr<void const> peers;
  std::uint64_t queue = next_queue();
  // with the ledgers' mutex held
  std::vector<host::Ticket> gates;     // what the next task comes after; of a shuffle queue every later task
  std::vector<std::uint64_t> pending;  // of a shuffle queue: its tasks since the last drain
  struct Guard {
    Condition const* owner;
    Array flag;
    bool wanted;
    bool passes(Memory m) const { return (*flag.as<Scalar::Value>(m) != Scalar::Value(0)) == wanted; }
  };
  std::vector<Guard> guards;

  /// Kernels look at the guards themselves.
  static std::function<void(Executor&)> on_gpu(Ledger::Preparation const& prepared, std::vector<Guard> const& guards,
                                               std::function<void(Executor&)> work) {
    if (guards.empty() && prepared.copies.empty()) return work;
    ASTERISM_REQUIRE(guards.size() <= std::size_t(Executor::most_guards), unsupported,
                     "{} conditions within each other on a GPU; at most {}.", guards.size(), Executor::most_guards);
    return [prepared, guards, held = std::move(work)](Executor& executor) {
      if (!prepared.copies.empty()) prepared.run(executor.stream());
      executor.guard_count = 0;
      for (auto const& g : guards) executor.guards[executor.guard_count++] = {g.flag.as<Number>(Memory::gpu), g.wanted};
      held(executor);
      executor.guard_count = 0;
    };
  }
};

bool Event::done() const { return !ticket_.tasks || ticket_.tasks->reached(ticket_.number); }
void Event::wait(char const* reason) const {
  if (ticket_.tasks) device::wait_for(ticket_, reason);
}

Queue const& Queue::host() {
  static Queue const c;
  return c;
}

Queue Queue::on_task_queue(std::string_view kind, Memory memory, std::shared_ptr<host::TaskQueue> tasks) {
  Queue c;
  c.impl_ = std::make_shared<Impl>();
  c.impl_->kind = kind;
  c.impl_->memory = memory;
  c.impl_->tasks = std::move(tasks);
  return c;
}

namespace {
bool is_shared(StreamKind k) { return k == StreamKind::shared || k == StreamKind::shared_with_barrier; }
}  // namespace

/// The process's one queue of a kind, or another.
Queue Queue::of_kind(std::string_view name, Memory memory, StreamKind kind, host::TaskQueue* (*make)()) {
  Queue c;
  if (is_shared(kind)) {
    static auto* const task_queues = new std::map<Memory, std::shared_ptr<host::TaskQueue>>;  // a worker may outlive static objects
    static std::mutex mutex;
    std::lock_guard const lock(mutex);
    auto& tasks = (*task_queues)[memory];
    if (!tasks) tasks = shared(make());
    c = on_task_queue(name, memory, tasks);
  } else {
    c = on_task_queue(name, memory, shared(make()));
  }
  c.impl_->barrier = kind == StreamKind::shared_with_barrier || kind == StreamKind::own_with_barrier;
  return c;
}

Queue Queue::thread(StreamKind kind) { return of_kind("thread", Memory::host, kind, host::thread_task_queue); }

Queue Queue::strict() {
  auto c = thread();
  c.impl_->kind = "strict";
  c.impl_->memory = Memory::apart;
  return c;
}

Queue Queue::shuffle(std::uint64_t seed) { return on_task_queue("shuffle", Memory::host, shared(host::shuffle_task_queue(seed))); }

Queue Queue::gpu(std::string_view name, StreamKind kind) {
  gpu::open(name);
  return of_kind(gpu::name(), Memory::gpu, kind, gpu::tasks);
}

Queue Queue::gpu_on(void* stream, std::string_view name) {
  gpu::open(name, true);
  return on_task_queue(gpu::name(), Memory::gpu, shared(gpu::task_queue_on(stream)));
}

void* Queue::stream() const {
  if (memory() != Memory::gpu) return nullptr;
  return gpu::launched_stream(*impl_->tasks);
}

Queue Queue::from_name(std::string_view name, std::uint64_t seed) {
  if (name == "inline") return host();
  if (name == "thread") return thread();
  if (name == "strict") return strict();
  if (name == "cuda" || name == "hip") return gpu(name);
  ASTERISM_REQUIRE(name == "shuffle", option, "there is no queue '{}'. Queues: inline, thread, strict, shuffle, cuda, hip.", name);
  return shuffle(seed);
}

std::string_view Queue::kind() const { return impl_ ? impl_->kind : "inline"; }
Memory Queue::memory() const { return impl_ ? impl_->memory : Memory::host; }

Queue Queue::fork() const {
  if (!impl_) return *this;
  auto c = on_task_queue(
      impl_->kind, impl_->memory,
      impl_->tasks->in_order() ? shared(impl_->memory == Memory::gpu ? gpu::tasks() : host::thread_task_queue()) : impl_->tasks);
  c.impl_->barrier = impl_->barrier;
  c.impl_->peers = impl_->peers;
  c.wait_for(record());
  return c;
}

Event Queue::record() const {
  Event e;
  if (!impl_) return e;
  std::unique_lock lock(Ledger::mutex());
  auto& impl = *impl_;
  auto* const tasks = impl.tasks.get();
  if (tasks->in_order() && impl.gates.empty()) {
    if (auto const last = tasks->last()) e.ticket_ = {tasks, last};
  } else {  // a task that does nothing, after all that the event stands for
    host::Task mark{[](Executor&) {}, impl.pending, {}, -1};
    for (auto const& g : impl.gates)
      if (g.tasks != tasks) mark.elsewhere.push_back(g);
      else mark.after.push_back(g.number);
    run_lots(mark.elsewhere);
    if (race_check::enabled()) race_check::submitted(impl.queue, {tasks, tasks->last() + 1}, -1, {}, impl.gates);
    e.ticket_ = {tasks, tasks->add(std::move(mark))};
    if (tasks->in_order()) impl.gates.clear();
  }
  race_check::recorded(impl.queue, e.ticket_);
  lock.unlock();
  tasks->submitted();
  return e;
}

void Queue::wait_for(Event const& event) const {
  if (!event.ticket_.tasks) return;
  if (!impl_) return event.wait();
  std::lock_guard const lock(Ledger::mutex());
  impl_->gates.push_back(event.ticket_);
}

void Queue::enqueue(std::vector<Intent> intents, std::function<void(Executor&)> work, Form form) const {
  if (!impl_) {
    for (auto const& i : intents)
      if (i.buffer->involved()) Ledger::settle(*i.buffer, i.access, "work at once on what a queue uses");
    Executor executor;
    work(executor);
    return;
  }
  auto& impl = *impl_;
  auto* const tasks = impl.tasks.get();
  tasks->make_room();
  host::Ticket ticket;
  {
    std::lock_guard const lock(Ledger::mutex());
    auto const memory = form == Form::host ? Memory::host : impl.memory;
    auto* const stream = impl.memory == Memory::gpu ? gpu::stream_of(*tasks) : nullptr;
    bool const conditional = !impl.guards.empty();
    // read by whom they guard
    auto const of_guards = form == Form::host_on_device_data ? std::optional(Memory::host) : std::nullopt;
    for (auto const& g : impl.guards) intents.push_back({g.flag.buffer().get(), Access::read, true, of_guards});
    host::Task task;
    task.event = profile::current();
    auto after = impl.gates;
    auto prepared = Ledger::prepare(intents, memory, conditional, task.event, stream, after);
    if (tasks->in_order()) impl.gates.clear();
    else std::erase_if(impl.gates, [](auto const& t) { return t.tasks->reached(t.number); });
    for (auto const& t : after) {
      if (t.tasks != tasks) task.elsewhere.push_back(t);
      else if (!tasks->in_order()) task.after.push_back(t.number);
    }
    run_lots(task.elsewhere);
    if (race_check::enabled()) race_check::submitted(impl.queue, {tasks, tasks->last() + 1}, task.event, intents, after);
    if (form == Form::host_on_device_data && memory == Memory::gpu) {
      task.work = [prepared, guards = impl.guards, held = std::move(work)](Executor& executor) {
        auto* const stream = executor.stream();
        prepared.run(stream);
        gpu::wait(stream);
        for (auto const& g : guards)
          if (!g.passes(Memory::host)) return;
        held(executor);
      };
    } else if (memory == Memory::gpu) {
      task.work = Impl::on_gpu(prepared, impl.guards, std::move(work));
    } else if (conditional || stream || !prepared.copies.empty() || !prepared.spoils.empty())
      task.work = [prepared, guards = impl.guards, memory, held = std::move(work)](Executor& executor) {
        auto* const stream = executor.stream();
        if (stream) gpu::wait(stream);  // copies out of what is written here may be under way
        prepared.run(stream);
        for (auto const& g : guards)
          if (!g.passes(memory)) return;
        held(executor);
      };
    else task.work = std::move(work);
    ticket = {tasks, tasks->add(std::move(task))};
    Ledger::record(intents, memory, prepared, ticket);
    if (!tasks->in_order()) {
      if (!impl.pending.empty() && tasks->reached(impl.pending.front())) impl.pending.clear();
      impl.pending.push_back(ticket.number);
    }
  }
  tasks->submitted();
  if (impl.barrier) device::wait_for(ticket, "barrier");
}

void Queue::collect_launches(bool on) const {
  if (memory() != Memory::gpu) return;
  auto* const tasks = impl_->tasks.get();
  tasks->make_room();
  std::lock_guard const lock(Ledger::mutex());
  if (tasks->collect_launches(on)) race_check::recorded(impl_->queue, {tasks, tasks->last()});
}

void Queue::set_peers(std::shared_ptr<void const> peers) const { impl_->peers = std::move(peers); }
std::shared_ptr<void const> Queue::peers() const { return impl_ ? impl_->peers : nullptr; }

void Queue::wait(char const* reason) const {
  if (impl_) device::wait_for({impl_->tasks.get(), impl_->tasks->last()}, reason);
}

void Queue::finish() const noexcept {
  try {
    wait("error under way");
  } catch (...) {  // the first one counts
  }
}

std::vector<WaitCount> Queue::waits() const {
  std::vector<WaitCount> out;
  if (impl_)
    for (auto const& [reason, count] : impl_->tasks->waits().by_reason) out.push_back({reason, count});
  return out;
}

double Queue::waited_seconds() const { return impl_ ? impl_->tasks->waits().seconds : 0; }

Condition::Condition(Queue const& queue, Scalar const& value, bool wanted) : queue_(queue) {
  ASTERISM_REQUIRE(value.width() == 1, shape, "a condition of {} columns: work is done or skipped as a whole. Use any() of them.",
                   value.width());
  if (value.known()) {
    submits_ = (value.value() != Scalar::Value(0)) == wanted;
    return;
  }
  auto const stored = value.stored(queue);
  std::lock_guard const lock(Ledger::mutex());
  queue_.impl_->guards.push_back({this, stored.results(), wanted});
  installed_ = true;
}

Condition::Condition(Queue const& queue, Until const& until) : queue_(queue), installed_(true) {
  ASTERISM_ASSERT(!queue.runs_inline());
  std::lock_guard const lock(Ledger::mutex());
  queue_.impl_->guards.push_back({this, until.flag, false});
}

Condition::~Condition() {
  if (!installed_) return;
  std::lock_guard const lock(Ledger::mutex());
  std::erase_if(queue_.impl_->guards, [this](auto const& g) { return g.owner == this; });
}

}  // namespace asterism::device
