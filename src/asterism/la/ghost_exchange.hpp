// The values of a vector that a matrix's rows need from other ranks.
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
  /// ghost = x there, k columns of T. Other work of the queue may come in between. On a GPU what others ask for is packed there; MPI
  /// takes it from its memory where that was prepared, else it goes through the host. Collective; some ranks may be on GPUs and others not.
  template <class T>
  Flight begin(device::Queue const& queue, std::int64_t k, device::Array const& x, device::Array const& ghost) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace asterism::la
