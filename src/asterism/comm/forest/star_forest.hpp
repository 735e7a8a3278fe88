// Who talks to whom: leaves here point at roots anywhere, by (rank, offset).
//
// Zhang et al. (2022), PetscSF. From the leaves alone the forest finds both sides, keeps self edges out of
// MPI, sees contiguous index sets (then data are sent from and received into the user's arrays
// without a copy), and moves data as often as wanted: bcast root -> leaf, reduce leaf -> root, fetch_and_op
// both ways. Wherever several values meet in one place they are taken in (rank, leaf) order, so results do not
// depend on timing. New forests from old ones: forest_algebra.hpp.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/layout/index_set.hpp"
#include "asterism/comm/layout/items.hpp"
#include "asterism/comm/layout/layout.hpp"
#include "asterism/comm/transport/choice.hpp"

namespace asterism::comm {

struct RemoteRoot {
  std::int64_t rank, offset;
};

/// A forest's edges of one rank, by (rank, leaf).
struct Graph {
  std::vector<std::int64_t> leaves;
  std::vector<RemoteRoot> remote;
};

class StarForest {
 public:
  StarForest() = default;
  /// roots: size of my root space. leaves: my leaf positions (empty optional: 0, 1, 2, ...).
  /// remote: the root of each leaf. leaf_space: size of the leaf space (default: largest leaf + 1).
  /// Collective. Bad input is an error on all ranks.
  StarForest(Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> const& leaves,
             std::vector<RemoteRoot> const& remote, std::int64_t leaf_space = -1, TransportChoice transport = default_transport());
  /// The edges with one rank: positions of my leaves, and of their roots there, in the same order.
  struct EdgeSets {
    int rank;
    IndexSet leaves, roots;
  };
  /// The same from sets of positions, of which none is listed: boxes, layers of ghost points. One entry for each rank at most. Sums meet in
  /// the order (rank, place in the set). Collective. Cost and memory: O(pieces of the sets), whatever their sizes.
  static StarForest from_index_sets(Communicator const& comm, std::int64_t roots, std::vector<EdgeSets> edges, std::int64_t leaf_space,
                                    TransportChoice transport = default_transport());
  /// Leaves 0..n attached to the given global indices of a layout.
  static StarForest from_layout(Layout const& layout, std::span<std::int64_t const> global);

  Communicator const& comm() const;
  std::int64_t roots() const;
  std::int64_t leaves() const;
  std::int64_t leaf_space() const;
  TransportChoice transport() const;
  /// For reports and warnings.
  std::string const& name() const;
  void set_name(std::string name);
  /// My edges.
  Graph graph() const;
  /// The edges between this rank and another, or itself: my positions, in the order that both have.
  struct EdgesWith {
    int rank;
    std::vector<std::int64_t> at;
  };
  /// By rank.
  std::vector<EdgesWith> edges_at_roots() const;
  std::vector<EdgesWith> edges_at_leaves() const;
  /// A leaf position that is listed several times, or -1.
  std::int64_t repeated_leaf() const;
  /// Number of leaves attached to each of my roots.
  std::vector<std::int64_t> degree() const;
  /// Ranks I receive from and send to in a broadcast, without myself.
  std::vector<int> root_ranks() const;
  std::vector<int> leaf_ranks() const;
  struct Neighbour {
    int rank;
    bool has_leaves;  ///< leaves there on roots of mine, or roots there of my leaves
    std::int64_t edges;
    std::string pattern;         ///< of my side's positions
    std::size_t index_bytes;     ///< kept for them
    std::string_view transport;  ///< how it is reached
    std::string why;
  };
  /// Myself included.
  std::vector<Neighbour> neighbours() const;

  /// One operation under way. end() makes the result readable; a flight dropped before is finished and reported.
  class Flight {
   public:
    Flight();
    Flight(Flight&&) noexcept;
    Flight& operator=(Flight&&) noexcept;
    ~Flight();
    void end();
    /// Throws if an error of another call has given it up. Not collective.
    void require_under_way() const;

   private:
    friend class StarForest;
    struct State;
    explicit Flight(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  // All of the following are collective. Nothing may be touched between begin and end; several flights may be under way.

  /// leaf[l] = op(leaf[l], root[r]) for every edge.
  Flight bcast_begin(void const* root, void* leaf, Items const& items, Operation const& op = ReduceOp::replace) const;
  /// root[r] = op(root[r], leaf[l]) for every edge, in (rank, leaf) order, so the highest wins a replace.
  Flight reduce_begin(void const* leaf, void* root, Items const& items, Operation const& op) const;
  /// The same, and update[l] = the value of root[r] before leaf l was taken.
  Flight fetch_and_op_begin(void* root, void const* leaf, void* update, Items const& items, Operation const& op) const;

  // The same in one call. Ranks may mix these with begin and end; sums of long messages are faster so.
  void bcast(void const* root, void* leaf, Items const& items, Operation const& op = ReduceOp::replace) const;
  void reduce(void const* leaf, void* root, Items const& items, Operation const& op) const;
  void fetch_and_op(void* root, void const* leaf, void* update, Items const& items, Operation const& op) const;

  /// The forest with a root for each of my roots' leaves: grouped by root, then by (rank, leaf). Made once.
  StarForest multi() const;

  template <class T>
  Flight bcast_begin(T const* root, T* leaf, std::int64_t k = 1) const {
    return bcast_begin(root, leaf, Items::of<T>(k));
  }
  template <class T>
  void bcast(T const* root, T* leaf, std::int64_t k = 1, Operation const& op = ReduceOp::replace) const {
    bcast(static_cast<void const*>(root), static_cast<void*>(leaf), Items::of<T>(k), op);
  }
  template <class T>
  void reduce(T const* leaf, T* root, Operation const& op, std::int64_t k = 1) const {
    reduce(static_cast<void const*>(leaf), static_cast<void*>(root), Items::of<T>(k), op);
  }
  template <class T>
  void fetch_and_op(T* root, T const* leaf, T* update, Operation const& op, std::int64_t k = 1) const {
    fetch_and_op(static_cast<void*>(root), static_cast<void const*>(leaf), static_cast<void*>(update), Items::of<T>(k), op);
  }
  /// All leaf values in the roots of multi().
  template <class T>
  void gather(T const* leaf, T* multi_root, std::int64_t k = 1) const {
    multi().reduce(leaf, multi_root, ReduceOp::replace, k);
  }
  template <class T>
  void scatter(T const* multi_root, T* leaf, std::int64_t k = 1) const {
    multi().bcast(multi_root, leaf, k);
  }

 private:
  struct Impl;
  class SetUp;
  std::shared_ptr<Impl> impl_;
};

}  // namespace asterism::comm
