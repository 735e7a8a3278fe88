// Work that is skipped, or not, by a value that only the queue knows.
#pragma once
#include "asterism/device/scalar.hpp"

namespace asterism::device {

/// While it lives, what is submitted to the queue is done only where the value is not zero (`wanted`), or only where it is zero.
/// The value is that of now: work under way may not write it any more, but a Flag's.
///
///   if (Condition const restarts{queue, restart}; restarts) copy(r, r0);
///
/// Where the value is known at once, that is an ordinary `if`.
class Condition {
 public:
  Condition(Queue const& queue, Scalar const& value, bool wanted = true);
  /// Looked at before each task, not once; only for queues that do not run work at once.
  struct Until {
    Array flag;  ///< one Scalar::Value; nonzero: nothing more is done
  };
  Condition(Queue const& queue, Until const& until);
  ~Condition();
  Condition(Condition const&) = delete;
  Condition& operator=(Condition const&) = delete;
  explicit operator bool() const { return submits_; }

 private:
  Queue queue_;
  bool submits_ = true, installed_ = false;
};

}  // namespace asterism::device
