// Connected components of a matrix's graph: parts of the unknowns without an entry between them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::la {

/// Rows i and j are connected if a_ij or a_ji is not zero, or by others. Numbered by first rows, so the same on any number of ranks.
class Components {
 public:
  /// Of a square matrix. Cost: a pass over the entries; on several ranks a halo exchange, and each pair of ranks' components that touch
  /// goes to all ranks once. Collective.
  explicit Components(Matrix const& A);
  /// Of all ranks.
  std::int64_t count() const { return count_; }
  /// Of each of my rows the place of its component in first_rows().
  std::span<std::int32_t const> of_rows() const { return of_; }
  /// Of each component with rows here: its first row, which may be another rank's.
  std::span<std::int64_t const> first_rows() const { return first_; }

  /// values: `each` numbers for every component with rows here, (components, each) row-major. Each becomes the sum, or the largest, of all
  /// ranks with rows of that component. Collective.
  void sum(std::span<double> values, std::int64_t each = 1) const;
  void max(std::span<double> values, std::int64_t each = 1) const;

  /// The first rows, ascending, of the components of all ranks that are chosen: one flag for each with rows here, the same on all ranks
  /// that have it. Collective.
  std::vector<std::int64_t> chosen(std::span<char const> flags) const;

 private:
  void join_over_ranks(Matrix const& A, std::span<std::int64_t const> touching);
  template <class F>
  void combine(std::span<double> values, std::int64_t each, F const& over_ranks) const;
  comm::Layout rows_;
  std::int64_t count_ = 0;
  std::vector<std::int32_t> of_;
  std::vector<std::int64_t> first_;
  std::vector<std::int32_t> shared_;  // of each component with rows here: its place among those of several ranks, or -1
  std::int64_t shared_count_ = 0;
};

/// Whether marks spread to all rows of a Hermitian matrix: each row takes those of its neighbours, in a few sweeps over the rows upwards
/// and downwards. So each component has each of the marks of `all`. False says nothing. Cost: mostly that of one entry of each row.
/// Collective.
bool marks_spread(Matrix const& A, std::vector<std::uint64_t> marks, std::uint64_t all);

}  // namespace asterism::la
