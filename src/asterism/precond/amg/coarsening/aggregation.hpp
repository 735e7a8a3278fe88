// Which unknowns hang together, and how they are grouped: the same on any number of ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/la/products/rows.hpp"

namespace asterism::precond::amg {

using comm::Layout;
using la::append_in_shares, la::cancellable_for, la::is_look, la::matrix_of, la::rows_of, la::with_ghost_rows;
using la::Buffer, la::ColumnMap, la::Halo, la::Matrix, la::Piece, la::Rows;

/// Strong couplings between nodes (groups of block_size rows), without the diagonal, columns ascending.
struct NodeGraph {
  Layout layout;  ///< of the nodes
  std::int32_t count = 0;
  Buffer<std::int64_t> ptr;
  Buffer<std::int32_t> col;
  ColumnMap map;
  Halo halo;
  bool with_self = false;           ///< each node is among its own neighbours
  bool symmetric = false;           ///< neighbours are each other's, but for rounding
  bool complete = false;            ///< no entry of the matrix is a weak coupling, on any rank
  std::vector<std::int32_t> alone;  ///< own nodes that become an aggregate each
  std::int64_t neighbours(std::int32_t v) const { return ptr[v + 1] - ptr[v] - with_self; }
};

/// Those of a list of nodes that are other ranks', each once. Global indices below 0 and beyond the last one are no nodes.
class FarNodes {
 public:
  FarNodes(Layout const& layout, Buffer<std::int64_t> const& nodes);
  bool is_mine(std::int64_t node) const { return node >= begin_ && node < end_; }
  std::size_t size() const { return nodes_.size(); }
  std::size_t at(std::int64_t node) const;
  /// Between them and what their ranks have. Collective.
  comm::StarForest forest() const { return comm::StarForest::from_layout(layout_, nodes_); }

 private:
  Layout layout_;
  std::int64_t begin_, end_;
  std::vector<std::int64_t> nodes_;
};

/// The nodes of rows with these columns, without couplings. Collective.
NodeGraph nodes_of(Layout const& rows, ColumnMap const& columns, std::int64_t block_size);

/// i and j are coupled if |a_ij|^2 >= threshold^2 |a_ii| |a_jj| and a_ij is not 0 (Vanek, Mandel, Brezina 1996), and where that is asked
/// for also if |a_ij| >= threshold |a_ii|; for nodes the Frobenius norms of the blocks.
template <class T>
NodeGraph strong_couplings(Rows<T> const& A, Layout const& layout, std::int64_t block_size, double threshold, comm::Cancellation& cancel,
                           bool or_by_row = false);

/// Scalar rows that all have a diagonal, and no weak coupling: they are the graph themselves.
template <class T>
NodeGraph pattern_graph(Rows<T> const& A, Layout const& layout);

struct Aggregates {
  Buffer<std::int64_t> of_node;  ///< coarse global index of each of the map's nodes, ghosts too; -1: none
  Layout coarse;                 ///< owned by the rank of the aggregate's root, in the order of the roots
  bool boxes = false;            ///< of a regular grid
};

/// On a regular grid with these lengths boxes: see grid_boxes.hpp; empty: none are wanted. Else each node of an independent set with its
/// neighbours (independent_set.hpp), and those of a second set among what is left. Then the rest joins the neighbour it has most couplings
/// with. Nodes without strong couplings stay out. Collective.
Aggregates aggregate(NodeGraph const& graph, std::vector<std::int64_t> const& grid, comm::Cancellation& cancel);

}  // namespace asterism::precond::amg
