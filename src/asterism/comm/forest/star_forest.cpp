#include "asterism/comm/forest/star_forest.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/progress.hpp"
#include "asterism/comm/forest/call_check.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/comm/transport/traffic_record.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {
namespace {

using SharedTransports = std::array<std::shared_ptr<SharedTransport>, transport_kinds>;
using Uses = std::array<bool, transport_kinds>;

/// One operation's messages in one direction, over the transports that the forest's neighbours need.
class Route {
 public:
  /// The messages, to be filled in before open().
  Traffic traffic;

  void open(Uses const& uses, SharedTransports const& shared_transports) {
    uses_ = uses;
    for (std::size_t w = 0; w < uses.size(); ++w) {
      if (!uses[w] || TransportKind(w) == TransportKind::self) continue;
      auto& t = by_way_[w];
      if (!t)
        t = shared_transports[w]                               ? shared_transports[w]->transport()
            : TransportKind(w) == TransportKind::shared_memory ? shared_memory()
                                                               : point_to_point();
      t->open(traffic, TransportKind(w));
    }
  }
  void send(std::byte const* source) {
    each([&](Transport& t) { t.send(source); });
  }
  void receive(Side const& side, Receiver& receiver) { by_way_[std::size_t(side.transport)]->receive(side, receiver); }
  void close() {
    each([](Transport& t) { t.close(); });
  }

 private:
  template <class F>
  void each(F const& f) {
    for (std::size_t w = 1; w < uses_.size(); ++w)
      if (uses_[w]) f(*by_way_[w]);
  }
  std::array<std::unique_ptr<Transport>, transport_kinds> by_way_;
  Uses uses_{};
};

}  // namespace

struct StarForest::Flight::State final : Receiver {
  std::shared_ptr<Impl> forest;
  Route forth, back;  // back: of fetch_and_op
  std::vector<Side> const *from = nullptr, *to = nullptr;
  std::byte const* source = nullptr;
  std::byte* target = nullptr;
  std::int64_t unit = 0;
  Combine combine;
  bool in_place = false;          // what comes last stays
  bool distinct = false;          // every place gets one value at most: no order to keep
  std::byte* update = nullptr;    // fetch_and_op: where the leaves' old root values go
  std::vector<std::byte> packed;  // my own edges' values
  std::optional<SourceCopy> before;
  bool helped = false;       // by the progress thread
  std::uint64_t epoch = 0;   // of the communicator, when it began
  std::uint64_t serial = 0;  // of the call that it began in

  void take(Side const& s, std::int64_t first, std::int64_t count, std::byte const* data) override {
    if (in_place) s.at.unpack(data, target, unit, first, count, distinct);
    else s.at.combine(combine, data, target, unit, first, count);
  }
  /// My own edges' values in the order of the edges: where they lie if they are contiguous, else packed.
  std::byte const* own_values(int rank);
};

struct StarForest::Impl {
  Communicator comm;
  TransportChoice choice = TransportChoice::automatic;
  std::int64_t roots = 0, leaf_space = 0, leaf_count = 0;
  std::vector<Side> leaf_sides;        // by owner rank, mine included
  std::vector<Side> root_sides;        // by leaf rank, mine included; same order of edges as the other side's
  std::vector<Side> dense_roots;       // the same edges in a buffer with a place for each, for fetch_and_op
  std::vector<Side> remote;            // offsets of the roots of leaf_sides at their owners
  Uses uses{};                         // ways
  SharedTransports shared_transports;  // of the ways that need one
  // several values may meet in one place: a replace must then keep the order of ranks
  bool shared_roots = false, shared_leaves = false;
  std::int64_t repeated_leaf = -1;
  std::uint64_t epoch = 0;  // of the communicator, when it was made
  std::optional<StarForest> multi;
  std::optional<TrafficRecord> record;
  std::vector<std::unique_ptr<Flight::State>> idle;  // with their buffers and requests, for the next operation

  void choose_transports();
  void make_shared_transports();  // collective
  bool needs_mpi() const {
    for (std::size_t w = 0; w < uses.size(); ++w)
      if (uses[w] && TransportKind(w) != TransportKind::self && TransportKind(w) != TransportKind::shared_memory) return true;
    return false;
  }
  std::unique_ptr<Flight::State> take_idle() {
    if (idle.empty()) return std::make_unique<Flight::State>();
    auto s = std::move(idle.back());
    idle.pop_back();
    return s;
  }

  Flight start_together(std::shared_ptr<Impl> const& self, std::vector<Side> const& from, std::vector<Side> const& to, void const* source,
                        void* target, Items const& items, Operation const& op, void* update, bool at_once);
  Flight start(std::shared_ptr<Impl> const& self, std::vector<Side> const& from, std::vector<Side> const& to, void const* source,
               void* target, Items const& items, Operation const& op, void* update, bool at_once);
  void end(Flight::State& state);
  void end_fetch(Flight::State& state);
  void end_together(Flight::State& state);
};

StarForest::StarForest(Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> const& leaves,
                       std::vector<RemoteRoot> const& remote, std::int64_t leaf_space, TransportChoice transport)
    : impl_(std::make_shared<Impl>()) {
  auto const n = std::int64_t(remote.size());
  std::size_t const listed_leaves = leaves ? leaves->size() : remote.size();
  auto const* const given = leaves ? leaves->data() : nullptr;
  auto const local = [given](std::size_t e) { return given ? given[e] : std::int64_t(e); };
  // one pass for everything that is asked below; which edge is wrong is only looked for when one is
  int const ranks = comm.size();
  std::int64_t leaf_high = -1, signs = 0;
  bool sorted = true, repeats = false, ranks_fit = true;
  constexpr int leaf_bits = 40;  // of the one number by which edges are compared; longer leaves are sorted by the rank and them
  auto const look = [&](auto const& leaf_of) {
    std::int64_t high = -1, before = -1;
    std::uint64_t offset_bits = 0, leaf_signs = 0, high_rank = 0;
    unsigned ordered = 1, again = 0;
    for (std::size_t e = 0; e < std::min(listed_leaves, remote.size()); ++e) {
      auto const leaf = leaf_of(e);
      auto const rank = std::uint64_t(remote[e].rank);
      high = leaf > high ? leaf : high;
      leaf_signs |= std::uint64_t(leaf);
      offset_bits |= std::uint64_t(remote[e].offset);
      high_rank = rank > high_rank ? rank : high_rank;
      auto const key = std::int64_t((rank << leaf_bits) + std::uint64_t(leaf));
      ordered &= unsigned(key >= before);
      again |= unsigned(key == before);
      before = key;
    }
    leaf_high = high, signs = std::int64_t(leaf_signs | offset_bits), repeats = again, ranks_fit = high_rank < std::uint64_t(ranks);
    sorted = ordered && ranks_fit && high < std::int64_t(1) << leaf_bits && ranks < 1 << (62 - leaf_bits);
  };
  if (given) look([given](std::size_t e) { return given[e]; });
  else look([](std::size_t e) { return std::int64_t(e); });
  if (leaf_space < 0) leaf_space = leaf_high + 1;
  agree(comm, [&] {
    ASTERISM_REQUIRE(roots >= 0, shape, "StarForest: nroots is {}.", roots);
    ASTERISM_REQUIRE(listed_leaves == remote.size(), shape, "StarForest: {} leaf positions but {} remote roots.", listed_leaves, n);
    if (signs >= 0 && leaf_high < leaf_space && ranks_fit) return;
    for (std::size_t e = 0; e < remote.size(); ++e) {
      ASTERISM_REQUIRE(local(e) >= 0 && local(e) < leaf_space, value, "StarForest: edge {} has leaf {} outside the leaf space [0, {}).", e,
                       local(e), leaf_space);
      ASTERISM_REQUIRE(remote[e].rank >= 0 && remote[e].rank < ranks, value,
                       "StarForest: leaf {} points at rank {}, but there are {} ranks.", local(e), remote[e].rank, ranks);
      ASTERISM_REQUIRE(remote[e].offset >= 0, value, "StarForest: leaf {} points at root {} of rank {}.", local(e), remote[e].offset,
                       remote[e].rank);
    }
  });
  impl_->comm = comm;
  impl_->choice = transport;
  impl_->roots = roots;
  impl_->leaf_space = leaf_space;
  impl_->leaf_count = n;

  // by (rank, leaf), which they often are already
  struct Edge {
    std::int64_t rank, leaf, place;
  };
  std::vector<Edge> order;
  if (!sorted) {
    order.reserve(static_cast<std::size_t>(n));
    for (std::int64_t e = 0; e < n; ++e) order.push_back({remote[std::size_t(e)].rank, local(std::size_t(e)), e});
    std::sort(order.begin(), order.end(), [](Edge const& a, Edge const& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.leaf != b.leaf ? a.leaf < b.leaf : a.place < b.place;
    });
  }
  std::vector<Parcel> parcels;
  auto const by_rank = [&](auto const& edge, auto const& f) {  // f(rank, first edge, end)
    for (std::int64_t i = 0; i < n;) {
      int const rank = int(remote[edge(i)].rank);
      // the end of the rank's edges by bisection, which are sorted by ranks
      std::int64_t end = i, beyond = n;
      for (end = i + 1; end < beyond;) {
        auto const middle = end + (beyond - end) / 2;
        if (remote[edge(middle)].rank == rank) end = middle + 1;
        else beyond = middle;
      }
      f(rank, i, end);
      i = end;
    }
  };
  auto const in_order = [&](auto const& f) {  // f(edge)
    if (sorted) f([](std::int64_t i) { return std::size_t(i); });
    else f([&](std::int64_t i) { return std::size_t(order[std::size_t(i)].place); });
  };
  in_order([&](auto const& edge) {
    by_rank(edge, [&](int rank, std::int64_t first, std::int64_t end) {
      auto there = IndexSet::of(end - first, [&](std::int64_t l) { return remote[edge(first + l)].offset; });
      Parcel p{rank, {}};
      there.write(p.data);
      p.data.push_back(std::byte(transport));
      parcels.push_back(std::move(p));
      impl_->remote.push_back({rank, std::move(there)});
    });
  });
  // while others receive theirs
  auto const look_at_leaves = [&] {
    in_order([&](auto const& edge) {
      by_rank(edge, [&](int rank, std::int64_t first, std::int64_t end) {
        if (!given && sorted) impl_->leaf_sides.push_back({rank, IndexSet::range(first, end - first)});
        else impl_->leaf_sides.push_back({rank, IndexSet::of(end - first, [&](std::int64_t l) { return local(edge(first + l)); })});
      });
    });
    if (sorted && !repeats && impl_->leaf_sides.size() <= 1) return;
    std::vector<bool> listed(static_cast<std::size_t>(leaf_space), false);
    for (std::size_t e = 0; e < remote.size(); ++e) {
      auto const l = local(e);
      if (listed[std::size_t(l)]) impl_->shared_leaves = true, impl_->repeated_leaf = l;
      listed[std::size_t(l)] = true;
    }
  };
  auto const received = exchange(comm, std::move(parcels), look_at_leaves);
  agree(comm, [&] {  // owners know how many roots they have: nobody else needs to
    for (auto const& p : received) {
      auto const theirs = TransportChoice(p.data.back());
      ASTERISM_REQUIRE(theirs == transport, comm, "StarForest: the transport is {} here and {} on rank {}.", name_of(transport),
                       name_of(theirs), p.rank);
      impl_->root_sides.push_back({p.rank, IndexSet::read(p.data)});
      auto const largest_offset = impl_->root_sides.back().at.largest();
      ASTERISM_REQUIRE(largest_offset < roots, value, "StarForest: a leaf of rank {} points at root {} of rank {}, which has {} roots.",
                       p.rank, largest_offset, comm.rank(), roots);
    }
    impl_->choose_transports();
  });
  impl_->make_shared_transports();
  auto const& sides = impl_->root_sides;
  if (sides.size() > 1 || (sides.size() == 1 && sides[0].at.kind() == IndexSet::Kind::list)) {
    std::vector<std::uint64_t> taken(static_cast<std::size_t>(roots / 64 + 1), 0);
    std::uint64_t twice = 0;
    for (auto const& s : sides)
      s.at.each([&, words = taken.data()](std::int64_t o) {
        auto& word = words[std::uint64_t(o) / 64];
        auto const bit = std::uint64_t(1) << (std::uint64_t(o) % 64);
        twice |= word & bit;
        word |= bit;
      });
    impl_->shared_roots = twice != 0;
  } else if (sides.size() == 1 && sides[0].at.kind() == IndexSet::Kind::strided) {
    impl_->shared_roots = sides[0].at.overlaps();
  }
}

StarForest StarForest::from_layout(Layout const& layout, std::span<std::int64_t const> global) {
  std::vector<RemoteRoot> remote;
  remote.reserve(global.size());
  agree(layout.comm(), [&] {
    for (auto const g : global) {
      int const r = layout.owner(g);
      remote.push_back({r, g - layout.offsets()[std::size_t(r)]});
    }
  });
  return {layout.comm(), layout.local_size(), std::nullopt, remote, std::int64_t(global.size())};
}

Communicator const& StarForest::comm() const { return impl_->comm; }
std::int64_t StarForest::roots() const { return impl_->roots; }
std::int64_t StarForest::leaves() const { return impl_->leaf_count; }
std::int64_t StarForest::leaf_space() const { return impl_->leaf_space; }

TransportChoice StarForest::transport() const { return impl_->choice; }

std::int64_t StarForest::repeated_leaf() const { return impl_->repeated_leaf; }

Graph StarForest::graph() const {
  Graph g;
  for (std::size_t s = 0; s < impl_->leaf_sides.size(); ++s)
    for (std::int64_t e = 0; e < impl_->leaf_sides[s].at.count(); ++e) {
      g.leaves.push_back(impl_->leaf_sides[s].at[e]);
      g.remote.push_back({impl_->leaf_sides[s].rank, impl_->remote[s].at[e]});
    }
  return g;
}

namespace {
std::vector<StarForest::EdgesWith> edges_of(std::vector<Side> const& sides) {
  std::vector<StarForest::EdgesWith> out;
  for (auto const& s : sides) {
    out.push_back({s.rank, {}});
    out.back().at.reserve(std::size_t(s.at.count()));
    s.at.each([&](std::int64_t p) { out.back().at.push_back(p); });
  }
  return out;
}
}  // namespace

std::vector<StarForest::EdgesWith> StarForest::edges_at_roots() const { return edges_of(impl_->root_sides); }
std::vector<StarForest::EdgesWith> StarForest::edges_at_leaves() const { return edges_of(impl_->leaf_sides); }

std::vector<std::int64_t> StarForest::degree() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(roots()), 0);
  for (auto const& s : impl_->root_sides) s.at.each([&](std::int64_t o) { ++out[std::size_t(o)]; });
  return out;
}

StarForest StarForest::multi() const {
  if (impl_->multi) return *impl_->multi;
  auto next = degree();
  std::int64_t total = 0;
  for (auto& d : next) total += std::exchange(d, total);
  StarForest m;
  m.impl_ = std::make_shared<Impl>();
  auto& to = *m.impl_;
  to.comm = comm();
  to.roots = total;
  to.leaf_space = leaf_space();
  to.leaf_count = leaves();
  to.leaf_sides = impl_->leaf_sides;
  to.shared_leaves = impl_->shared_leaves;
  to.repeated_leaf = impl_->repeated_leaf;
  std::vector<Parcel> parcels;  // the leaves' side learns its new roots
  for (auto const& s : impl_->root_sides) {
    std::vector<std::int64_t> places;
    for (std::int64_t e = 0; e < s.at.count(); ++e) places.push_back(next[std::size_t(s.at[e])]++);
    Parcel p{s.rank, {}};
    append<std::int64_t>(p.data, places);
    parcels.push_back(std::move(p));
    to.root_sides.push_back({s.rank, IndexSet(places)});
  }
  for (auto const& p : exchange(comm(), std::move(parcels))) to.remote.push_back({p.rank, IndexSet(items_of<std::int64_t>(p.data))});
  to.choice = impl_->choice;
  to.choose_transports();
  to.make_shared_transports();
  to.record->name = name() + ", gathered";
  impl_->multi = m;
  return m;
}

std::vector<int> StarForest::root_ranks() const {
  std::vector<int> r;
  for (auto const& s : impl_->leaf_sides)
    if (s.rank != comm().rank()) r.push_back(s.rank);
  return r;
}

std::vector<int> StarForest::leaf_ranks() const {
  std::vector<int> r;
  for (auto const& s : impl_->root_sides)
    if (s.rank != comm().rank()) r.push_back(s.rank);
  return r;
}

std::vector<StarForest::Neighbour> StarForest::neighbours() const {
  std::vector<Neighbour> out;
  for (auto const* sides : {&impl_->root_sides, &impl_->leaf_sides})
    for (auto const& s : *sides) {
      auto reason = why(impl_->comm, impl_->choice, s.rank);
      auto const& shared_transport = impl_->shared_transports[std::size_t(s.transport)];
      if (shared_transport && !shared_transport->describe().empty()) reason += format("; the pattern is {}", shared_transport->describe());
      out.push_back(
          {s.rank, sides == &impl_->root_sides, s.at.count(), s.at.describe(), s.at.memory_bytes(), name_of(s.transport), reason});
    }
  return out;
}

void StarForest::Impl::choose_transports() {
  for (auto* sides : {&leaf_sides, &root_sides})
    for (auto& s : *sides) {
      s.transport = reach(comm, choice, s.rank);
      if (s.transport == TransportKind::shared_memory) s.node_index = comm.node()->index_of(s.rank);
      uses[std::size_t(s.transport)] = true;
    }
}

void StarForest::Impl::make_shared_transports() {
  record.emplace(comm, root_sides, leaf_sides);
  epoch = comm.epoch();
  if (comm.size() == 1) return;
  auto const with = [this](TransportKind kind, auto const& make) {
    uses[std::size_t(kind)] = true;  // here too if there is no neighbour
    shared_transports[std::size_t(kind)] = make(Pattern{comm, &root_sides, &leaf_sides});
  };
  if (choice == TransportChoice::neighbor) with(TransportKind::neighbourhood, neighbourhood);
  if (choice == TransportChoice::collective) with(TransportKind::collective, collectives);
  if (by_window(choice))
    with(TransportKind::window, [this](Pattern const& p) {
      return windows(p, choice == TransportChoice::window_fence  ? MpiApi::fence
                        : choice == TransportChoice::window_lock ? MpiApi::lock
                                                                 : MpiApi::pscw);
    });
}

StarForest::Flight StarForest::Impl::start_together(std::shared_ptr<Impl> const& self, std::vector<Side> const& from,
                                                    std::vector<Side> const& to, void const* source, void* target, Items const& items,
                                                    Operation const& op, void* update, bool at_once) {
  return collective(comm, "a star-forest operation", [&] { return start(self, from, to, source, target, items, op, update, at_once); });
}

StarForest::Flight StarForest::Impl::start(std::shared_ptr<Impl> const& self, std::vector<Side> const& from, std::vector<Side> const& to,
                                           void const* source, void* target, Items const& items, Operation const& op, void* update,
                                           bool at_once) {
  comm.end_queued();
  if (comm.epoch() != epoch && std::any_of(shared_transports.begin(), shared_transports.end(), [](auto const& f) { return f != nullptr; }))
    throw Error(
        ErrorKind::comm,
        format("the star forest '{}', whose transport is {}, was made before an error ended a call on its communicator. Make it anew, "
               "or use the transport auto.",
               record->name, name_of(choice)),
        true);
  auto state = take_idle();
  state->combine.set(op, items);  // throws before anything is under way
  if (call_checks())
    require_same_call(comm, record->name, update ? "fetch_and_op" : &from == &root_sides ? "a broadcast" : "a reduction", items, op);
  // in one call the caller's forest lives long enough: nothing is to be counted
  state->forest = at_once ? std::shared_ptr<Impl>(std::shared_ptr<Impl>(), this) : self;
  state->from = &from;
  state->to = &to;
  state->source = static_cast<std::byte const*>(source);
  state->target = static_cast<std::byte*>(target);
  state->unit = items.unit();
  state->update = static_cast<std::byte*>(update);
  state->epoch = comm.epoch();
  state->serial = comm.failures().serial;
  if (call_checks()) state->before.emplace(from, state->source, state->unit);
  state->distinct = !(&to == &root_sides ? shared_roots : shared_leaves);
  state->in_place = op.replaces() && !update && state->distinct;
  // every rank draws the tags, whether it has neighbours by MPI or not
  auto const tag = [&] { return comm.size() > 1 ? comm.new_tag() : 0; };
  bool const down = &from == &root_sides;
  state->forth.traffic = {.comm = &comm,
                          .out = &from,
                          .in = &to,
                          .target = state->target,
                          .unit = state->unit,
                          .in_place = state->in_place,
                          .combines = !op.replaces(),
                          .at_once = at_once,
                          .tag = tag(),
                          .down = down,
                          .roots = down ? &remote : nullptr};
  state->forth.open(uses, shared_transports);
  if (update) {
    if (dense_roots.empty()) {
      std::int64_t at = 0;
      for (auto const& s : root_sides) {
        dense_roots.push_back({s.rank, IndexSet::range(at, s.at.count()), s.transport, s.node_index});
        at += s.at.count();
      }
    }
    // the answers are sent when the operation ends, where ranks have no common order: not by what takes all ranks
    state->back.traffic = {.comm = &comm,
                           .out = &dense_roots,
                           .in = &from,
                           .target = state->update,
                           .unit = state->unit,
                           .in_place = !shared_leaves,
                           .tag = tag()};
    state->back.open(uses, {});
  }
  record->count(state->unit, down);
  if (update) record->count(state->unit, true);
  state->helped = progress_thread() && needs_mpi();
  state->forth.send(state->source);
  if (state->helped) detail::operation_begins(comm.handle());
  ++record->under_way;
  return Flight(std::move(state));
}

std::byte const* StarForest::Flight::State::own_values(int rank) {
  for (auto const& s : *from) {
    if (s.rank != rank) continue;
    if (s.at.contiguous()) return source + s.at.first() * unit;
    packed.resize(std::size_t(s.at.count() * unit));
    s.at.pack(source, packed.data(), unit);
  }
  return packed.data();
}

/// What an error of another call has ended is no call itself: the rank of the error may not have begun it.
void StarForest::Impl::end_together(Flight::State& state) {
  auto const here = [&] {
    if (state.update) end_fetch(state);
    else end(state);
  };
  auto& failures = comm.failures();
  if (state.forth.traffic.at_once || CollectiveCall::is_part_of_another(comm)) return here();
  if (comm.epoch() != state.epoch || Failures::known_since(comm, state.serial)) {
    std::lock_guard const lock(failures.mutex);
    auto const& cause = failures.known ? failures.known->said() : failures.last;
    throw Error(ErrorKind::comm,
                format("this operation on the star forest '{}' was under way when an error ended a call on its communicator, and was given "
                       "up{}{}",
                       record->name, cause.empty() ? "." : ": ", cause),
                true);
  }
  collective(comm, "the end of a star-forest operation", [&] {
    try {
      here();
    } catch (Error const& e) {
      std::lock_guard const lock(failures.mutex);
      auto const cause = failures.known ? failures.known->serial : 0;
      if (e.shared() && cause >= state.serial && cause < failures.serial) --failures.serial;
      throw;
    }
  });
}

void StarForest::Impl::end(Flight::State& state) {
  for (auto const& s : *state.to) {  // in rank order, myself in my place
    if (s.transport == TransportKind::self) state.take(s, 0, s.at.count(), state.own_values(s.rank));
    else state.forth.receive(s, state);
  }
  state.forth.close();
}

/// The leaves' values arrive: each is exchanged for its root's value before it, and these go back.
void StarForest::Impl::end_fetch(Flight::State& state) {
  auto const unit = state.unit;
  struct Collect final : Receiver {
    std::byte* at;
    std::int64_t unit;
    void take(Side const&, std::int64_t, std::int64_t count, std::byte const* data) override {
      std::memcpy(at, data, std::size_t(count * unit));
      at += count * unit;
    }
  } collect;
  auto const edges = dense_roots.empty() ? 0 : dense_roots.back().at.first() + dense_roots.back().at.count();
  std::vector<std::byte> values(static_cast<std::size_t>(edges * unit)), before(static_cast<std::size_t>(unit));
  collect.at = values.data();
  collect.unit = unit;
  for (auto const& s : root_sides) {
    if (s.transport == TransportKind::self) collect.take(s, 0, s.at.count(), state.own_values(s.rank));
    else state.forth.receive(s, collect);
  }
  state.forth.close();
  std::byte const* own = nullptr;
  auto* value = values.data();
  for (auto const& s : root_sides) {
    if (s.transport == TransportKind::self) own = value;
    for (std::int64_t e = 0; e < s.at.count(); ++e, value += unit) {
      auto* const root = state.target + s.at[e] * unit;
      std::memcpy(before.data(), root, std::size_t(unit));
      state.combine(root, value, nullptr, 1);
      std::memcpy(value, before.data(), std::size_t(unit));
    }
  }
  state.back.send(values.data());
  state.target = state.update;
  state.in_place = true;  // a leaf that is listed several times keeps the last
  state.distinct = !shared_leaves;
  for (auto const& s : leaf_sides) {
    if (s.transport == TransportKind::self) state.take(s, 0, s.at.count(), own);
    else state.back.receive(s, state);
  }
  state.back.close();
}

StarForest::Flight::Flight() = default;
StarForest::Flight::Flight(std::unique_ptr<State> state) : state_(std::move(state)) {}
StarForest::Flight::Flight(Flight&&) noexcept = default;
StarForest::Flight& StarForest::Flight::operator=(Flight&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

StarForest::Flight::~Flight() {
  if (!state_) return;
  log::warning("an operation on the star forest '{}' was begun and never ended; it is finished now. Call end().",
               state_->forest->record->name);
  try {
    end();
  } catch (Error const& e) {
    log::warning("{}", e.what());
  }
}

void StarForest::Flight::end() {
  ASTERISM_REQUIRE(state_, comm, "end() was called twice, or on a flight that was never begun.");
  auto const forest = std::move(state_->forest);  // an idle state must not keep its forest alive, one that fails must not outlive it
  auto state = std::move(state_);
  --forest->record->under_way;
  struct Helped {
    bool on;
    ~Helped() {
      if (on) detail::operation_ends();
    }
  } const helped{state->helped};
  forest->end_together(*state);
  if (auto const before = std::exchange(state->before, {}); before)
    before->require_unchanged(*state->from, state->source, state->unit, forest->record->name);
  state->combine.forget();
  forest->idle.push_back(std::move(state));
}

std::string const& StarForest::name() const { return impl_->record->name; }
void StarForest::set_name(std::string name) { impl_->record->name = std::move(name); }

StarForest::Flight StarForest::bcast_begin(void const* root, void* leaf, Items const& items, Operation const& op) const {
  return impl_->start_together(impl_, impl_->root_sides, impl_->leaf_sides, root, leaf, items, op, nullptr, false);
}

StarForest::Flight StarForest::reduce_begin(void const* leaf, void* root, Items const& items, Operation const& op) const {
  return impl_->start_together(impl_, impl_->leaf_sides, impl_->root_sides, leaf, root, items, op, nullptr, false);
}

namespace {
std::byte nothing;  // an empty leaf array may have no address
}

StarForest::Flight StarForest::fetch_and_op_begin(void* root, void const* leaf, void* update, Items const& items,
                                                  Operation const& op) const {
  return impl_->start_together(impl_, impl_->leaf_sides, impl_->root_sides, leaf, root, items, op, update ? update : &nothing, false);
}

void StarForest::bcast(void const* root, void* leaf, Items const& items, Operation const& op) const {
  collective(impl_->comm, "a broadcast",
             [&] { impl_->start(impl_, impl_->root_sides, impl_->leaf_sides, root, leaf, items, op, nullptr, true).end(); });
}

void StarForest::reduce(void const* leaf, void* root, Items const& items, Operation const& op) const {
  collective(impl_->comm, "a reduction",
             [&] { impl_->start(impl_, impl_->leaf_sides, impl_->root_sides, leaf, root, items, op, nullptr, true).end(); });
}

void StarForest::fetch_and_op(void* root, void const* leaf, void* update, Items const& items, Operation const& op) const {
  collective(impl_->comm, "fetch_and_op", [&] {
    impl_->start(impl_, impl_->leaf_sides, impl_->root_sides, leaf, root, items, op, update ? update : &nothing, true).end();
  });
}

}  // namespace asterism::comm
