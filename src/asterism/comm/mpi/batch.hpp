// Requests of MPI.
#pragma once
#include <time.h>

#include "asterism/comm/mpi/loaded_mpi.hpp"
#include "asterism/device/host/patience.hpp"

namespace asterism::comm {

/// Tests until all requests are done, with naps between; look() is called before each nap and may throw. Returns MPI's error.
template <class F>
int test_until_done(MpiApi const& api, MpiApi::Batch batch, F const& look) {
  device::host::Patience patience;
  for (int done = 0;;) {
    if (int const error = api.testall(batch, &done); error || done) return error;
    if (!patience.over()) continue;
    look();
    timespec const nap{0, 50'000};
    nanosleep(&nap, nullptr);
  }
}

class Batch {
 public:
  explicit Batch(MpiApi const& api = *mpi()) : api_(api), batch_(api.batch_new()) {}
  ~Batch() { api_.batch_free(batch_); }
  Batch(Batch const&) = delete;
  Batch& operator=(Batch const&) = delete;
  MpiApi::Batch get() const { return batch_; }
  /// Waits for all of it where a communicator is being made: errors of others are not looked for, as wait_for() does (wait.hpp).
  /// look() may throw.
  template <class F>
  void finish(char const* call, F const& look) const {
    check_mpi(test_until_done(api_, batch_, look), call);
  }
  void finish(char const* call) const {
    finish(call, [] {});
  }

 private:
  MpiApi const& api_;
  MpiApi::Batch batch_;
};

}  // namespace asterism::comm
