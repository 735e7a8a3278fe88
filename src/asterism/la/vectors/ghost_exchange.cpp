#include "asterism/la/vectors/ghost_exchange.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/base/error.hpp"
#include "asterism/comm/forest/call_check.hpp"
#include "asterism/comm/forest/edge_ends.hpp"
#include "asterism/comm/forest/gpu_aware.hpp"
#include "asterism/comm/forest/queued_forest.kernels.hpp"
#include "asterism/comm/gpu/transport.hpp"

namespace asterism::la {

using comm::StarForest;
using device::Access;
using device::Array;
using device::Executor;
using device::Intent;
using device::Memory;
using device::Queue;

struct GhostExchange::Impl {
  StarForest forest;
  std::int64_t rows = 0;  // of mine
  // on a GPU, by way of the host: my rows that others ask for, and a place of x's length on the host where only those are filled
  std::optional<Array> sent_rows;
  Array staging;
  // on a GPU, from its memory: my rows once for each rank that asks, one rank after the other, and the forest whose roots lie so. All
  // messages are contiguous on both sides, so nothing but MPI touches them
  struct Direct {
    Array rows;
    StarForest forest;
    // by rank, in rows
    comm::GpuMessenger::Parts sends, receives;
  };
  std::optional<Direct> direct;
  bool scattered = false;  // it cannot be had, on some rank

  template <class T>
  Array packed(Queue const& queue, std::int64_t k, Array const& which, Array const& x) const {
    auto const count = std::int64_t(which.bytes() / sizeof(std::int32_t));
    auto const out = Array::fresh(queue, std::size_t(count * k) * sizeof(T));
    device::submit(queue, comm::kernel::gather<T>, count, k, device::read<std::int32_t>(which), device::read<T>(x), device::write<T>(out));
    return out;
  }
  // the checks of calls read what is sent
  bool from_gpu() const {
    auto const* const mpi = comm::known_gpu_awareness(forest.comm());
    return mpi && mpi->used && !comm::call_checks();
  }
  template <class T>
  Array staged(Queue const& queue, std::int64_t k, Array const& x);
  void make_direct();
};

struct GhostExchange::Flight::State {
  Queue queue;
  StarForest forest;
  std::int64_t columns = 1;
  Memory memory = Memory::host;  // of what MPI reads and writes
  Array source, ghost;
  StarForest::Flight flight;

  /// In the order of all communication. `ghost_access`: before the end nothing that was there is needed.
  void enqueue(Access ghost_access, std::shared_ptr<State> const& self, void (*work)(State&)) const {
    auto const order_token = forest.comm().order_token();
    if (queue.runs_inline()) {
      order_token.settle(Access::update, "work at once on what a queue uses");
      source.settle(Access::read, "work at once on what a queue uses");
      ghost.settle(ghost_access, "work at once on what a queue uses");
      return work(*self);
    }
    std::vector<Intent> intents{{order_token.buffer().get(), Access::update, true, Memory::host}};
    source.intend(Access::read, intents);
    ghost.intend(ghost_access, intents);
    queue.enqueue(
        std::move(intents), [self, order_token, work](Executor&) { work(*self); },
        memory == Memory::gpu ? Queue::Form::host_on_device_data : Queue::Form::host);
  }
};

GhostExchange::GhostExchange(comm::StarForest forest) : impl_(std::make_shared<Impl>()) {
  impl_->forest = std::move(forest);
  impl_->rows = impl_->forest.roots();
  prepare_for_gpu();
}

GhostExchange::GhostExchange(comm::Layout const& layout, std::span<std::int64_t const> ghosts)
    : GhostExchange([&] {
        auto forest = StarForest::from_layout(layout, ghosts);
        forest.set_name("halo of a matrix");
        return forest;
      }()) {}

void GhostExchange::prepare_for_gpu() const {
  if (!impl_->direct && !impl_->scattered && (impl_->from_gpu() || comm::has_gpu_messenger(impl_->forest.comm()))) impl_->make_direct();
}

StarForest const& GhostExchange::forest() const { return impl_->forest; }

/// What others ask for of x comes to the host by itself, not all of x.
template <class T>
Array GhostExchange::Impl::staged(Queue const& queue, std::int64_t k, Array const& x) {
  if (!sent_rows) {
    std::vector<std::int32_t> asked_for;
    auto const degree = forest.degree();
    for (std::size_t i = 0; i < degree.size(); ++i)
      if (degree[i] > 0) asked_for.push_back(checked_local_index(std::int64_t(i), "values of one rank"));
    sent_rows = Array::of(std::span<std::int32_t const>(asked_for));
  }
  auto const part = packed<T>(queue, k, *sent_rows, x);
  if (auto const bytes = std::size_t(rows * k) * sizeof(T); staging.bytes() < bytes) staging = Array(bytes);
  device::submit_on_host(
      queue,
      [count = std::int64_t(sent_rows->bytes() / sizeof(std::int32_t)), k](Executor&, std::int32_t const* at, T const* from, T* to) {
        for (std::int64_t i = 0; i < count; ++i) std::copy_n(from + i * k, k, to + at[i] * k);
      },
      device::read<std::int32_t>(*sent_rows), device::read<T>(part), device::update<T>(staging));
  return staging;
}

/// Collective.
void GhostExchange::Impl::make_direct() {
  comm::EdgeEnds at_roots, at_leaves;
  comm::agree(forest.comm(), [&] { at_roots = comm::EdgeEnds::at_roots(forest), at_leaves = comm::EdgeEnds::at_leaves(forest); });
  // received in place, where all ranks can: the ghosts of each neighbour together, by rank, and none of one's own
  bool const in_place = at_leaves.count == 0 || (at_leaves.in_place() && at_leaves.first == 0);
  scattered = forest.comm().min(std::int64_t(in_place)) == 0;
  if (scattered) return;
  auto by_rank = comm::forest_of_edges(forest, at_roots, at_leaves, comm::TransportChoice::p2p);
  direct.emplace(at_roots.at, std::move(by_rank), at_roots.parts, at_leaves.parts);
}

template <class T>
GhostExchange::Flight GhostExchange::begin(Queue const& queue, std::int64_t k, Array const& x, Array const& ghost) const {
  auto& d = *impl_;
  Flight f;
  if (d.forest.comm().size() == 1 && d.forest.leaves() == 0) return f;
  if (auto const messenger = comm::sent_by(queue, d.forest.comm()); messenger && d.direct) {
    auto const row = std::size_t(k) * sizeof(T);
    messenger->exchange(comm::GpuMessenger::in_bytes(d.direct->sends, row), comm::GpuMessenger::in_bytes(d.direct->receives, row),
                        d.packed<T>(queue, k, d.direct->rows, x), ghost);
    return f;  // nothing to end: what reads the ghosts comes after
  }
  f.state_ = std::make_shared<Flight::State>();
  auto& s = *f.state_;
  s.queue = queue;
  s.columns = k;
  s.ghost = ghost;
  s.forest = d.forest;
  s.source = x;
  bool const on_gpu = queue.memory() == Memory::gpu;
  if (d.direct && d.from_gpu()) {  // on the host too: other ranks may be on GPUs, and the messages must fit
    if (on_gpu) s.memory = Memory::gpu;
    s.forest = d.direct->forest;
    s.source = d.packed<T>(queue, k, d.direct->rows, x);
  } else if (on_gpu) {
    s.source = d.staged<T>(queue, k, x);
  }
  s.enqueue(Access::write, f.state_,
            [](Flight::State& s) { s.flight = s.forest.bcast_begin(s.source.as<T>(s.memory), s.ghost.as<T>(s.memory), s.columns); });
  return f;
}

void GhostExchange::Flight::end() const {
  if (!state_) return;
  state_->enqueue(Access::update, state_, [](State& s) { s.flight.end(); });
}

template <class T>
void GhostExchange::add_back(Queue const& queue, std::int64_t k, Array const& ghost, Array const& x) const {
  if (impl_->forest.comm().size() == 1 && impl_->forest.leaves() == 0) return;
  device::submit_on_host(
      queue, [forest = impl_->forest, k](Executor&, std::byte*, T const* from, T* to) { forest.reduce(from, to, comm::ReduceOp::sum, k); },
      device::update<std::byte>(impl_->forest.comm().order_token()), device::read<T>(ghost), device::update<T>(x));
}

#define INSTANTIATE(T)                                                                                                  \
  template GhostExchange::Flight GhostExchange::begin<T>(Queue const&, std::int64_t, Array const&, Array const&) const; \
  template void GhostExchange::add_back<T>(Queue const&, std::int64_t, Array const&, Array const&) const;
ASTERISM_FOR_DTYPES(INSTANTIATE)

}  // namespace asterism::la
