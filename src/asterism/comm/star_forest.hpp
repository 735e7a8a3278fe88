// Who talks to whom: leaves here point at roots anywhere, by (rank, offset).
//
// Paper ii (PetscSF). From the leaves alone the forest finds both sides, keeps self edges out of
// MPI, sees contiguous index sets (then data are sent from and received into the user's arrays
// without a copy), and moves data as often as wanted: bcast root -> leaf, reduce leaf -> root.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "asterism/comm/communicator.hpp"
#include "asterism/comm/layout.hpp"

namespace asterism::comm {

struct RemoteRoot {
  std::int64_t rank, offset;
};

enum class ReduceOp : std::uint8_t { replace, sum, max, min };

class StarForest {
 public:
  StarForest() = default;
  /// roots: size of my root space. leaves: my leaf positions (empty optional: 0, 1, 2, ...).
  /// remote: the root of each leaf. leaf_space: size of the leaf space (default: largest leaf + 1).
  /// Collective. Bad input is an error on all ranks.
  StarForest(Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> leaves,
             std::vector<RemoteRoot> const& remote, std::int64_t leaf_space = -1);
  /// Leaves 0..n attached to the given global indices of a layout.
  static StarForest from_layout(Layout const& layout, std::span<std::int64_t const> global);

  Communicator const& comm() const;
  std::int64_t roots() const;
  std::int64_t leaves() const;
  std::int64_t leaf_space() const;
  /// Number of leaves attached to each of my roots. Collective.
  std::vector<std::int64_t> degree() const;
  /// Ranks I receive from and send to in a broadcast, without myself.
  std::vector<int> root_ranks() const;
  std::vector<int> leaf_ranks() const;
  /// Items that a broadcast sends to other ranks from here.
  std::int64_t sent_items() const;

  /// One operation under way. end() makes the result readable; a flight dropped before is finished and reported.
  class Flight {
   public:
    Flight();
    Flight(Flight&&) noexcept;
    Flight& operator=(Flight&&) noexcept;
    ~Flight();
    void end();

   private:
    friend class StarForest;
    struct State;
    explicit Flight(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  /// leaf[l] = root[r] for every edge; k items of T per root. Nothing may be touched until end().
  template <class T>
  Flight bcast_begin(T const* root, T* leaf, std::int64_t k = 1) const {
    return bcast_bytes(root, leaf, std::int64_t(sizeof(T)) * k);
  }
  template <class T>
  void bcast(T const* root, T* leaf, std::int64_t k = 1) const {
    bcast_begin(root, leaf, k).end();
  }
  /// root[r] = op(root[r], leaf[l]) for every edge, in (rank, leaf) order, so the highest wins a replace.
  template <class T>
  Flight reduce_begin(T const* leaf, T* root, ReduceOp op, std::int64_t k = 1) const;
  template <class T>
  void reduce(T const* leaf, T* root, ReduceOp op, std::int64_t k = 1) const {
    reduce_begin(leaf, root, op, k).end();
  }

 private:
  struct Impl;
  using Combine = void (*)(void* root, void const* leaf, std::int64_t const* index, std::int64_t n, std::int64_t k);
  Flight bcast_bytes(void const* root, void* leaf, std::int64_t unit) const;
  Flight reduce_bytes(void const* leaf, void* root, std::int64_t unit, std::int64_t k, Combine combine) const;
  std::shared_ptr<Impl> impl_;
};

}  // namespace asterism::comm
