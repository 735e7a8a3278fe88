// The entries of other ranks that a rank reads beside its own: the one way in which products and operators get them.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/device/array.hpp"

namespace asterism::la {

class GhostExchange {
 public:
  GhostExchange() = default;
  /// From own entries (its roots) to ghosts (its leaves, counted from 0). Collective.
  explicit GhostExchange(comm::StarForest forest);
  /// ghosts: ascending global indices, none of them mine. Collective.
  GhostExchange(comm::Layout const& layout, std::span<std::int64_t const> ghosts);
  comm::StarForest const& forest() const;
  /// Where MPI was found to take the GPU's memory: what is needed to let it. Done when made, if that was known. Collective.
  void prepare_for_gpu() const;

  /// One exchange under way, as work of a queue.
  class Flight {
   public:
    /// What comes next in the queue finds the ghosts.
    void end() const;

   private:
    friend class GhostExchange;
    struct State;
    std::shared_ptr<State> state_;
  };
  /// ghost = x there, k columns of T. x and ghost may be parts of one array. Other work of the queue may come in between. On a GPU what
  /// others ask for is packed there; MPI takes it from its memory where that was prepared and each rank's ghosts stand together, else it
  /// goes through the host. Collective; some ranks may be on GPUs and others not.
  template <class T>
  Flight begin(device::Queue const& queue, std::int64_t k, device::Array const& x, device::Array const& ghost) const;
  /// x += ghost at the entries that ghosts stand for, the other way: several values of an entry are added in the order (rank, ghost).
  /// Work of the queue, on the host. Collective.
  template <class T>
  void add_back(device::Queue const& queue, std::int64_t k, device::Array const& ghost, device::Array const& x) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace asterism::la
