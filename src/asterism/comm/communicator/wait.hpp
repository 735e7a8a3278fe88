// Waiting for other ranks.
#pragma once
#include <cstdint>

#include "asterism/comm/mpi/mpi_api.hpp"
#include "asterism/device/host/patience.hpp"

namespace asterism::comm {

class Communicator;

/// One wait: call it each time what is waited for is not there. It looks for a while, then it sleeps, so that who is waited for may have
/// the core. Throws what another rank has reported (failures.hpp); ends the job where -hang_timeout says so.
class Wait {
 public:
  /// How it gets to know that there is something: who writes to shared memory rings this process's bell; of MPI's messages it has to look.
  enum class For : std::uint8_t { memory, messages };
  Wait(Communicator const& comm, For what) : comm_(comm), what_(what) {}
  ~Wait() {
    if (announced_) be_gone();
  }
  Wait(Wait const&) = delete;
  Wait& operator=(Wait const&) = delete;
  void operator()() {
    if (slow_ || patience_.due()) look_around();
  }
  /// A part of what is waited for has come: patience begins anew.
  void part_has_come() {
    patience_ = device::host::Patience();
    slow_ = false;
    start_ = 0;
  }

 private:
  void look_around();
  void glance();
  void sleep();
  void be_gone() const;
  Communicator const& comm_;
  For what_;
  device::host::Patience patience_;
  int glances_ = 0;
  bool slow_ = false, announced_ = false;
  std::uint32_t heard_ = 0;  // the bell's word when it was announced
  std::int64_t start_ = 0, nap_ = 0;
};

/// Until all of the batch is done. `call`: for errors.
void wait_for(Communicator const& comm, MpiApi::Batch batch, char const* call);
/// From now on processes that wait let MPI move messages, which others may wait for.
void mpi_carries_messages();

}  // namespace asterism::comm
