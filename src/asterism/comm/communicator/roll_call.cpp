#include "asterism/comm/communicator/roll_call.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>

#include "asterism/base/format.hpp"
#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/device/host/helper.hpp"
#include "asterism/device/host/patience.hpp"

namespace asterism::comm::roll_call {

std::atomic<double> detail::most_seconds{0};

namespace {

std::function<std::string()>& stack_of_program() {
  static auto* const f = new std::function<std::string()>;
  return *f;
}

node::CallNow* here() {
  auto* const arena = node::Arena::mine();
  return arena ? &arena->head().call : nullptr;
}

void nap(std::int64_t milliseconds) {
  timespec const t{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  nanosleep(&t, nullptr);
}

/// Prints this process's stack when another one calls the roll.
class Watch {
 public:
  Watch()
      : helper_([this] {
          auto* const call = here();
          if (call && call->stack_wanted.load() != 0) {
            print_stack();
            call->stack_wanted = 0;
          }
          nap(100);
        }) {
    helper_.begin();
  }
  static void print_stack() {
    if (!stack_of_program()) return;
    auto const text = format("process {}:\n{}\n", getpid(), stack_of_program()());
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

 private:
  device::host::Helper helper_;
};

std::string line(int rank, node::CallNow const& call) {
  auto const since = call.since.load(std::memory_order_acquire);
  if (since == 0) return format("  rank {}: in no call of this library; it has made {} collective calls\n", rank, call.serial.load());
  char name[sizeof call.name];
  std::memcpy(name, call.name, sizeof name);
  name[sizeof name - 1] = 0;
  double const seconds = 1e-9 * double(device::host::now() - since);
  return format("  rank {}: in {}, its collective call {}, for {} s\n", rank, name, call.serial.load(), std::int64_t(seconds * 10) / 10.0);
}

}  // namespace

void enter(char const* name, std::uint64_t serial) {
  auto* const call = here();
  if (!call) return;
  std::strncpy(call->name, name, sizeof call->name - 1);
  call->serial.store(serial, std::memory_order_relaxed);
  call->since.store(device::host::now(), std::memory_order_release);
}

void leave() {
  if (auto* const call = here()) call->since.store(0, std::memory_order_release);
}

void set_hang_timeout(double seconds) {
  detail::most_seconds = seconds;
  static auto* watch = static_cast<Watch*>(nullptr);
  if (seconds > 0 && !watch) watch = new Watch;
}

void set_stack(std::function<std::string()> stack) { stack_of_program() = std::move(stack); }

void call_and_abort(Communicator const& comm, double waited) {
  auto& node = *comm.node();
  auto* const first = !node.shares_memory() ? here() : node.rank_of(0) == comm.rank() ? here() : &node.mapping(0)->head().call;
  if (first && first->roll_is_called.exchange(1) != 0) {  // another rank is at it, and will end this process
    nap(5000);
    std::_Exit(1);
  }
  auto out = format("asterism: rank {} of {} has waited for other ranks for {} s (-hang_timeout {}). Who is where:\n", comm.rank(),
                    comm.size(), std::int64_t(waited * 10) / 10.0, hang_timeout());
  if (auto const* const mine = here()) out += line(comm.rank(), *mine);
  for (int i = 0; node.shares_memory() && i < node.size(); ++i)
    if (node.rank_of(i) != comm.rank()) out += line(node.rank_of(i), node.mapping(i)->head().call);
  if (node.size() < comm.size()) out += format("  {} ranks on other machines are not shown\n", comm.size() - node.size());
  out += "Ranks in different calls, or in none, are those that the others wait for. Their stacks:\n";
  std::fwrite(out.data(), 1, out.size(), stderr);
  std::fflush(stderr);
  Watch::print_stack();
  for (int i = 0; node.shares_memory() && i < node.size(); ++i)
    if (node.rank_of(i) != comm.rank()) node.mapping(i)->head().call.stack_wanted = 1;
  auto const told = [&] {
    for (int i = 0; node.shares_memory() && i < node.size(); ++i)
      if (node.rank_of(i) != comm.rank() && node.mapping(i)->head().call.stack_wanted != 0) return false;
    return true;
  };
  for (int tenths = 0; tenths < 50 && !(tenths > 0 && told()); ++tenths) nap(100);
  mpi()->abort(comm.handle(), 1);
  std::_Exit(1);
}

}  // namespace asterism::comm::roll_call
