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
#include "asterism/comm/forest/star_forest_impl.hpp"

namespace asterism::comm {

StarForest StarForest::from_layout(Layout const& layout, std::span<std::int64_t const> global) {
  std::vector<RemoteRoot> remote;
  remote.reserve(global.size());
  agree(layout.comm(), [&] {
    for (auto const g : global) {
      int const r = layout.owner(g);
      remote.push_back({r, g - layout.first_of(r)});
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

void StarForest::Impl::require_under_way(Flight::State const& state) const {
  if (comm.epoch() == state.epoch && !Failures::known_since(comm, state.serial)) return;
  auto& failures = comm.failures();
  std::lock_guard const lock(failures.mutex);
  auto const& cause = failures.known ? failures.known->said() : failures.last;
  throw Error(ErrorKind::comm,
              format("this operation on the star forest '{}' was under way when an error ended a call on its communicator, and was given "
                     "up{}{}",
                     record->name, cause.empty() ? "." : ": ", cause),
              true);
}

void StarForest::Impl::end_together(Flight::State& state) {
  auto const here = [&] {
    if (state.update) end_fetch(state);
    else end(state);
  };
  if (state.forth.traffic.at_once || CollectiveCall::is_part_of_another(comm)) return here();
  require_under_way(state);
  auto const end_or_give_up = [&] {
    if (comm.epoch() != state.epoch) require_under_way(state);  // the ranks have recovered as this began
    try {
      here();
    } catch (Error const& e) {
      if (e.shared()) comm.failures().late = false;  // no call, which others would have to fail in
      throw;
    }
  };
  collective(comm, "the end of a star-forest operation", end_or_give_up, false, CollectiveCall::Part::end);
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
  } catch (std::exception const& e) {  // also one of a user's function
    log::warning("{}", e.what());
  } catch (...) {
    log::warning("and it failed");
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

void StarForest::Flight::require_under_way() const {
  if (state_) state_->forest->require_under_way(*state_);
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
