// Who owns which global index: contiguous ranges in rank order.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "asterism/base/lazy.hpp"
#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

class Layout {
 public:
  Layout() : Layout(Communicator(), 0) {}
  /// This rank owns `local` indices; offsets follow by rank. Collective. Memory: 8 bytes for each rank.
  Layout(Communicator const& comm, std::int64_t local);
  /// `global` indices dealt evenly in whole blocks: the first ranks own one block more. Not collective.
  static Layout even(Communicator const& comm, std::int64_t global, std::int64_t block = 1);
  /// From all ranks' first indices (size + 1 entries, the same everywhere). Not collective.
  static Layout from_offsets(Communicator const& comm, std::vector<std::int64_t> offsets);
  /// The first index of a rank as a function of a few numbers, ascending with the rank; that of rank `ranks` is the global size.
  using Rule = std::int64_t (*)(std::vector<std::int64_t> const& numbers, std::int64_t rank, std::int64_t ranks);
  /// Not collective. Memory: that of the numbers.
  static Layout from_rule(Communicator const& comm, Rule rule, std::vector<std::int64_t> numbers);

  Communicator const& comm() const { return comm_; }
  std::int64_t local_size() const { return end_ - begin_; }
  std::int64_t global_size() const { return global_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }
  bool owns(std::int64_t global) const { return global >= begin_ && global < end_; }
  int owner(std::int64_t global) const;
  /// The first index of any rank, or the global size for rank comm().size().
  std::int64_t first_of(int rank) const { return table_->first_of(rank, comm_.size()); }
  /// Of all ranks. Where a rule gives them, the list is made at the first call and kept.
  std::vector<std::int64_t> const& offsets() const;
  /// The same indices on the same ranks.
  bool fits(Layout const& other) const;

 private:
  struct Table {
    Rule rule = nullptr;
    std::vector<std::int64_t> numbers;  // of the rule
    mutable Lazy<std::vector<std::int64_t>> offsets;
    std::int64_t first_of(std::int64_t rank, std::int64_t ranks) const {
      return rule ? rule(numbers, rank, ranks) : (*offsets)[std::size_t(rank)];
    }
  };
  Layout(Communicator comm, std::shared_ptr<Table const> table);

  Communicator comm_;
  std::int64_t begin_ = 0, end_ = 0, global_ = 0;
  std::shared_ptr<Table const> table_;
};

}  // namespace asterism::comm
