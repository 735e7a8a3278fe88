// Where the parts of distributed sparse factors are: whole subtrees on one rank each, what is above them on all in blocks.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "asterism/direct/symbolic/symbolic.hpp"
#include "asterism/direct/triangular/block_pattern.hpp"
#include "asterism/direct/triangular/process_grid.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"

namespace asterism::direct {

struct DistributionOptions {
  ProcessGrid grid;
  bool subtrees = true;            ///< false: all supernodes are in blocks
  std::int32_t block_width = 128;  ///< columns of a block at most, at the top
  bool checksums = false;          ///< of the messages of solves
};

/// Numbers of B count all columns; numbers of the top count those of its supernodes; numbers of this rank count the columns of its
/// subtrees, and then those of the top's supernodes that these have entries in.
struct Distribution {
  std::vector<int> rank_of;                    ///< of each column of B: whose subtree it is in; -1: the top
  std::vector<std::int32_t> number;            ///< of each column of B, at the top or on its rank
  std::shared_ptr<BlockPattern const> top;     ///< supernodes above all subtrees, divided into blocks
  std::vector<std::int32_t> node_of;           ///< of each column of the top
  std::vector<std::int32_t> top_columns;       ///< their numbers of B
  Symbolic forest;                             ///< this rank's subtrees
  std::vector<std::int32_t> own;               ///< numbers of B of this rank's subtrees' columns
  std::vector<std::int32_t> touched;           ///< supernodes of the top that they have entries in
  std::vector<std::int32_t> place_of_touched;  ///< of each supernode of the top: this rank's number of its first column; or -1
  std::int32_t size = 0;                       ///< columns that this rank has a number for
  Outside outside;                             ///< for each supernode of the top, whose subtrees have entries in it
  double top_work = 0, most_work = 0;          ///< flops of a symmetric factorisation: at the top, and in a rank's subtrees at most
};

/// The same on all ranks but for what is this rank's. Memory: of the order of the supernodes' rows.
Distribution distribute(Symbolic const& symbolic, int ranks, int rank, DistributionOptions const& options);

}  // namespace asterism::direct
