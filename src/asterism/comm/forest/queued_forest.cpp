#include "asterism/comm/forest/queued_forest.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "asterism/base/log.hpp"
#include "asterism/comm/forest/call_check.hpp"
#include "asterism/comm/forest/edge_ends.hpp"
#include "asterism/comm/forest/gpu_aware.hpp"
#include "asterism/comm/forest/queued_forest.kernels.hpp"
#include "asterism/comm/gpu/transport.hpp"

namespace asterism::comm {

using device::Access;
using device::Array;
using device::Executor;
using device::Intent;
using device::Memory;
using device::Queue;

namespace {
GpuTransport between_gpus(TransportChoice choice) {
  switch (choice) {
    case TransportChoice::nccl: return GpuTransport::nccl;
    case TransportChoice::ipc: return GpuTransport::ipc;
    case TransportChoice::nvshmem: return GpuTransport::nvshmem;
    default: return GpuTransport::mpi;
  }
}
}  // namespace

struct QueuedForest::Impl : std::enable_shared_from_this<Impl> {
  StarForest forest;
  Queue queue;
  Layout roots, leaves;
  std::string transport;
  // on GPUs
  EdgeEnds at_roots, at_leaves;
  std::shared_ptr<GpuMessenger const> messenger;
  std::optional<StarForest> by_edges;  // else: a root for each edge at its root, a leaf for each at its leaf, but for one's own
  bool mpi_takes_gpu_memory = false;

  void prepare();
  /// For the values of all edges there; none, if all are one's own.
  Array received(EdgeEnds const& at, std::size_t unit) const {
    return at.parts.empty() ? Array() : Array::fresh(queue, std::size_t(at.count) * unit);
  }
  template <class T>
  Array packed(EdgeEnds const& from, std::int64_t k, Array const& x) const;
  std::function<void()> exchange(bool down, Dtype dtype, std::int64_t k, Array const& out, Array const& in) const;
  template <class T>
  void take_in(EdgeEnds const& from, EdgeEnds const& to, std::int64_t k, ReduceOp op, Array const& packed, Array const& received,
               Array const& out, Array const& before = {}) const;
  template <class T>
  Flight move(bool down, std::int64_t k, ReduceOp op, Array const& source, Array const& target) const;
  template <class T>
  Flight fetch(std::int64_t k, ReduceOp op, Array const& root, Array const& leaf, Array const& update) const;
  Flight by_forest(std::vector<std::pair<Array, Access>> arrays, std::function<StarForest::Flight()> begin, Queue::Form form) const;
  void require(Dtype dtype, std::int64_t k, ReduceOp op, Array const& root, std::initializer_list<Array const*> leaf) const;
};

QueuedForest::QueuedForest(StarForest forest, Queue queue) : impl_(std::make_shared<Impl>()) {
  auto& d = *impl_;
  d.forest = std::move(forest);
  d.queue = std::move(queue);
  auto const& comm = d.forest.comm();
  auto const on_gpu = std::int64_t(d.queue.memory() == Memory::gpu), least = comm.min(on_gpu), most = comm.max(on_gpu);
  agree(comm, [&] {
    if (comm.size() > 1 && !d.queue.runs_inline()) require_thread_multiple("a star forest on a queue");
  });
  ASTERISM_REQUIRE(least == most, value, "the star forest '{}' goes to queues on GPUs on some ranks, and not on others.", d.forest.name());
  // neighbours' were compared when it was made; here all ranks find out together
  bool const same = comm.same_on_all_ranks(std::int64_t(d.forest.transport()));
  ASTERISM_REQUIRE(same, comm, "the transport of the star forest '{}' is {} here, another elsewhere. Give the same on all ranks.",
                   d.forest.name(), name_of(d.forest.transport()));
  d.roots = Layout(comm, d.forest.roots());
  d.leaves = Layout(comm, d.forest.leaf_space());
  if (on_gpu) d.prepare();
  else d.transport = format("by the star forest's transport, {}", name_of(d.forest.transport()));
}

void QueuedForest::Impl::prepare() {
  auto const& comm = forest.comm();
  agree(comm, [&] {
    at_roots = EdgeEnds::at_roots(forest);
    at_leaves = EdgeEnds::at_leaves(forest);
  });
  auto const choice = forest.transport();
  std::string why = "it was asked for";
  if (choice == TransportChoice::automatic || between_gpus(choice) != GpuTransport::mpi) {
    auto const& use = choice == TransportChoice::automatic ? gpu_transport(comm) : gpu_transport(comm, between_gpus(choice));
    ASTERISM_REQUIRE(use.messenger || choice == TransportChoice::automatic || comm.size() == 1, comm,
                     "the star forest '{}' cannot go between GPUs by its transport {}.", forest.name(), use.why);
    messenger = use.messenger;
    why = use.why;
  }
  if (messenger) {
    transport = format("between GPUs: by {} ({})", messenger->name(), why);
    return;
  }
  if (choice == TransportChoice::automatic || choice == TransportChoice::p2p) mpi_takes_gpu_memory = gpu_awareness(comm).used;
  transport = comm.size() == 1       ? "one rank"
              : mpi_takes_gpu_memory ? "by MPI from GPU memory"
                                     : format("through the host, by {} ({})", name_of(choice), why);
  by_edges = forest_of_edges(forest, at_roots, at_leaves, mpi_takes_gpu_memory ? TransportChoice::p2p : choice);
}

/// The values of all edges of mine.
template <class T>
Array QueuedForest::Impl::packed(EdgeEnds const& from, std::int64_t k, Array const& x) const {
  auto const unit = std::size_t(k) * sizeof(T);
  if (from.first >= 0) return x.view(std::size_t(from.first) * unit, std::size_t(from.count) * unit);
  auto const out = Array::fresh(queue, std::size_t(from.count) * unit);
  device::submit(queue, kernel::gather<T>, from.count, k, device::read<std::int32_t>(from.at), device::read<T>(x), device::write<T>(out));
  return out;
}

/// Begins to send what is packed; what is returned submits the end.
std::function<void()> QueuedForest::Impl::exchange(bool down, Dtype dtype, std::int64_t k, Array const& out, Array const& in) const {
  auto const unit = std::size_t(k) * size_of(dtype);
  if (messenger) {
    auto const &from = down ? at_roots : at_leaves, &to = down ? at_leaves : at_roots;
    messenger->exchange(GpuMessenger::in_bytes(from.parts, unit), GpuMessenger::in_bytes(to.parts, unit), out, in);
    return [] {};
  }
  if (forest.comm().size() == 1) return [] {};
  bool const direct = mpi_takes_gpu_memory && !call_checks();  // those read what is sent
  auto const memory = direct ? Memory::gpu : Memory::host;
  auto flight = std::make_shared<Flight>(by_forest(
      {{out, Access::read}, {in, Access::write}},  // what is not received (one's own) is not used
      [forest = *by_edges, down, items = Items{ItemType::bytes, std::int64_t(unit), 1}, out, in, memory] {
        return down ? forest.bcast_begin(out.raw(memory), in.raw(memory), items)
                    : forest.reduce_begin(out.raw(memory), in.raw(memory), items, ReduceOp::replace);
      },
      direct ? Queue::Form::host_on_device_data : Queue::Form::host));
  return [flight] { flight->end(); };
}

template <class T>
void QueuedForest::Impl::take_in(EdgeEnds const& from, EdgeEnds const& to, std::int64_t k, ReduceOp op, Array const& packed,
                                 Array const& received, Array const& out, Array const& before) const {
  if (to.places == 0) return;
  device::submit(queue, kernel::take_in<T>, to.places, k, op, device::read<std::int32_t>(to.place), device::read<std::int32_t>(to.offsets),
                 device::read<std::int32_t>(to.sources), to.own_first, to.own_end, from.own_first - to.own_first, device::read<T>(packed),
                 device::read<T>(received), device::update<T>(out), device::write<T>(before));
}

template <class T>
QueuedForest::Flight QueuedForest::Impl::move(bool down, std::int64_t k, ReduceOp op, Array const& source, Array const& target) const {
  auto const &from = down ? at_roots : at_leaves, &to = down ? at_leaves : at_roots;
  auto const unit = std::size_t(k) * sizeof(T);
  auto const out = packed<T>(from, k, source);
  if (op == ReduceOp::replace && to.in_place()) {
    auto const in = target.view(std::size_t(to.first) * unit, std::size_t(to.count) * unit);
    return Flight(exchange(down, dtype_v<T>, k, out, in));
  }
  auto const in = received(to, unit);
  return Flight([self = shared_from_this(), &from, &to, k, op, out, in, target, end = exchange(down, dtype_v<T>, k, out, in)] {
    end();
    self->take_in<T>(from, to, k, op, out, in, target);
  });
}

template <class T>
QueuedForest::Flight QueuedForest::Impl::fetch(std::int64_t k, ReduceOp op, Array const& root, Array const& leaf,
                                               Array const& update) const {
  auto const unit = std::size_t(k) * sizeof(T);
  auto const out = packed<T>(at_leaves, k, leaf), in = received(at_roots, unit);
  return Flight([self = shared_from_this(), k, op, unit, out, in, root, update, end = exchange(false, dtype_v<T>, k, out, in)] {
    end();
    auto const &from = self->at_leaves, &to = self->at_roots;
    auto const before = Array::fresh(self->queue, std::size_t(to.count) * unit), answers = self->received(from, unit);
    self->take_in<T>(from, to, k, op, out, in, root, before);
    self->exchange(true, dtype_v<T>, k, before, answers)();
    self->take_in<T>(to, from, k, ReduceOp::replace, before, answers, update);
  });
}

/// As two tasks, in the order of all communication: those that begin and that end an operation of a star forest.
QueuedForest::Flight QueuedForest::Impl::by_forest(std::vector<std::pair<Array, Access>> arrays, std::function<StarForest::Flight()> begin,
                                                   Queue::Form form) const {
  auto const task = [queue = queue, form, order_token = forest.comm().order_token()](std::vector<std::pair<Array, Access>> arrays,
                                                                                     std::function<void()> work) {
    constexpr char const* reason = "work at once on what a queue uses";
    if (queue.runs_inline()) {
      order_token.settle(Access::update, reason);
      for (auto const& [a, access] : arrays) a.settle(access, reason);
      return work();
    }
    std::vector<Intent> intents{{order_token.buffer().get(), Access::update, true, Memory::host}};
    for (auto const& [a, access] : arrays) a.intend(access, intents);
    queue.enqueue(std::move(intents), [arrays, order_token, work = std::move(work)](Executor&) { work(); }, form);
  };
  auto const flight = std::make_shared<StarForest::Flight>();
  task(arrays, [flight, begin = std::move(begin)] { *flight = begin(); });
  for (auto& [a, access] : arrays)
    if (access == Access::write) access = Access::update;  // some of it is there
  return Flight([flight, task, arrays = std::move(arrays)] { task(arrays, [flight] { flight->end(); }); });
}

void QueuedForest::Impl::require(Dtype dtype, std::int64_t k, ReduceOp op, Array const& root,
                                 std::initializer_list<Array const*> leaf) const {
  bool const ordered = op == ReduceOp::min || op == ReduceOp::max;
  ASTERISM_REQUIRE(op == ReduceOp::replace || op == ReduceOp::sum || op == ReduceOp::prod || ordered, option,
                   "op {} on a queue is not there; replace, sum, prod, min and max are.", name_of(op));
  ASTERISM_REQUIRE(!ordered || !is_complex(dtype), dtype, "op {} has no meaning for {} values.", name_of(op), name_of(dtype));
  auto const unit = std::size_t(k) * size_of(dtype);
  auto const is_long_enough = [&](Array const& a, std::int64_t rows, char const* what) {
    ASTERISM_REQUIRE(k >= 1 && a.bytes() >= std::size_t(rows) * unit, shape, "{} has {} bytes, but {} rows of {} {} values are needed.",
                     what, a.bytes(), rows, k, name_of(dtype));
  };
  is_long_enough(root, forest.roots(), "root data");
  for (auto const* const a : leaf) is_long_enough(*a, forest.leaf_space(), "leaf data");
}

QueuedForest::Flight QueuedForest::bcast_begin(Dtype dtype, std::int64_t k, Array const& root, Array const& leaf, ReduceOp op) const {
  impl_->require(dtype, k, op, root, {&leaf});
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (impl_->queue.memory() == Memory::gpu) return impl_->move<T>(true, k, op, root, leaf);
    return impl_->by_forest(
        {{root, Access::read}, {leaf, Access::update}},
        [forest = impl_->forest, k, op, root, leaf] { return forest.bcast_begin(root.raw(), leaf.raw(), Items::of<T>(k), op); },
        Queue::Form::host);
  });
}

QueuedForest::Flight QueuedForest::reduce_begin(Dtype dtype, std::int64_t k, Array const& leaf, Array const& root, ReduceOp op) const {
  impl_->require(dtype, k, op, root, {&leaf});
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (impl_->queue.memory() == Memory::gpu) return impl_->move<T>(false, k, op, leaf, root);
    return impl_->by_forest(
        {{leaf, Access::read}, {root, Access::update}},
        [forest = impl_->forest, k, op, root, leaf] { return forest.reduce_begin(leaf.raw(), root.raw(), Items::of<T>(k), op); },
        Queue::Form::host);
  });
}

QueuedForest::Flight QueuedForest::fetch_and_op_begin(Dtype dtype, std::int64_t k, Array const& root, Array const& leaf,
                                                      Array const& update, ReduceOp op) const {
  impl_->require(dtype, k, op, root, {&leaf, &update});
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (impl_->queue.memory() == Memory::gpu) return impl_->fetch<T>(k, op, root, leaf, update);
    return impl_->by_forest(
        {{leaf, Access::read}, {root, Access::update}, {update, Access::update}},
        [forest = impl_->forest, k, op, root, leaf, update] {
          return forest.fetch_and_op_begin(root.raw(), leaf.raw(), update.raw(), Items::of<T>(k), op);
        },
        Queue::Form::host);
  });
}

QueuedForest::Flight::~Flight() {
  if (!rest_) return;
  log::warning("an operation of a star forest on a queue was begun and never ended; it is ended now. Call end().");
  try {
    end();
  } catch (Error const& e) {
    log::warning("{}", e.what());
  }
}

void QueuedForest::Flight::end() {
  ASTERISM_REQUIRE(rest_, comm, "end() was called twice, or on a flight that was never begun.");
  std::exchange(rest_, nullptr)();
}

void QueuedForest::wait() const {
  impl_->queue.wait("star forest on a queue");
  if (impl_->messenger) impl_->messenger->check();
}

StarForest const& QueuedForest::forest() const { return impl_->forest; }
Queue const& QueuedForest::queue() const { return impl_->queue; }
Layout const& QueuedForest::roots() const { return impl_->roots; }
Layout const& QueuedForest::leaves() const { return impl_->leaves; }
std::string const& QueuedForest::transport() const { return impl_->transport; }

}  // namespace asterism::comm
