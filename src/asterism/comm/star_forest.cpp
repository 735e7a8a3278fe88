#include "asterism/comm/star_forest.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/exchange.hpp"

namespace asterism::comm {
namespace {

/// My indices that one neighbour's data goes to or comes from.
struct Side {
  int rank = 0;
  std::vector<std::int64_t> index;  // empty when contiguous
  std::int64_t first = 0, count = 0;
  bool contiguous = false;

  Side(int r, std::vector<std::int64_t> list) : rank(r), index(std::move(list)), count(std::int64_t(index.size())) {
    first = count ? index[0] : 0;
    contiguous = true;
    for (std::int64_t i = 1; i < count && contiguous; ++i) contiguous = index[std::size_t(i)] == first + i;
    if (contiguous) index = {};
  }
  std::int64_t at(std::int64_t i) const { return contiguous ? first + i : index[std::size_t(i)]; }
};

template <class Item>
void gather_items(Side const& s, void const* from, void* to) {
  auto const* f = static_cast<Item const*>(from);
  auto* t = static_cast<Item*>(to);
  for (std::int64_t i = 0; i < s.count; ++i) t[i] = f[s.index[std::size_t(i)]];
}

void pack(Side const& s, void const* data, void* buffer, std::int64_t unit) {
  auto const* d = static_cast<std::byte const*>(data);
  if (s.contiguous) std::memcpy(buffer, d + s.first * unit, std::size_t(s.count * unit));
  else if (unit == 4) gather_items<std::uint32_t>(s, data, buffer);
  else if (unit == 8) gather_items<std::uint64_t>(s, data, buffer);
  else
    for (std::int64_t i = 0; i < s.count; ++i)
      std::memcpy(static_cast<std::byte*>(buffer) + i * unit, d + s.index[std::size_t(i)] * unit, std::size_t(unit));
}

void unpack(Side const& s, void const* buffer, void* data, std::int64_t unit) {
  auto* d = static_cast<std::byte*>(data);
  if (s.contiguous) {
    std::memcpy(d + s.first * unit, buffer, std::size_t(s.count * unit));
    return;
  }
  for (std::int64_t i = 0; i < s.count; ++i)
    std::memcpy(d + s.index[std::size_t(i)] * unit, static_cast<std::byte const*>(buffer) + i * unit, std::size_t(unit));
}

}  // namespace

struct StarForest::Impl {
  Communicator comm;
  std::int64_t roots = 0, leaf_space = 0, leaf_count = 0;
  std::vector<Side> leaf_sides;  // by owner rank, mine included
  std::vector<Side> root_sides;  // by leaf rank, mine included; same order of edges as the other side's
  std::vector<Side> remote;      // offsets of the roots of leaf_sides at their owners
  // several values may meet in one place: a replace must then keep the order of ranks
  bool shared_roots = false, shared_leaves = false;
  std::int64_t repeated_leaf = -1;
  std::optional<StarForest> multi;
  struct Link {  // buffers of one operation, kept for the next
    std::vector<std::byte> send, receive;
    void* batch = nullptr;
  };
  std::vector<std::unique_ptr<Link>> idle;

  std::unique_ptr<Link> take_link() {
    if (idle.empty()) {
      auto l = std::make_unique<Link>();
      if (mpi()) l->batch = mpi()->batch_new();
      return l;
    }
    auto l = std::move(idle.back());
    idle.pop_back();
    return l;
  }
  ~Impl() {
    for (auto& l : idle)
      if (l->batch) mpi()->batch_free(l->batch);
  }

  Flight start(std::shared_ptr<Impl> const& self, std::vector<Side> const& from, std::vector<Side> const& to, void const* source,
               void* target, Items items, Operation const& op, void* update);
  void end(Flight::State& state);
  void end_fetch(Flight::State& state);
  std::byte const* self_data(Flight::State const& state, std::vector<std::byte>& packed) const;
};

struct StarForest::Flight::State {
  std::shared_ptr<Impl> forest;
  std::unique_ptr<Impl::Link> link;
  std::vector<Side> const *from = nullptr, *to = nullptr;
  void const* source = nullptr;
  void* target = nullptr;
  std::int64_t unit = 0;
  Combine combine;
  bool in_place = false;   // contiguous sets are received where they belong
  void* update = nullptr;  // fetch_and_op: where the leaves' old root values go
  int tag_back = 0;
};

StarForest::StarForest(Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> leaves,
                       std::vector<RemoteRoot> const& remote, std::int64_t leaf_space)
    : impl_(std::make_shared<Impl>()) {
  auto const n = std::int64_t(remote.size());
  auto const all_roots = comm.all_gather(roots);
  std::vector<std::int64_t> const local = [&] {
    if (leaves) return *leaves;
    std::vector<std::int64_t> l(static_cast<std::size_t>(n));
    std::iota(l.begin(), l.end(), std::int64_t(0));
    return l;
  }();
  auto const largest = local.empty() ? -1 : *std::max_element(local.begin(), local.end());
  if (leaf_space < 0) leaf_space = largest + 1;
  agree(comm, [&] {
    ASTERISM_REQUIRE(roots >= 0, shape, "StarForest: nroots is {}.", roots);
    ASTERISM_REQUIRE(std::int64_t(local.size()) == n, shape, "StarForest: {} leaf positions but {} remote roots.", local.size(), n);
    for (std::int64_t e = 0; e < n; ++e) {
      auto const& r = remote[std::size_t(e)];
      ASTERISM_REQUIRE(local[std::size_t(e)] >= 0 && local[std::size_t(e)] < leaf_space, value,
                       "StarForest: edge {} has leaf {} outside the leaf space [0, {}).", e, local[std::size_t(e)], leaf_space);
      ASTERISM_REQUIRE(r.rank >= 0 && r.rank < comm.size(), value, "StarForest: leaf {} points at rank {}, but there are {} ranks.",
                       local[std::size_t(e)], r.rank, comm.size());
      ASTERISM_REQUIRE(r.offset >= 0 && r.offset < all_roots[std::size_t(r.rank)], value,
                       "StarForest: leaf {} points at root {} of rank {}, which has {} roots.", local[std::size_t(e)], r.offset, r.rank,
                       all_roots[std::size_t(r.rank)]);
    }
  });
  impl_->comm = comm;
  impl_->roots = roots;
  impl_->leaf_space = leaf_space;
  impl_->leaf_count = n;

  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t(0));
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    auto const &x = remote[std::size_t(a)], &y = remote[std::size_t(b)];
    return x.rank != y.rank ? x.rank < y.rank : local[std::size_t(a)] < local[std::size_t(b)];
  });
  std::vector<Parcel> parcels;
  for (std::int64_t e = 0; e < n;) {
    int const rank = int(remote[std::size_t(order[std::size_t(e)])].rank);
    std::vector<std::int64_t> mine, theirs;
    for (; e < n && remote[std::size_t(order[std::size_t(e)])].rank == rank; ++e) {
      mine.push_back(local[std::size_t(order[std::size_t(e)])]);
      theirs.push_back(remote[std::size_t(order[std::size_t(e)])].offset);
    }
    Parcel p{rank, {}};
    append<std::int64_t>(p.data, theirs);
    parcels.push_back(std::move(p));
    impl_->remote.emplace_back(rank, std::move(theirs));
    impl_->leaf_sides.emplace_back(rank, std::move(mine));
  }
  std::vector<bool> listed(static_cast<std::size_t>(leaf_space), false);
  for (auto const l : local) {
    if (listed[std::size_t(l)]) impl_->shared_leaves = true, impl_->repeated_leaf = l;
    listed[std::size_t(l)] = true;
  }
  std::vector<bool> taken(static_cast<std::size_t>(roots), false);
  for (auto& p : exchange(comm, std::move(parcels))) {
    auto offsets = items_of<std::int64_t>(p.data);
    for (auto const o : offsets) {
      impl_->shared_roots = impl_->shared_roots || taken[std::size_t(o)];
      taken[std::size_t(o)] = true;
    }
    impl_->root_sides.emplace_back(p.rank, std::move(offsets));
  }
}

StarForest StarForest::from_layout(Layout const& layout, std::span<std::int64_t const> global) {
  std::vector<RemoteRoot> remote;
  remote.reserve(global.size());
  for (auto const g : global) {
    int const r = layout.owner(g);
    remote.push_back({r, g - layout.offsets()[std::size_t(r)]});
  }
  return {layout.comm(), layout.local_size(), std::nullopt, remote, std::int64_t(global.size())};
}

Communicator const& StarForest::comm() const { return impl_->comm; }
std::int64_t StarForest::roots() const { return impl_->roots; }
std::int64_t StarForest::leaves() const { return impl_->leaf_count; }
std::int64_t StarForest::leaf_space() const { return impl_->leaf_space; }

std::int64_t StarForest::repeated_leaf() const { return impl_->repeated_leaf; }

Graph StarForest::graph() const {
  Graph g;
  for (std::size_t s = 0; s < impl_->leaf_sides.size(); ++s)
    for (std::int64_t e = 0; e < impl_->leaf_sides[s].count; ++e) {
      g.leaves.push_back(impl_->leaf_sides[s].at(e));
      g.remote.push_back({impl_->leaf_sides[s].rank, impl_->remote[s].at(e)});
    }
  return g;
}

std::vector<std::int64_t> StarForest::degree() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(roots()), 0);
  for (auto const& s : impl_->root_sides)
    for (std::int64_t e = 0; e < s.count; ++e) ++out[std::size_t(s.at(e))];
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
    for (std::int64_t e = 0; e < s.count; ++e) places.push_back(next[std::size_t(s.at(e))]++);
    Parcel p{s.rank, {}};
    append<std::int64_t>(p.data, places);
    parcels.push_back(std::move(p));
    to.root_sides.emplace_back(s.rank, std::move(places));
  }
  for (auto const& p : exchange(comm(), std::move(parcels))) to.remote.emplace_back(p.rank, items_of<std::int64_t>(p.data));
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

std::int64_t StarForest::sent_items() const {
  std::int64_t n = 0;
  for (auto const& s : impl_->root_sides)
    if (s.rank != comm().rank()) n += s.count;
  return n;
}

StarForest::Flight StarForest::Impl::start(std::shared_ptr<Impl> const& self, std::vector<Side> const& from, std::vector<Side> const& to,
                                           void const* source, void* target, Items items, Operation const& op, void* update) {
  auto state = std::make_unique<Flight::State>();
  auto const unit = items.unit();
  state->forest = self;
  state->from = &from;
  state->to = &to;
  state->source = source;
  state->target = target;
  state->unit = unit;
  state->combine = Combine(op, items);
  state->update = update;
  bool const in_place = state->in_place = op.replaces() && !update && !(&to == &root_sides ? shared_roots : shared_leaves);
  if (comm.size() == 1) return Flight(std::move(state));

  state->link = take_link();
  auto const* api = mpi();
  auto& link = *state->link;
  int const tag = comm.new_tag();
  if (update) state->tag_back = comm.new_tag();
  std::int64_t in = 0, out = 0;
  for (auto const& s : to)
    if (s.rank != comm.rank() && !(s.contiguous && in_place)) in += s.count * unit;
  for (auto const& s : from)
    if (s.rank != comm.rank() && !s.contiguous) out += s.count * unit;
  if (link.receive.size() < std::size_t(in)) link.receive.resize(std::size_t(in));
  if (link.send.size() < std::size_t(out)) link.send.resize(std::size_t(out));
  in = out = 0;
  for (auto const& s : to) {
    if (s.rank == comm.rank()) continue;
    void* place = static_cast<std::byte*>(target) + s.first * unit;
    if (!(s.contiguous && in_place)) {
      place = link.receive.data() + in;
      in += s.count * unit;
    }
    check_mpi(api->irecv(link.batch, comm.handle(), place, s.count * unit, s.rank, tag), "MPI_Irecv");
  }
  for (auto const& s : from) {
    if (s.rank == comm.rank()) continue;
    void const* place = static_cast<std::byte const*>(source) + s.first * unit;
    if (!s.contiguous) {
      pack(s, source, link.send.data() + out, unit);
      place = link.send.data() + out;
      out += s.count * unit;
    }
    check_mpi(api->isend(link.batch, comm.handle(), place, s.count * unit, s.rank, tag), "MPI_Isend");
    profile::count_message(1, double(s.count * unit));
  }
  return Flight(std::move(state));
}

/// My own edges' values in the order of the edges: where they lie if they are contiguous, else packed into `packed`.
std::byte const* StarForest::Impl::self_data(Flight::State const& state, std::vector<std::byte>& packed) const {
  for (auto const& s : *state.from) {
    if (s.rank != comm.rank()) continue;
    if (s.contiguous) return static_cast<std::byte const*>(state.source) + s.first * state.unit;
    packed.resize(std::size_t(s.count * state.unit));
    pack(s, state.source, packed.data(), state.unit);
  }
  return packed.data();
}

void StarForest::Impl::end(Flight::State& state) {
  std::int64_t in = 0;
  std::vector<std::byte> packed;
  for (auto const& s : *state.to) {  // in rank order, myself in my place
    std::byte const* data = nullptr;
    if (s.rank == comm.rank()) {
      data = self_data(state, packed);
    } else if (s.contiguous && state.in_place) {
      continue;  // received in place
    } else {
      data = state.link->receive.data() + in;
      in += s.count * state.unit;
    }
    if (state.in_place) unpack(s, data, state.target, state.unit);
    else if (s.contiguous) state.combine(static_cast<std::byte*>(state.target) + s.first * state.unit, data, nullptr, s.count);
    else state.combine(state.target, data, s.index.data(), s.count);
  }
}

/// The leaves' values are here: each is exchanged for its root's value before it, and these go back.
void StarForest::Impl::end_fetch(Flight::State& state) {
  auto const unit = std::size_t(state.unit);
  std::vector<std::byte> mine, before(unit);
  auto* const roots_at = static_cast<std::byte*>(state.target);
  {
    std::vector<std::byte> packed;
    for (auto const& s : *state.from)
      if (s.rank == comm.rank()) {
        auto const* data = self_data(state, packed);
        mine.assign(data, data + s.count * state.unit);
      }
  }
  std::int64_t in = 0;
  for (auto const& s : *state.to) {
    std::byte* values = mine.data();
    if (s.rank != comm.rank()) {
      values = state.link->receive.data() + in;
      in += s.count * state.unit;
    }
    for (std::int64_t e = 0; e < s.count; ++e) {
      auto* const root = roots_at + s.at(e) * state.unit;
      auto* const value = values + e * state.unit;
      std::memcpy(before.data(), root, unit);
      state.combine(root, value, nullptr, 1);
      std::memcpy(value, before.data(), unit);
    }
  }
  if (comm.size() > 1) {  // back; contiguous leaves take them in place, the others through the send buffer
    auto const* api = mpi();
    auto& link = *state.link;
    bool const in_place = !shared_leaves;
    std::int64_t out = 0;
    for (auto const& s : *state.from)
      if (s.rank != comm.rank()) out += s.count * state.unit;
    if (link.send.size() < std::size_t(out)) link.send.resize(std::size_t(out));
    out = in = 0;
    for (auto const& s : *state.from) {
      if (s.rank == comm.rank()) continue;
      void* const place = s.contiguous && in_place ? static_cast<std::byte*>(state.update) + s.first * state.unit : link.send.data() + out;
      check_mpi(api->irecv(link.batch, comm.handle(), place, s.count * state.unit, s.rank, state.tag_back), "MPI_Irecv");
      out += s.count * state.unit;
    }
    for (auto const& s : *state.to) {
      if (s.rank == comm.rank()) continue;
      check_mpi(api->isend(link.batch, comm.handle(), link.receive.data() + in, s.count * state.unit, s.rank, state.tag_back), "MPI_Isend");
      profile::count_message(1, double(s.count * state.unit));
      in += s.count * state.unit;
    }
    check_mpi(api->waitall(link.batch), "MPI_Waitall");
  }
  std::int64_t out = 0;
  for (auto const& s : *state.from) {
    if (s.rank == comm.rank()) {
      unpack(s, mine.data(), state.update, state.unit);
      continue;
    }
    if (!s.contiguous || shared_leaves) unpack(s, state.link->send.data() + out, state.update, state.unit);
    out += s.count * state.unit;
  }
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
  log::warning("a star-forest operation was begun and never ended; it is finished now. Call end().");
  try {
    end();
  } catch (Error const& e) {
    log::warning("{}", e.what());
  }
}

void StarForest::Flight::end() {
  ASTERISM_REQUIRE(state_, comm, "end() was called twice, or on a flight that was never begun.");
  auto const state = std::move(state_);
  auto& forest = *state->forest;
  if (state->link) check_mpi(mpi()->waitall(state->link->batch), "MPI_Waitall");
  if (state->update) forest.end_fetch(*state);
  else forest.end(*state);
  if (state->link) forest.idle.push_back(std::move(state->link));
}

StarForest::Flight StarForest::bcast_begin(void const* root, void* leaf, Items items, Operation const& op) const {
  return impl_->start(impl_, impl_->root_sides, impl_->leaf_sides, root, leaf, items, op, nullptr);
}

StarForest::Flight StarForest::reduce_begin(void const* leaf, void* root, Items items, Operation const& op) const {
  return impl_->start(impl_, impl_->leaf_sides, impl_->root_sides, leaf, root, items, op, nullptr);
}

StarForest::Flight StarForest::fetch_and_op_begin(void* root, void const* leaf, void* update, Items items, Operation const& op) const {
  static std::byte nothing;  // an empty leaf array may have no address
  return impl_->start(impl_, impl_->leaf_sides, impl_->root_sides, leaf, root, items, op, update ? update : &nothing);
}

}  // namespace asterism::comm
