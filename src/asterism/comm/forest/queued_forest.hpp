// Star forests whose data queues work on, GPUs' above all: operations are submitted, and nobody waits for them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "asterism/base/dtype.hpp"
#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/device/array.hpp"

namespace asterism::comm {

/// A star forest's operations as work of a queue, ordered with what else makes and uses the arrays by their ledgers. On a GPU values are
/// packed, combined and put in place there, those of contiguous positions neither packed nor unpacked; messages go between the GPUs in the
/// order of streams (gpu/transport.hpp, or the forest's own choice of ipc, nccl or nvshmem), from the GPU's memory by MPI that takes it, or
/// packed through the host, where the forest's transport carries them. Elsewhere the star forest itself works in the queue. Same bits as
/// the star forest's (of products of complex numbers to rounding). Zhang et al. (2022), sections 5.3 and 5.4.
class QueuedForest {
 public:
  /// Collective. An error on all ranks if some of their queues are on GPUs and others not, or what was chosen to carry messages cannot.
  QueuedForest(StarForest forest, device::Queue queue);

  StarForest const& forest() const;
  device::Queue const& queue() const;
  Layout const& roots() const;   ///< for vectors with a value for each root
  Layout const& leaves() const;  ///< for each place of the leaf space
  /// How messages go, and why, for people.
  std::string const& transport() const;

  /// An operation under way: its arrays are not to be changed before its end, other work goes on. Dropped before, it is ended then.
  class Flight {
   public:
    Flight() = default;
    Flight(Flight&& other) noexcept : rest_(std::exchange(other.rest_, nullptr)) {}
    Flight& operator=(Flight&& other) noexcept {
      std::swap(rest_, other.rest_);
      return *this;
    }
    ~Flight();
    /// Submits the rest: what comes next finds the result. Collective, as begin is.
    void end();

   private:
    friend class QueuedForest;
    explicit Flight(std::function<void()> rest) : rest_(std::move(rest)) {}
    std::function<void()> rest_;
  };

  // k values of `dtype` for each root and leaf. Collective, in the order of the program. replace, sum, prod, and min and max of real ones.

  Flight bcast_begin(Dtype dtype, std::int64_t k, device::Array const& root, device::Array const& leaf, ReduceOp op) const;
  Flight reduce_begin(Dtype dtype, std::int64_t k, device::Array const& leaf, device::Array const& root, ReduceOp op) const;
  Flight fetch_and_op_begin(Dtype dtype, std::int64_t k, device::Array const& root, device::Array const& leaf, device::Array const& update,
                            ReduceOp op) const;
  /// Until all is done; an error of messages between GPUs, of which queues do not know, is thrown here, once.
  void wait() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace asterism::comm
