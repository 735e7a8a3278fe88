// Coarse levels on fewer ranks: with few rows a rank, messages take longer than the arithmetic that they serve.
#pragma once
#include <optional>

#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/la/submatrix.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

/// How the rows of a coarse level move to fewer ranks. Ranks that follow each other give theirs to the first of them, so that global
/// numbers stay as they are. The other ranks own empty parts: they compute nothing there, and send and receive nothing in products.
class FewerRanks {
 public:
  /// For a level with fewer than rows_per_rank rows on each rank that has any, on average; else nothing. As many ranks are left as have
  /// that many rows, and at least one. 0: never. Collective where it is something.
  static std::optional<FewerRanks> of(Layout const& level, std::int64_t rows_per_rank);
  /// Where the rows are afterwards.
  Layout const& to() const { return move_.to(); }
  /// Of the level, moved. keep: what is faster at the next matrix of this pattern. Collective.
  Matrix matrix(Matrix const& A, bool keep) { return keep ? move_.matrix(A, plan_) : move_.matrix(A); }
  std::size_t memory_bytes() const { return plan_ ? plan_->memory_bytes() : 0; }
  /// k items for each of my rows, moved: `to` has room for those of my new ones. Collective.
  template <class T>
  void items(T const* from, T* to, std::int64_t k) const {
    move_.forest().bcast(from, to, comm::Items::of<T>(k));
  }
  /// R to the level and P from there, of ranks as they were, with the moved level as range and domain. Each product takes one message more
  /// of a rank that gives its rows away.
  OperatorPtr restriction(OperatorPtr R) const;
  OperatorPtr prolongation(OperatorPtr P) const;

 private:
  FewerRanks(Layout const& level, std::vector<std::int64_t> const& owners) : move_(level, owners), forest_(move_.forest()) {}
  la::Redistribution move_;
  std::optional<la::Submatrix> plan_;
  comm::QueuedForest forest_;
};

/// Ranks that own rows.
std::int64_t ranks_with_rows(Layout const& layout);

}  // namespace asterism::precond
