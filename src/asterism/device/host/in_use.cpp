#include "asterism/device/host/in_use.hpp"

#include "asterism/base/error.hpp"
#include "asterism/device/host/forks.hpp"

namespace asterism::device::host {

InUse::Turn::Turn(InUse& of, bool may_wait, char const* what) : of_(of) {
  auto const me = std::this_thread::get_id();
  ASTERISM_REQUIRE(of.owner_.load() != me, unsupported,
                   "{}: this thread is using the same solver already, in a function that is called during a solve. Make another solver.",
                   what);
  auto const before = forks();
  if (!of.mutex_.try_lock()) {
    auto const of_turn = of.forks_.load();
    ASTERISM_REQUIRE(of_turn < 0 || of_turn == before, unsupported,
                     "{}: a thread was using this solver when this process was forked, and is not here to end that. Make another solver.",
                     what);
    ASTERISM_REQUIRE(may_wait, unsupported,
                     "{}: another thread is using this solver. On several ranks threads have no common order: let one thread make all "
                     "collective calls.",
                     what);
    of.mutex_.lock();
  }
  of.owner_ = me;
  of.forks_ = before;
}

InUse::Turn::~Turn() {
  of_.owner_ = std::thread::id();
  of_.forks_ = -1;
  of_.mutex_.unlock();
}

}  // namespace asterism::device::host
