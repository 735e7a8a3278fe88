// Leaving long loops early: after Ctrl-C on this rank, or an error of another one.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>

#include "asterism/base/interrupt.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/host/this_thread.hpp"

namespace asterism::comm {

/// Work of one collective call: its progress, and why it should end. Made by the thread that does the call.
class Cancellation {
 public:
  /// progress must live as long.
  Cancellation(Communicator const& comm, Progress& progress) : comm_(comm), progress_(progress) {}
  Cancellation(Cancellation const&) = delete;
  Cancellation& operator=(Cancellation const&) = delete;

  /// So much of the progress's total is done. Throws what throw_if_requested() throws.
  void at(double done);
  /// For loops that threads share, once per some hundred rows: true if the rest of the loop is to be left out. The thread that made this
  /// asks; the others, which may have the longer part, look at the clock. Throws nothing, since no exception may leave such a loop.
  bool requested() {
    if (device::host::this_thread() == owner_) ask();
    else if (is_over(ends_)) requested_.store(true, std::memory_order_relaxed);
    return requested_.load(std::memory_order_relaxed);
  }
  /// After such a loop, or within one of this thread alone: an Interrupted error after Ctrl-C, and what another rank has reported of the
  /// call under way.
  void throw_if_requested() {
    ask();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void ask() noexcept;
  Communicator const comm_;
  Progress& progress_;
  double const ends_ = time_limit();
  std::uintptr_t const owner_ = device::host::this_thread();
  std::atomic<bool> requested_{false};
  std::exception_ptr error_;  // of the owner alone
  double done_ = 0;
  std::uint32_t times_ = 0;
};

}  // namespace asterism::comm
