// The set-up of a star forest from its edges.
#include <algorithm>
#include <optional>
#include <vector>

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/forest/star_forest_impl.hpp"
#include "asterism/comm/node/node.hpp"

namespace asterism::comm {
namespace {

/// What the patterns of these sides tell of positions that come twice.
std::optional<bool> known_to_repeat(std::vector<Side> const& sides) {
  std::vector<IndexSet const*> sets;
  std::size_t pieces = 0;
  for (auto const& s : sides) {
    sets.push_back(&s.at);
    pieces += s.at.pieces();
  }
  constexpr std::size_t few = 64;  // compared pair by pair
  return pieces <= few ? IndexSet::repeat(sets) : std::nullopt;
}

/// A position below `space` that comes twice in these sides, or -1, by a look at all of them.
std::int64_t repeated(std::vector<Side> const& sides, std::int64_t space) {
  std::int64_t edges = 0;
  for (auto const& s : sides) edges += s.at.count();
  if (space / 64 > 4 * edges + 4096) {  // few in a large space
    std::vector<std::int64_t> all;
    all.reserve(std::size_t(edges));
    for (auto const& s : sides) s.at.each([&](std::int64_t p) { all.push_back(p); });
    std::ranges::sort(all);
    auto const at = std::ranges::adjacent_find(all);
    return at == all.end() ? -1 : *at;
  }
  std::vector<std::uint64_t> taken(static_cast<std::size_t>(space / 64 + 1), 0);
  std::int64_t twice = -1;
  for (auto const& s : sides)
    s.at.each([&, words = taken.data()](std::int64_t p) {
      auto& word = words[std::uint64_t(p) / 64];
      auto const bit = std::uint64_t(1) << (std::uint64_t(p) % 64);
      if (word & bit) twice = p;
      word |= bit;
    });
  return twice;
}

}  // namespace

/// The edges of this rank, as given, on their way to both sides of the forest.
class StarForest::SetUp {
 public:
  SetUp(Impl& forest, std::optional<std::vector<std::int64_t>> const& leaves, std::vector<RemoteRoot> const& remote)
      : forest_(forest), leaves_(leaves ? leaves->data() : nullptr), listed_(leaves ? leaves->size() : remote.size()), remote_(remote) {}

  /// Collective, as all of the set-up.
  void run() {
    look_at_edges();
    if (forest_.leaf_space < 0) forest_.leaf_space = highest_leaf_ + 1;
    agree(forest_.comm, [&] { check(); });
    if (!sorted_) sort();
    auto const received = exchange(forest_.comm, parcels(), [&] {  // while others receive theirs
      make_leaf_sides();
      find_shared_leaves();
    });
    forest_.connect(received);
  }

 private:
  std::int64_t leaf(std::size_t e) const { return leaves_ ? leaves_[e] : std::int64_t(e); }
  std::int64_t count() const { return std::int64_t(remote_.size()); }

  /// One pass for everything that is asked below; which edge is wrong is only looked for when one is.
  void look_at_edges() {
    if (leaves_) look([leaves = leaves_](std::size_t e) { return leaves[e]; });
    else look([](std::size_t e) { return std::int64_t(e); });
  }
  template <class Leaf>
  void look(Leaf const& leaf_of) {
    constexpr int leaf_bits = 40;  // of the one number by which edges are compared; longer leaves are sorted by the rank and them
    int const ranks = forest_.comm.size();
    std::int64_t high = -1, before = -1;
    std::uint64_t offset_bits = 0, leaf_signs = 0, high_rank = 0;
    unsigned ordered = 1, again = 0;
    auto const* const remote = remote_.data();
    for (std::size_t e = 0, n = std::min(listed_, remote_.size()); e < n; ++e) {
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
    highest_leaf_ = high, signs_ = std::int64_t(leaf_signs | offset_bits), repeats_ = again;
    ranks_fit_ = high_rank < std::uint64_t(ranks);
    sorted_ = ordered && ranks_fit_ && high < std::int64_t(1) << leaf_bits && ranks < 1 << (62 - leaf_bits);
  }

  void check() const {
    int const ranks = forest_.comm.size();
    ASTERISM_REQUIRE(forest_.roots >= 0, shape, "StarForest: nroots is {}.", forest_.roots);
    ASTERISM_REQUIRE(listed_ == remote_.size(), shape, "StarForest: {} leaf positions but {} remote roots.", listed_, count());
    if (signs_ >= 0 && highest_leaf_ < forest_.leaf_space && ranks_fit_) return;
    for (std::size_t e = 0; e < remote_.size(); ++e) {
      ASTERISM_REQUIRE(leaf(e) >= 0 && leaf(e) < forest_.leaf_space, value,
                       "StarForest: edge {} has leaf {} outside the leaf space [0, {}).", e, leaf(e), forest_.leaf_space);
      ASTERISM_REQUIRE(remote_[e].rank >= 0 && remote_[e].rank < ranks, value,
                       "StarForest: leaf {} points at rank {}, but there are {} ranks.", leaf(e), remote_[e].rank, ranks);
      ASTERISM_REQUIRE(remote_[e].offset >= 0, value, "StarForest: leaf {} points at root {} of rank {}.", leaf(e), remote_[e].offset,
                       remote_[e].rank);
    }
  }

  /// By (rank, leaf), which they often are already.
  void sort() {
    struct Edge {
      std::int64_t rank, leaf, place;
    };
    std::vector<Edge> order;
    order.reserve(remote_.size());
    for (std::int64_t e = 0; e < count(); ++e) order.push_back({remote_[std::size_t(e)].rank, leaf(std::size_t(e)), e});
    std::sort(order.begin(), order.end(), [](Edge const& a, Edge const& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.leaf != b.leaf ? a.leaf < b.leaf : a.place < b.place;
    });
    places_.reserve(order.size());
    for (auto const& e : order) places_.push_back(e.place);
  }
  /// f(edge), where edge(i) is the place of the i-th edge in that order.
  template <class F>
  void in_order(F const& f) const {
    if (sorted_) f([](std::int64_t i) { return std::size_t(i); });
    else f([this](std::int64_t i) { return std::size_t(places_[std::size_t(i)]); });
  }
  /// f(rank, first edge, end) for each rank; the end of its edges is found by bisection, since they are sorted by ranks.
  template <class Edge, class F>
  void by_rank(Edge const& edge, F const& f) const {
    for (std::int64_t i = 0; i < count();) {
      int const rank = int(remote_[edge(i)].rank);
      std::int64_t end = i + 1, beyond = count();
      while (end < beyond) {
        auto const middle = end + (beyond - end) / 2;
        if (remote_[edge(middle)].rank == rank) end = middle + 1;
        else beyond = middle;
      }
      f(rank, i, end);
      i = end;
    }
  }

  /// To each owner: which of its roots are wanted, and by which transport.
  std::vector<Parcel> parcels() {
    std::vector<Parcel> out;
    in_order([&](auto const& edge) {
      by_rank(edge, [&](int rank, std::int64_t first, std::int64_t end) {
        auto there = IndexSet::of(end - first, [&](std::int64_t l) { return remote_[edge(first + l)].offset; });
        out.push_back(forest_.parcel(rank, there));
        forest_.remote.push_back({rank, std::move(there)});
      });
    });
    return out;
  }

  void make_leaf_sides() {
    in_order([&](auto const& edge) {
      by_rank(edge, [&](int rank, std::int64_t first, std::int64_t end) {
        if (!leaves_ && sorted_) forest_.leaf_sides.push_back({rank, IndexSet::range(first, end - first)});
        else forest_.leaf_sides.push_back({rank, IndexSet::of(end - first, [&](std::int64_t l) { return leaf(edge(first + l)); })});
      });
    });
  }

  void find_shared_leaves() {
    if (sorted_ && !repeats_ && forest_.leaf_sides.size() <= 1) return;
    forest_.find_shared_leaves();
  }

  Impl& forest_;
  std::int64_t const* leaves_;  // nullptr: 0, 1, 2, ...
  std::size_t listed_;
  std::vector<RemoteRoot> const& remote_;
  std::int64_t highest_leaf_ = -1, signs_ = 0;
  bool sorted_ = true, repeats_ = false, ranks_fit_ = true;
  std::vector<std::int64_t> places_;  // in order, where they are not
};

StarForest StarForest::from_index_sets(Communicator const& comm, std::int64_t roots, std::vector<EdgeSets> edges, std::int64_t leaf_space,
                                       TransportChoice transport) {
  StarForest forest;
  forest.impl_ = std::make_shared<Impl>();
  auto& f = *forest.impl_;
  f.comm = comm;
  f.choice = transport;
  f.roots = roots;
  f.leaf_space = leaf_space;
  std::sort(edges.begin(), edges.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
  agree(comm, [&] {
    ASTERISM_REQUIRE(roots >= 0, shape, "StarForest: nroots is {}.", roots);
    for (std::size_t e = 0; e < edges.size(); ++e) {
      auto const& [rank, leaves, there] = edges[e];
      ASTERISM_REQUIRE(rank >= 0 && rank < comm.size(), value, "StarForest: edges with rank {}, but there are {} ranks.", rank,
                       comm.size());
      ASTERISM_REQUIRE(e == 0 || edges[e - 1].rank < rank, value, "StarForest: edges with rank {} come twice.", rank);
      ASTERISM_REQUIRE(leaves.count() == there.count(), shape, "StarForest: {} leaves but {} roots of rank {}.", leaves.count(),
                       there.count(), rank);
      ASTERISM_REQUIRE(leaves.largest() < leaf_space, value, "StarForest: leaf {} is outside the leaf space [0, {}).", leaves.largest(),
                       leaf_space);
    }
  });
  std::vector<Parcel> parcels;
  for (auto& [rank, leaves, there] : edges) {
    if (leaves.count() == 0) continue;
    parcels.push_back(f.parcel(rank, there));
    f.leaf_count += leaves.count();
    f.leaf_sides.push_back({rank, std::move(leaves)});
    f.remote.push_back({rank, std::move(there)});
  }
  f.find_shared_leaves();
  f.connect(exchange(comm, std::move(parcels)));
  return forest;
}

Parcel StarForest::Impl::parcel(int rank, IndexSet const& roots_there) const {
  Parcel p{rank, {}};
  roots_there.write(p.data);
  p.data.push_back(std::byte(choice));
  return p;
}

void StarForest::Impl::connect(std::vector<Parcel> const& received) {
  agree(comm, [&] { make_root_sides(received); });  // owners know how many roots they have: nobody else needs to
  make_shared_transports();
  auto const known = known_to_repeat(root_sides);
  shared_roots = known ? *known : repeated(root_sides, roots) >= 0;
}

void StarForest::Impl::find_shared_leaves() {
  repeated_leaf = known_to_repeat(leaf_sides) == false ? -1 : repeated(leaf_sides, leaf_space);
  shared_leaves = repeated_leaf >= 0;
}

void StarForest::Impl::make_root_sides(std::vector<Parcel> const& received) {
  for (auto const& p : received) {
    auto const theirs = TransportChoice(p.data.back());
    ASTERISM_REQUIRE(theirs == choice, comm, "StarForest: the transport is {} here and {} on rank {}.", name_of(choice), name_of(theirs),
                     p.rank);
    root_sides.push_back({p.rank, IndexSet::read(p.data)});
    auto const largest = root_sides.back().at.largest();
    ASTERISM_REQUIRE(largest < roots, value, "StarForest: a leaf of rank {} points at root {} of rank {}, which has {} roots.", p.rank,
                     largest, comm.rank(), roots);
  }
  choose_transports();
}

StarForest::StarForest(Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> const& leaves,
                       std::vector<RemoteRoot> const& remote, std::int64_t leaf_space, TransportChoice transport)
    : impl_(std::make_shared<Impl>()) {
  impl_->comm = comm;
  impl_->choice = transport;
  impl_->roots = roots;
  impl_->leaf_space = leaf_space;
  impl_->leaf_count = std::int64_t(remote.size());
  SetUp(*impl_, leaves, remote).run();
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
  auto const kind = forest_transport(choice);
  if (kind == TransportKind::self) return;
  uses[std::size_t(kind)] = true;  // here too if there is no neighbour
  auto& made = shared_transports[std::size_t(kind)];
  Pattern const pattern{comm, &root_sides, &leaf_sides};
  switch (kind) {
#define MAKE(name, text) \
  case TransportKind::name: made = name##_transport(pattern); break;
    ASTERISM_FOREST_TRANSPORTS(MAKE)
#undef MAKE
    default: break;
  }
}

}  // namespace asterism::comm
