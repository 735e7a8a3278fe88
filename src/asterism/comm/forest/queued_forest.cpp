#include "asterism/comm/forest/queued_forest.hpp"

#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "asterism/base/lazy.hpp"
#include "asterism/base/log.hpp"
#include "asterism/comm/communicator/failures.hpp"
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

/// The operation of a star forest that carries the messages, if one does, and what is submitted after it.
struct QueuedForest::Flight::State {
  enum class Kind : std::uint8_t { none, bcast, reduce, fetch };
  struct Operand {
    Array array;
    Access access = Access::read;
  };
  Kind kind = Kind::none;
  std::optional<Communicator> comm;  // of the call that began it; none: a part of another operation
  Queue queue;
  StarForest forest;
  Items items{ItemType::bytes, 1, 1};
  ReduceOp op = ReduceOp::replace;
  Memory memory = Memory::host;  // of what the transport reads and writes
  Operand root, leaf, update;
  StarForest::Flight flight;
  std::function<void()> after;

  static void begin(State& s) {
    auto* const root = s.root.array.raw(s.memory);
    auto* const leaf = s.leaf.array.raw(s.memory);
    switch (s.kind) {
      case Kind::bcast: s.flight = s.forest.bcast_begin(root, leaf, s.items, s.op); break;
      case Kind::reduce: s.flight = s.forest.reduce_begin(leaf, root, s.items, s.op); break;
      case Kind::fetch: s.flight = s.forest.fetch_and_op_begin(root, leaf, s.update.array.raw(s.memory), s.items, s.op); break;
      case Kind::none: break;
    }
  }
  static void end(State& s) { s.flight.end(); }
  static void reduce(State& s) { s.forest.reduce(s.leaf.array.raw(), s.root.array.raw(), s.items, s.op); }

  /// As a task, in the order of all communication. `first`: before it nothing of what is written was there.
  static void submit(std::shared_ptr<State> const& self, bool first, void (*work)(State&)) {
    auto& s = *self;
    auto const order_token = s.forest.comm().order_token();
    auto const each = [&](auto const& f) {
      for (auto const* const o : {&s.root, &s.leaf, &s.update})
        f(o->array, !first && o->access == Access::write ? Access::update : o->access);
    };
    if (s.queue.runs_inline()) {
      constexpr char const* reason = "work at once on what a queue uses";
      order_token.settle(Access::update, reason);
      each([](Array const& a, Access access) { a.settle(access, reason); });
      return work(s);
    }
    std::vector<Intent> intents{{order_token.buffer().get(), Access::update, true, Memory::host}};
    each([&](Array const& a, Access access) { a.intend(access, intents); });
    s.queue.enqueue(
        std::move(intents), [self, order_token, work](Executor&) { work(*self); },
        s.memory == Memory::gpu ? Queue::Form::host_on_device_data : Queue::Form::host);
  }
};

struct QueuedForest::Impl : std::enable_shared_from_this<Impl> {
  using State = Flight::State;
  using StatePtr = std::shared_ptr<State>;

  StarForest forest;
  bool fills_leaves = false;  // each place of the leaf space is a leaf
  std::string transport;
  mutable Lazy<Array> sent_rows;  // of mine, those that are roots of others' leaves

  // of queues on GPUs
  struct Edges {
    EdgeEnds at_roots, at_leaves;
    std::optional<StarForest> packed;  // with a root for each edge at its root, a leaf for each at its leaf, but for one's own
  };
  mutable std::optional<Edges> edges;
  mutable std::once_flag alone;
  struct Carrier {  // of messages between GPUs; neither: the host
    std::shared_ptr<GpuMessenger const> messenger;
    bool mpi = false;
  };
  std::optional<Carrier> chosen;  // for all queues

  /// How an operation goes: by its edges, packed, or by the star forest itself.
  struct Route {
    bool by_edges = false;
    std::shared_ptr<GpuMessenger const> messenger;
    Memory memory = Memory::host;
  };
  Route route(Queue const& queue) const;
  Edges found_edges() const;
  bool idle() const { return forest.comm().size() == 1 && forest.leaves() == 0; }
  void choose_carrier();
  void require(Dtype dtype, std::int64_t k, ReduceOp op, Array const& root, std::initializer_list<Array const*> leaf) const;

  template <class T>
  Array staged(Queue const& queue, std::int64_t k, Array const& x) const;
  StatePtr by_forest(void (*work)(State&), State::Kind kind, Queue const& queue, Dtype dtype, std::int64_t k, ReduceOp op,
                     State::Operand root, State::Operand leaf, State::Operand update = {}) const;

  /// For the values of all edges there; none, if all are one's own.
  static Array received(Queue const& queue, EdgeEnds const& at, std::size_t unit) {
    return at.parts.empty() ? Array() : Array::fresh(queue, std::size_t(at.count) * unit);
  }
  template <class T>
  static Array packed(Queue const& queue, EdgeEnds const& from, std::int64_t k, Array const& x);
  StatePtr exchange(Route const& route, Queue const& queue, bool down, std::size_t unit, Array const& out, Array const& in) const;
  template <class T>
  static void take_in(Queue const& queue, EdgeEnds const& from, EdgeEnds const& to, std::int64_t k, ReduceOp op, Array const& packed,
                      Array const& received, Array const& out, Array const& before = {});
  template <class T>
  StatePtr move(Route const& route, Queue const& queue, bool down, std::int64_t k, ReduceOp op, Array const& source,
                Array const& target) const;
  template <class T>
  StatePtr fetch(Route const& route, Queue const& queue, std::int64_t k, ReduceOp op, Array const& root, Array const& leaf,
                 Array const& update) const;
};

QueuedForest::QueuedForest(StarForest forest) : impl_(std::make_shared<Impl>()) {
  impl_->forest = std::move(forest);
  impl_->fills_leaves = impl_->forest.leaves() == impl_->forest.leaf_space();
  prepare_for_gpu();
}

QueuedForest::QueuedForest(StarForest forest, Queue const& queue) : impl_(std::make_shared<Impl>()) {
  auto& d = *impl_;
  d.forest = std::move(forest);
  d.fills_leaves = d.forest.leaves() == d.forest.leaf_space();
  auto const& comm = d.forest.comm();
  auto const on_gpu = std::int64_t(queue.memory() == Memory::gpu), least = comm.min(on_gpu), most = comm.max(on_gpu);
  agree(comm, [&] {
    if (comm.size() > 1 && !queue.runs_inline()) require_thread_multiple("a star forest on a queue");
  });
  ASTERISM_REQUIRE(least == most, value, "the star forest '{}' goes to queues on GPUs on some ranks, and not on others.", d.forest.name());
  // neighbours' were compared when it was made; here all ranks find out together
  bool const same = comm.same_on_all_ranks(std::int64_t(d.forest.transport()));
  ASTERISM_REQUIRE(same, comm, "the transport of the star forest '{}' is {} here, another elsewhere. Give the same on all ranks.",
                   d.forest.name(), name_of(d.forest.transport()));
  if (on_gpu) d.choose_carrier();
  else d.transport = format("by the star forest's transport, {}", name_of(d.forest.transport()));
}

QueuedForest::Impl::Edges QueuedForest::Impl::found_edges() const {
  Edges e;
  agree(forest.comm(), [&] {
    e.at_roots = EdgeEnds::at_roots(forest);
    e.at_leaves = EdgeEnds::at_leaves(forest);
  });
  return e;
}

void QueuedForest::Impl::choose_carrier() {
  auto const& comm = forest.comm();
  edges = found_edges();
  chosen.emplace();
  auto const choice = forest.transport();
  std::string why = "it was asked for";
  if (choice == TransportChoice::automatic || between_gpus(choice) != GpuTransport::mpi) {
    auto const& use = choice == TransportChoice::automatic ? gpu_transport(comm) : gpu_transport(comm, between_gpus(choice));
    ASTERISM_REQUIRE(use.messenger || choice == TransportChoice::automatic || comm.size() == 1, comm,
                     "the star forest '{}' cannot go between GPUs by its transport {}.", forest.name(), use.why);
    chosen->messenger = use.messenger;
    why = use.why;
  }
  if (chosen->messenger) {
    transport = format("between GPUs: by {} ({})", chosen->messenger->name(), why);
    return;
  }
  if (choice == TransportChoice::automatic || choice == TransportChoice::p2p) chosen->mpi = gpu_awareness(comm).used;
  transport = comm.size() == 1 ? "one rank"
              : chosen->mpi    ? "by MPI from GPU memory"
                               : format("through the host, by {} ({})", name_of(choice), why);
  edges->packed = forest_of_edges(forest, edges->at_roots, edges->at_leaves, chosen->mpi ? TransportChoice::p2p : choice);
}

namespace {
/// Of an array of a GPU; checks of calls read what is sent, so it comes to the host for them.
bool mpi_reads_gpus(Communicator const& comm) {
  auto const* const known = known_gpu_awareness(comm);
  return known && known->used && !call_checks();
}
}  // namespace

void QueuedForest::prepare_for_gpu() const {
  auto const& d = *impl_;
  auto const& comm = d.forest.comm();
  if (d.edges || !(mpi_reads_gpus(comm) || has_gpu_messenger(comm))) return;
  auto e = d.found_edges();
  e.packed = forest_of_edges(d.forest, e.at_roots, e.at_leaves, TransportChoice::p2p);
  d.edges = std::move(e);
}

QueuedForest::Impl::Route QueuedForest::Impl::route(Queue const& queue) const {
  bool const on_gpu = queue.memory() == Memory::gpu;
  if (on_gpu && forest.comm().size() == 1) {  // no messages: values go from place to place there
    std::call_once(alone, [&] {
      if (!edges) edges = found_edges();
    });
    return {true, nullptr, Memory::gpu};
  }
  if (!edges) return {};
  if (chosen) {
    ASTERISM_REQUIRE(on_gpu, value, "the star forest '{}' was made for queues on GPUs, and this queue is on the host.", forest.name());
    return {true, chosen->messenger, chosen->mpi && !call_checks() ? Memory::gpu : Memory::host};
  }
  if (auto messenger = sent_by(queue, forest.comm())) return {true, std::move(messenger), Memory::gpu};
  // on the host too: other ranks may be on GPUs, and the messages must fit
  if (mpi_reads_gpus(forest.comm())) return {true, nullptr, on_gpu ? Memory::gpu : Memory::host};
  return {};
}

/// What others ask for of x comes to the host by itself, not all of x.
template <class T>
Array QueuedForest::Impl::staged(Queue const& queue, std::int64_t k, Array const& x) const {
  auto const& rows = sent_rows.made_by([&] {
    std::vector<std::int32_t> asked_for;
    auto const degree = forest.degree();
    for (std::size_t i = 0; i < degree.size(); ++i)
      if (degree[i] > 0) asked_for.push_back(checked_local_index(std::int64_t(i), "values of one rank"));
    return Array::of(std::span<std::int32_t const>(asked_for));
  });
  auto const count = std::int64_t(rows.bytes() / sizeof(std::int32_t));
  Array const part = Array::fresh(queue, std::size_t(count * k) * sizeof(T)), out(std::size_t(forest.roots() * k) * sizeof(T));
  device::submit(queue, kernel::gather<T>, count, k, device::read<std::int32_t>(rows), device::read<T>(x), device::write<T>(part));
  device::submit_on_host(
      queue,
      [count, k](Executor&, std::int32_t const* at, T const* from, T* to) {
        for (std::int64_t i = 0; i < count; ++i) std::copy_n(from + i * k, k, to + at[i] * k);
      },
      device::read<std::int32_t>(rows), device::read<T>(part), device::update<T>(out));
  return out;
}

/// By the star forest itself, all of it or, first, its beginning.
QueuedForest::Impl::StatePtr QueuedForest::Impl::by_forest(void (*work)(State&), State::Kind kind, Queue const& queue, Dtype dtype,
                                                           std::int64_t k, ReduceOp op, State::Operand root, State::Operand leaf,
                                                           State::Operand update) const {
  auto s = std::make_shared<State>();
  if (idle()) return s;
  s->kind = kind;
  s->queue = queue;
  s->forest = forest;
  s->items = with_dtype(dtype, [&](auto tag) { return Items::of<typename decltype(tag)::type>(k); });
  s->op = op;
  s->root = std::move(root), s->leaf = std::move(leaf), s->update = std::move(update);
  State::submit(s, true, work);
  return s;
}

/// The values of all edges of mine.
template <class T>
Array QueuedForest::Impl::packed(Queue const& queue, EdgeEnds const& from, std::int64_t k, Array const& x) {
  auto const unit = std::size_t(k) * sizeof(T);
  if (from.first >= 0) return x.view(std::size_t(from.first) * unit, std::size_t(from.count) * unit);
  auto const out = Array::fresh(queue, std::size_t(from.count) * unit);
  device::submit(queue, kernel::gather<T>, from.count, k, device::read<std::int32_t>(from.at), device::read<T>(x), device::write<T>(out));
  return out;
}

/// Begins to send what is packed.
QueuedForest::Impl::StatePtr QueuedForest::Impl::exchange(Route const& route, Queue const& queue, bool down, std::size_t unit,
                                                          Array const& out, Array const& in) const {
  auto s = std::make_shared<State>();
  if (route.messenger) {
    auto const &from = down ? edges->at_roots : edges->at_leaves, &to = down ? edges->at_leaves : edges->at_roots;
    route.messenger->exchange(GpuMessenger::in_bytes(from.parts, unit), GpuMessenger::in_bytes(to.parts, unit), out, in);
    return s;
  }
  if (forest.comm().size() == 1) return s;
  s->kind = down ? State::Kind::bcast : State::Kind::reduce;
  s->queue = queue;
  s->forest = *edges->packed;
  s->items = {ItemType::bytes, std::int64_t(unit), 1};
  s->memory = route.memory;
  s->root = {down ? out : in, down ? Access::read : Access::write};  // what is not received (one's own) is not used
  s->leaf = {down ? in : out, down ? Access::write : Access::read};
  State::submit(s, true, State::begin);
  return s;
}

template <class T>
void QueuedForest::Impl::take_in(Queue const& queue, EdgeEnds const& from, EdgeEnds const& to, std::int64_t k, ReduceOp op,
                                 Array const& packed, Array const& received, Array const& out, Array const& before) {
  if (to.places == 0) return;
  device::submit(queue, kernel::take_in<T>, to.places, k, op, device::read<std::int32_t>(to.place), device::read<std::int32_t>(to.offsets),
                 device::read<std::int32_t>(to.sources), to.own_first, to.own_end, from.own_first - to.own_first, device::read<T>(packed),
                 device::read<T>(received), device::update<T>(out), device::write<T>(before));
}

template <class T>
QueuedForest::Impl::StatePtr QueuedForest::Impl::move(Route const& route, Queue const& queue, bool down, std::int64_t k, ReduceOp op,
                                                      Array const& source, Array const& target) const {
  auto const &from = down ? edges->at_roots : edges->at_leaves, &to = down ? edges->at_leaves : edges->at_roots;
  auto const unit = std::size_t(k) * sizeof(T);
  auto const out = packed<T>(queue, from, k, source);
  if (op == ReduceOp::replace && to.in_place())
    return exchange(route, queue, down, unit, out, target.view(std::size_t(to.first) * unit, std::size_t(to.count) * unit));
  auto const in = received(queue, to, unit);
  auto s = exchange(route, queue, down, unit, out, in);
  s->after = [self = shared_from_this(), &from, &to, queue, k, op, out, in, target] {
    take_in<T>(queue, from, to, k, op, out, in, target);
  };
  return s;
}

template <class T>
QueuedForest::Impl::StatePtr QueuedForest::Impl::fetch(Route const& route, Queue const& queue, std::int64_t k, ReduceOp op,
                                                       Array const& root, Array const& leaf, Array const& update) const {
  auto const unit = std::size_t(k) * sizeof(T);
  auto const out = packed<T>(queue, edges->at_leaves, k, leaf), in = received(queue, edges->at_roots, unit);
  auto s = exchange(route, queue, false, unit, out, in);
  s->after = [self = shared_from_this(), route, queue, k, op, unit, out, in, root, update] {
    auto const &from = self->edges->at_leaves, &to = self->edges->at_roots;
    auto const before = Array::fresh(queue, std::size_t(to.count) * unit), answers = received(queue, from, unit);
    take_in<T>(queue, from, to, k, op, out, in, root, before);
    Flight(self->exchange(route, queue, true, unit, before, answers)).end();
    take_in<T>(queue, to, from, k, ReduceOp::replace, before, answers, update);
  };
  return s;
}

void QueuedForest::Impl::require(Dtype dtype, std::int64_t k, ReduceOp op, Array const& root,
                                 std::initializer_list<Array const*> leaf) const {
  bool const ordered = op == ReduceOp::min || op == ReduceOp::max;
  ASTERISM_REQUIRE(op == ReduceOp::replace || op == ReduceOp::sum || op == ReduceOp::prod || ordered, option,
                   "op {} on a queue is not there; replace, sum, prod, min and max are.", name_of(op));
  ASTERISM_REQUIRE(!ordered || !is_complex(dtype), dtype, "op {} has no meaning for {} values.", name_of(op), name_of(dtype));
  auto const unit = std::size_t(k) * size_of(dtype);
  auto const is_long_enough = [&](Array const& a, std::int64_t rows, char const* what) {
    ASTERISM_REQUIRE(k >= 0 && a.bytes() >= std::size_t(rows) * unit, shape, "{} has {} bytes, but {} rows of {} {} values are needed.",
                     what, a.bytes(), rows, k, name_of(dtype));
  };
  is_long_enough(root, forest.roots(), "root data");
  for (auto const* const a : leaf) is_long_enough(*a, forest.leaf_space(), "leaf data");
}

/// f() as one call of all ranks, whatever their queues: what tasks do is not counted, so what is done at once and the end must not be.
template <class F>
QueuedForest::Flight QueuedForest::begun(char const* name, F const& f) const {
  auto const& comm = impl_->forest.comm();
  return collective(comm, name, [&] {
    Flight flight(f(*impl_));
    flight.state_->comm = comm;
    return flight;
  });
}

QueuedForest::Flight QueuedForest::bcast_begin(Queue const& queue, Dtype dtype, std::int64_t k, Array const& root, Array const& leaf,
                                               ReduceOp op) const {
  return begun("a broadcast on a queue", [&](Impl const& d) {
    d.require(dtype, k, op, root, {&leaf});
    auto const route = d.route(queue);
    if (route.by_edges)
      return with_dtype(dtype, [&](auto tag) { return d.move<typename decltype(tag)::type>(route, queue, true, k, op, root, leaf); });
    auto const source = queue.memory() == Memory::gpu && !d.idle()
                            ? with_dtype(dtype, [&](auto tag) { return d.staged<typename decltype(tag)::type>(queue, k, root); })
                            : root;
    bool const fills = d.fills_leaves && leaf.bytes() == std::size_t(d.forest.leaf_space() * k) * size_of(dtype);
    auto const access = op == ReduceOp::replace && fills ? Access::write : Access::update;
    return d.by_forest(Flight::State::begin, Flight::State::Kind::bcast, queue, dtype, k, op, {source, Access::read}, {leaf, access});
  });
}

QueuedForest::Flight QueuedForest::reduce_begin(Queue const& queue, Dtype dtype, std::int64_t k, Array const& leaf, Array const& root,
                                                ReduceOp op) const {
  return begun("a reduction on a queue", [&](Impl const& d) {
    d.require(dtype, k, op, root, {&leaf});
    auto const route = d.route(queue);
    if (route.by_edges)
      return with_dtype(dtype, [&](auto tag) { return d.move<typename decltype(tag)::type>(route, queue, false, k, op, leaf, root); });
    return d.by_forest(Flight::State::begin, Flight::State::Kind::reduce, queue, dtype, k, op, {root, Access::update},
                       {leaf, Access::read});
  });
}

void QueuedForest::reduce(Queue const& queue, Dtype dtype, std::int64_t k, Array const& leaf, Array const& root, ReduceOp op) const {
  auto const& d = *impl_;
  collective(d.forest.comm(), "a reduction on a queue", [&] {
    if (d.route(queue).by_edges) return reduce_begin(queue, dtype, k, leaf, root, op).end();
    d.require(dtype, k, op, root, {&leaf});
    d.by_forest(Flight::State::reduce, Flight::State::Kind::reduce, queue, dtype, k, op, {root, Access::update}, {leaf, Access::read});
  });
}

QueuedForest::Flight QueuedForest::fetch_and_op_begin(Queue const& queue, Dtype dtype, std::int64_t k, Array const& root, Array const& leaf,
                                                      Array const& update, ReduceOp op) const {
  return begun("fetch_and_op on a queue", [&](Impl const& d) {
    d.require(dtype, k, op, root, {&leaf, &update});
    auto const route = d.route(queue);
    if (route.by_edges)
      return with_dtype(dtype, [&](auto tag) { return d.fetch<typename decltype(tag)::type>(route, queue, k, op, root, leaf, update); });
    return d.by_forest(Flight::State::begin, Flight::State::Kind::fetch, queue, dtype, k, op, {root, Access::update}, {leaf, Access::read},
                       {update, Access::update});
  });
}

QueuedForest::Flight::~Flight() {
  if (!state_ || std::uncaught_exceptions() > 0) return;  // an error ends what is under way
  log::warning("an operation of a star forest on a queue was begun and never ended; it is ended now. Call end().");
  try {
    end();
  } catch (std::exception const& e) {  // also one of a user's function
    log::warning("{}", e.what());
  } catch (...) {
    log::warning("and it failed");
  }
}

void QueuedForest::Flight::end() {
  ASTERISM_REQUIRE(state_, comm, "end() was called twice, or on a flight that was never begun.");
  auto const s = std::exchange(state_, nullptr);
  auto const finish = [&] {
    if (s->kind != State::Kind::none) State::submit(s, false, State::end);
    if (auto const after = std::exchange(s->after, nullptr)) after();
  };
  if (!s->comm || CollectiveCall::is_part_of_another(*s->comm)) return finish();
  collective(
      *s->comm, "the end of an operation on a queue",
      [&] {
        if (s->kind != State::Kind::none && s->queue.runs_inline()) s->flight.require_under_way();
        finish();
      },
      false, CollectiveCall::Part::rest);
}

void QueuedForest::wait(Queue const& queue) const {
  queue.wait("star forest on a queue");
  if (impl_->chosen && impl_->chosen->messenger) impl_->chosen->messenger->check();
}

StarForest const& QueuedForest::forest() const { return impl_->forest; }
std::string const& QueuedForest::transport() const { return impl_->transport; }

}  // namespace asterism::comm
