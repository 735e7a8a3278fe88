// A triangular solve on one rank, driven by the messages that arrive: Ding et al. (2021), algorithm 1, for processors without kernels that
// wait. It knows nothing of how messages travel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "asterism/direct/triangular/local_triangle.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"

namespace asterism::direct {

/// How many numbers of x, of what kind and from where.
struct Envelope {
  MessageKind kind = MessageKind::broadcast;
  std::int32_t node = 0;
  int rank = 0;  ///< the other end
};

/// One solve after the other; forward, x goes down the columns of L and sums along its rows. A rank does whatever is ready, in any order:
///  - x of a supernode arrives: it is forwarded to the children in its tree first, then multiplied by this rank's blocks;
///  - the last contribution to a sum came: it goes to the parent in its tree, or, on the owner of the diagonal block, becomes x.
/// One thread leads: it alone receives and sends. Others may assist: they take supernodes and runs of blocks (block_runs.hpp) as these
/// become ready. Parts of a sum are kept, and added in a fixed order when all are there: its bits depend neither on when messages come nor
/// on threads. That takes memory for a number for each row of each block, and each column of x.
class MessageDrivenSweep {
 public:
  /// The data are only there during the call.
  using Send = std::function<void(Envelope const&, std::span<std::byte const>)>;
  MessageDrivenSweep(std::shared_ptr<LocalTriangle const> triangle, std::shared_ptr<SweepPlan const> plan, Send send);
  ~MessageDrivenSweep();
  MessageDrivenSweep(MessageDrivenSweep&&) noexcept;

  /// Numbers of x that this rank owns, for one column: its diagonal supernodes one after the other.
  std::int64_t owned() const;
  /// x: on entry the right-hand side, at the end the solution; rows of `columns` numbers.
  /// beside: of each supernode with work outside the blocks, one after the other, what that adds to the sum forward; or nothing.
  /// assisted: whether threads will call assist() before stop().
  void begin(std::int64_t columns, std::span<std::byte> x, std::span<std::byte const> beside = {}, bool assisted = false);
  /// When all is done: x of these supernodes, in the same order.
  void end(std::span<std::byte> beside);
  /// A message. Errors of kind comm: a message that is not awaited, came twice or has another size; it is named.
  void receive(Envelope const& from, std::span<std::byte const> data);
  /// Whether receive() would take it: false for one that came already, and belongs to the next solve.
  bool awaits(Envelope const& from) const;
  /// What is ready to be sent is sent, and a task that is ready is done; false if there is none.
  bool work();
  bool done() const;
  /// Whether nothing goes on without a message; if not, and it is not done, another thread is at a task, which may make others ready.
  bool needs_message() const;
  /// Until something may be ready, or for a moment.
  void wait_for_others();
  /// Another thread's part: tasks as they become ready, until stop().
  void assist();
  /// For the leader, whether all is done or not; threads that assist leave.
  void stop();
  /// Messages that did not come yet, some of them by name.
  std::string awaited() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::direct
