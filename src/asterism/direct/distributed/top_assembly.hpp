// The matrix at the top, before it is factored: entries of B, and what subtrees leave for it.
#pragma once
#include <cstdint>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/direct/distributed/block_cyclic_factors.hpp"
#include "asterism/direct/distributed/distribution.hpp"
#include "asterism/direct/distributed/parcels.hpp"
#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"

namespace asterism::direct {

class TopAssembly {
 public:
  TopAssembly(comm::Communicator const& comm, Distribution const& parts, BlockCyclicMatrix top)
      : comm_(comm), parts_(parts), top_(std::move(top)) {}

  /// Of numbers of the top; of Hermitian kinds an entry of the upper triangle.
  template <class T>
  void add(Entry<T> const& e);
  /// The updates of this rank's subtrees go to the blocks that they belong to; their memory is freed. Sums are in the order of the ranks,
  /// after this rank's own. Collective.
  template <class T>
  void add_updates(NumericFactors& factors);

 private:
  /// Rows of supernode i and columns of supernode j, m x n.
  struct Block {
    std::int32_t i, j, m, n;
  };
  /// To a block of this rank, by numbers of the top. lower, upper: m x n and, of LU below the diagonal, n x m, the part that it mirrors;
  /// column-major with so many numbers from one column to the next.
  template <class T>
  void add_block(Block const& block, std::vector<std::int32_t> rows, std::vector<std::int32_t> columns, T const* lower,
                 std::int64_t lower_next, T const* upper, std::int64_t upper_next) const;
  /// Numbers of the top become places in a block.
  void place(std::int32_t i, std::int32_t j, std::vector<std::int32_t>& rows, std::vector<std::int32_t>& columns) const;

  comm::Communicator comm_;
  Distribution const& parts_;
  BlockCyclicMatrix top_;
};

}  // namespace asterism::direct
