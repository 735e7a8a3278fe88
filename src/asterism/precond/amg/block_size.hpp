// Unknowns of a node, found in a matrix's pattern; and rows moved so that no node is dealt to two ranks.
#pragma once
#include <optional>

#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/la/submatrix.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond::amg {

/// 2 to 6, or 1: the largest number of consecutive rows whose patterns fit together, as those of a mesh's node do: blocks of this size on
/// the grid of its multiples are at least 0.6 full, and 1.3 times as full as on any shifted grid, which keeps bands and dense blocks from
/// looking like nodes. Judged by nodes at a prime stride, all of a small matrix, some hundreds of a large one: the same on any number of
/// ranks. Collective.
std::int64_t detected_block_size(la::Matrix const& A);

/// The same matrix with each node's rows on the rank of its first one, and the way of vectors there and back.
class WholeNodes {
 public:
  /// Whether a node of so many rows is on two ranks. The same on all ranks.
  static bool needed(la::Layout const& layout, std::int64_t block_size);
  /// Collective.
  WholeNodes(la::Layout const& layout, std::int64_t block_size);
  /// keep: what is faster at the next matrix of this pattern (memory_bytes). Collective.
  la::Matrix matrix(la::Matrix const& A, bool keep) { return keep ? move_.matrix(A, plan_) : move_.matrix(A); }
  std::size_t memory_bytes() const { return plan_ ? plan_->memory_bytes() : 0; }
  /// y = f(x), f on the moved rows. Costs a message to and from a neighbour on each side, of a part of a node.
  template <class F>
  void apply(la::Vector const& x, la::Vector& y, F const& f) const {
    auto const lease = work_.lease(x, [&] { return new_work(x); });
    auto& w = *lease;
    forest_.bcast_begin(x.queue(), x.dtype(), x.columns(), x.data(), w.x.data()).end();
    f(w.x, w.y);
    forest_.reduce_begin(y.queue(), y.dtype(), y.columns(), w.y.data(), y.data(), comm::ReduceOp::replace).end();
  }

 private:
  struct Work {
    la::Vector x, y;
  };
  Work new_work(la::Vector const& like) const;
  la::Redistribution move_;
  std::optional<la::Submatrix> plan_;
  comm::QueuedForest forest_;
  mutable Scratch<Work> work_;
};

}  // namespace asterism::precond::amg
