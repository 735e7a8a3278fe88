#include "asterism/device/host/in_use.hpp"

#include "asterism/base/error.hpp"

namespace asterism::device::host {

InUse::Turn::Turn(InUse& of, bool may_wait, char const* what) : of_(of) {
  auto const me = std::this_thread::get_id();
  ASTERISM_REQUIRE(of.owner_.load() != me, unsupported,
                   "{}: this thread is using the same solver already, in a function that is called during a solve. Make another solver.",
                   what);
  if (may_wait) of.mutex_.lock();
  else
    ASTERISM_REQUIRE(of.mutex_.try_lock(), unsupported,
                     "{}: another thread is using this solver. On several ranks threads have no common order: let one thread make all "
                     "collective calls.",
                     what);
  of.owner_ = me;
}

InUse::Turn::~Turn() {
  of_.owner_ = std::thread::id();
  of_.mutex_.unlock();
}

}  // namespace asterism::device::host
