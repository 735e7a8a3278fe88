#include "asterism/comm/communicator/progress.hpp"

#include <atomic>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/host/helper.hpp"

namespace asterism::comm {
namespace {

struct Progress {
  explicit Progress(MpiApi const* api) : helper([this, api] { api->progress(comm); }) {}
  std::atomic<MpiApi::Comm> comm{0};
  device::host::Helper helper;
};

std::atomic<Progress*> progress{nullptr};

}  // namespace

bool progress_thread() { return progress.load() != nullptr; }

void set_progress_thread(bool on) {
  if (on == progress_thread()) return;
  if (!on) {
    delete progress.exchange(nullptr);
    return;
  }
  ASTERISM_REQUIRE(mpi(), comm, "a progress thread was asked for, but MPI is not loaded.");
  require_thread_multiple("a progress thread");
  progress = new Progress(mpi());
}

void detail::operation_begins(unsigned long long communicator) {
  auto* const p = progress.load(std::memory_order_relaxed);
  if (!p) return;
  p->comm = communicator;
  p->helper.begin();
}
void detail::operation_ends() {
  if (auto* const p = progress.load(std::memory_order_relaxed)) p->helper.end();
}

}  // namespace asterism::comm
