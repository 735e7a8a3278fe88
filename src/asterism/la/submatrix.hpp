// Rows and columns of a matrix as a matrix of its own, on any ranks; and moving whole matrices and vectors to other ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::la {

/// A[rows][:, columns], which can be taken again when A has new values.
class Submatrix {
 public:
  /// rows: the global rows of A that become mine, in any order, of any owner; they may repeat. columns: the global columns that
  /// become mine (of the diagonal block); a column may be asked for once, over all ranks. Collective; bad input is an error on all
  /// ranks. Cost: the entries of these rows pass once from their owners. Zhang et al. (2022), section 5.1.
  Submatrix(Matrix const& A, std::span<std::int64_t const> rows, std::span<std::int64_t const> columns);
  Matrix const& matrix() const;
  /// With what an update needs.
  std::size_t memory_bytes() const;
  /// matrix() becomes that of A's values now: these rows of A have the entries that they had, and only values are sent. Collective.
  void update(Matrix const& A);
  /// The same, or false on all ranks, with nothing changed, where their pattern or the dtype is another. Collective.
  bool try_update(Matrix const& A);

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_;
};

/// Indices dealt to the ranks anew, e.g. by a partitioner. On its new rank an index stands by its old rank and place.
class Redistribution {
 public:
  /// owners: the new rank of each of my indices. Collective; bad input is an error on all ranks.
  Redistribution(Layout const& from, std::span<std::int64_t const> owners);
  Layout const& from() const { return from_; }
  Layout const& to() const { return to_; }
  /// The old global indices of those that are mine now.
  std::vector<std::int64_t> const& order() const { return order_; }
  /// From old to new places: a bcast moves values there, a reduce with replace moves them back.
  comm::StarForest const& forest() const { return forest_; }
  /// A square matrix with its rows and columns moved; its block size, near-null space and coordinates go with it. Collective.
  Matrix matrix(Matrix const& A) const;
  /// The same; where the plan is of a matrix with A's pattern only values are sent, else it is made anew.
  Matrix matrix(Matrix const& A, std::optional<Submatrix>& plan) const;

 private:
  Layout from_, to_;
  std::vector<std::int64_t> owners_, order_;
  comm::StarForest forest_;
};

}  // namespace asterism::la
