#include "asterism/comm/communicator/cancellation.hpp"

#include "asterism/comm/communicator/failures.hpp"

namespace asterism::comm {

void Cancellation::at(double done) {
  done_ = done;
  throw_if_requested();
}

void Cancellation::ask() noexcept {
  if (error_) return;
  try {
    if (requested_.load(std::memory_order_relaxed)) progress_.ask_next();  // another thread found the time to be over
    progress_.at_any_pace(done_);
    // reports from other machines are messages, which are looked for less often
    bool const far = ++times_ % 256 == 0;
    if (comm_.size() == 1 || !(far || comm_.failures().alarmed())) return;
    Failures::look(comm_, far);
    Failures::require_none(comm_);
  } catch (...) {
    error_ = std::current_exception();
    requested_.store(true, std::memory_order_relaxed);
  }
}

}  // namespace asterism::comm
