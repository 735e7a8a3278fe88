// Star forests whose data queues work on, GPUs' above all: operations are submitted, and nobody waits for them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "asterism/base/dtype.hpp"
#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/device/array.hpp"

namespace asterism::comm {

/// A star forest's operations as work of queues, ordered with what else makes and uses the arrays by their ledgers: the one way in which
/// products, operators and users get entries of other ranks. On the host the star forest itself works in the queue. On a GPU values are
/// packed, combined and put in place there, those of contiguous positions neither packed nor unpacked. Messages go between the GPUs in the
/// order of streams (gpu/transport.hpp), from the GPU's memory by MPI that takes it, or through the host by the forest's transport. Same
/// bits as the star forest's (of products of complex numbers to rounding). Zhang et al. (2022), sections 5.3 and 5.4.
class QueuedForest {
 public:
  QueuedForest() = default;
  /// For any queues, of one rank on a GPU and of another on the host too. Collective.
  explicit QueuedForest(StarForest forest);
  /// For that queue and others of its memory. The forest's transport says who carries messages between GPUs. Collective; an error on all
  /// ranks if some of their queues are on GPUs and others not, or if the chosen transport cannot be used.
  QueuedForest(StarForest forest, device::Queue const& queue);

  StarForest const& forest() const;
  /// How messages of the queue that this was made for go, and why, for people.
  std::string const& transport() const;
  /// What GPUs need, where messages between them or MPI that takes their memory were found: what is made later has it at once. Collective.
  void prepare_for_gpu() const;

  /// An operation under way: its arrays are not to be changed before its end, other work goes on. Dropped before, it is ended then.
  class Flight {
   public:
    Flight() = default;
    Flight(Flight&& other) noexcept = default;
    Flight& operator=(Flight&& other) noexcept {
      state_.swap(other.state_);
      return *this;
    }
    ~Flight();
    /// Submits the rest: what comes next finds the result. Collective, as begin is.
    void end();

   private:
    friend class QueuedForest;
    struct State;
    explicit Flight(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
  };

  // k values of `dtype` for each root and leaf. Collective, in the order of the program. replace, sum, prod, and min and max of real ones.
  // The arrays may be parts of one.

  Flight bcast_begin(device::Queue const& queue, Dtype dtype, std::int64_t k, device::Array const& root, device::Array const& leaf,
                     ReduceOp op = ReduceOp::replace) const;
  Flight reduce_begin(device::Queue const& queue, Dtype dtype, std::int64_t k, device::Array const& leaf, device::Array const& root,
                      ReduceOp op = ReduceOp::sum) const;
  Flight fetch_and_op_begin(device::Queue const& queue, Dtype dtype, std::int64_t k, device::Array const& root, device::Array const& leaf,
                            device::Array const& update, ReduceOp op) const;
  /// The same as reduce_begin() and end(), in one task where it can: sums of long messages are faster so.
  void reduce(device::Queue const& queue, Dtype dtype, std::int64_t k, device::Array const& leaf, device::Array const& root,
              ReduceOp op = ReduceOp::sum) const;
  /// Until all of the queue is done; an error of messages between GPUs, of which queues do not know, is thrown here, once.
  void wait(device::Queue const& queue) const;

 private:
  struct Impl;
  template <class F>
  Flight begun(char const* name, F const& f) const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace asterism::comm
