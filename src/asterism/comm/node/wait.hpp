// Waiting for another process's memory to change.
#pragma once
#include <sched.h>

#include "asterism/comm/mpi_api.hpp"

namespace asterism::comm::node {

/// Call it each time what is waited for is not there. Spins; every so many calls it lets others run, who may be those waited
/// for, and lets MPI move its messages, which those waited for may wait for.
class Patience {
 public:
  Patience(MpiApi const* api, MpiApi::Comm comm, bool crowded) : api_(api), comm_(comm), spins_(crowded ? 100 : 20000) {}
  void operator()() {
    if (++count_ == spins_) {
      count_ = 0;
      if (api_) api_->progress(comm_);
      sched_yield();
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

 private:
  MpiApi const* api_;
  MpiApi::Comm comm_;
  int spins_, count_ = 0;
};

}  // namespace asterism::comm::node
