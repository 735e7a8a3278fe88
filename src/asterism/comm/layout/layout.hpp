// Who owns which global index: contiguous ranges in rank order.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

class Layout {
 public:
  Layout() : Layout(Communicator(), 0) {}
  /// This rank owns `local` indices; offsets follow by rank. Collective.
  Layout(Communicator const& comm, std::int64_t local);
  /// `global` indices dealt evenly in whole blocks: the first ranks own one block more. Not collective.
  static Layout even(Communicator const& comm, std::int64_t global, std::int64_t block = 1);
  /// From all ranks' first indices (size + 1 entries, the same everywhere). Not collective.
  static Layout from_offsets(Communicator const& comm, std::vector<std::int64_t> offsets);

  Communicator const& comm() const { return comm_; }
  std::int64_t local_size() const { return end() - begin(); }
  std::int64_t global_size() const { return offsets_->back(); }
  std::int64_t begin() const { return (*offsets_)[std::size_t(comm_.rank())]; }
  std::int64_t end() const { return (*offsets_)[std::size_t(comm_.rank()) + 1]; }
  bool owns(std::int64_t global) const { return global >= begin() && global < end(); }
  int owner(std::int64_t global) const;
  std::vector<std::int64_t> const& offsets() const { return *offsets_; }
  /// The same indices on the same ranks.
  bool fits(Layout const& other) const;

 private:
  Communicator comm_;
  std::shared_ptr<std::vector<std::int64_t> const> offsets_;
};

}  // namespace asterism::comm
