#include "asterism/device/race_check.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"

namespace asterism::device::race_check {
namespace {

/// Of each queue, how many of its tasks are known to be done.
using Clock = std::map<std::uint64_t, std::uint64_t>;

void join(Clock& into, Clock const& from) {
  for (auto const& [queue, at] : from) into[queue] = std::max(into[queue], at);
}

struct Use {
  std::uintptr_t begin, end;
  std::uint64_t queue, at;
  bool writes;
  std::string name;
};

struct State {
  std::mutex mutex;
  std::map<std::uint64_t, Clock> queues;                             // where each queue has come to
  std::map<std::pair<std::uint64_t, std::uint64_t>, Clock> tickets;  // (task queue, number)
  Clock host;
  std::vector<Use> uses;
};
State& state() {
  static auto* s = new State;
  return *s;
}
std::atomic<bool> on{false};

}  // namespace

void enable(bool value) {
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  on = value;
  s.queues.clear();
  s.tickets.clear();
  s.host.clear();
  s.uses.clear();
}

bool enabled() { return on.load(std::memory_order_relaxed); }

void submitted(std::uint64_t queue, host::Ticket const& ticket, int event, std::vector<Intent> const& intents,
               std::vector<host::Ticket> const& after) {
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  auto clock = s.queues[queue];
  join(clock, s.host);
  for (auto const& t : after)
    if (auto const it = s.tickets.find({t.tasks->serial(), t.number}); it != s.tickets.end()) join(clock, it->second);
  auto const at = ++clock[queue];
  auto const name = format("{} (task {} of queue {})", event >= 0 ? profile::name_of(event) : "a task", at, queue);
  for (auto const& i : intents) {
    auto const begin = reinterpret_cast<std::uintptr_t>(i.buffer->data()), end = begin + i.buffer->bytes();
    bool const writes = i.access != Access::read;
    for (auto const& u : s.uses) {
      if (u.end <= begin || end <= u.begin || !(writes || u.writes) || (u.queue == queue && u.at == at)) continue;
      auto const known = clock.find(u.queue);
      if (known != clock.end() && known->second >= u.at) continue;
      fail(ErrorKind::unsupported,
           "race: {} {} bytes that {} {}, and nothing orders them. Two arrays over the same memory? Use views of one array, or let one "
           "queue wait for the other (join, wait_for).",
           name, writes ? "writes" : "reads", u.name, u.writes ? "writes" : "reads");
    }
  }
  for (auto const& i : intents) {
    auto const begin = reinterpret_cast<std::uintptr_t>(i.buffer->data()), end = begin + i.buffer->bytes();
    bool const writes = i.access != Access::read;
    if (writes)
      std::erase_if(s.uses, [&](Use const& u) { return u.begin >= begin && u.end <= end; });  // later ones are ordered by this one
    s.uses.push_back({begin, end, queue, at, writes, name});
  }
  s.tickets[{ticket.tasks->serial(), ticket.number}] = clock;
  s.queues[queue] = std::move(clock);
}

void recorded(std::uint64_t queue, host::Ticket const& event) {
  if (!enabled() || !event.tasks) return;
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  join(s.tickets[{event.tasks->serial(), event.number}], s.queues[queue]);
}

void host_waited(std::uint64_t tasks, std::uint64_t number) {
  if (!enabled()) return;
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  if (auto const it = s.tickets.find({tasks, number}); it != s.tickets.end()) join(s.host, it->second);
}

void forget(void const* memory, std::size_t bytes) {
  if (!enabled()) return;
  auto& s = state();
  std::lock_guard const lock(s.mutex);
  auto const begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + bytes;
  std::erase_if(s.uses, [&](Use const& u) { return u.begin >= begin && u.end <= end; });
}

}  // namespace asterism::device::race_check
