#include "asterism/comm/communicator/wait.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/roll_call.hpp"
#include "asterism/comm/node/arena.hpp"

namespace asterism::comm {
namespace {

std::atomic<bool> mpi_in_use{false};
// Naps between two looks at MPI's messages; asleep beside the bell nothing is missed but what MPI does for others, errors from
// other machines and the time.
constexpr std::int64_t shortest_nap = 20'000, longest_nap = 200'000, beside_the_bell = 20'000'000;

}  // namespace

void mpi_carries_messages() { mpi_in_use.store(true, std::memory_order_relaxed); }

void Wait::be_gone() const { node::Arena::mine()->head().bell.sleepers.fetch_sub(1, std::memory_order_relaxed); }

void Wait::glance() {
  if (mpi_in_use.load(std::memory_order_relaxed)) mpi()->progress(comm_.handle());
  if (!comm_.failures().alarmed()) return;
  Failures::look(comm_, false);
  Failures::require_none(comm_);
}

void Wait::look_around() {
  if (!slow_ && !(slow_ = patience_.look_at_clock())) {
    if (++glances_ % 8 == 0) glance();
    return;
  }
  Failures::look(comm_, true);
  Failures::require_none(comm_);
  if (start_ == 0) start_ = device::host::now();
  if (auto const most = roll_call::hang_timeout(); most > 0) {
    double const waited = 1e-9 * double(device::host::now() - start_);
    if (waited > most) roll_call::call_and_abort(comm_, waited);
  }
  if (mpi_in_use.load(std::memory_order_relaxed)) mpi()->progress(comm_.handle());
  sleep();
}

void Wait::sleep() {
  auto* const arena = what_ == For::memory ? node::Arena::mine() : nullptr;
  if (!arena) {
    nap_ = std::clamp(2 * nap_, shortest_nap, longest_nap);
    timespec const t{0, nap_};
    nanosleep(&t, nullptr);
    return;
  }
  auto& bell = arena->head().bell;
  if (!announced_) {  // and the caller looks once more, before anybody sleeps
    heard_ = bell.word.load(std::memory_order_seq_cst);
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before the next look, which is a load of any kind
    announced_ = true;
    return;
  }
  device::host::futex_wait(bell.word, heard_, mpi_in_use.load(std::memory_order_relaxed) ? longest_nap : beside_the_bell);
  heard_ = bell.word.load(std::memory_order_seq_cst);
}

void wait_for(Communicator const& comm, MpiApi::Batch batch, char const* call) {
  Wait wait(comm, Wait::For::messages);
  for (int done = 0;;) {
    check_mpi(mpi()->testall(batch, &done), call);
    if (done) return;
    wait();
  }
}

}  // namespace asterism::comm
