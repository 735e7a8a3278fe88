#include "asterism/comm/forest/forest_algebra.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "asterism/base/format.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"

namespace asterism::comm {
namespace {

using i64 = std::int64_t;
constexpr RemoteRoot nowhere{-1, -1};

void require_leaves_once(StarForest const& A, char const* call, char const* name) {
  agree(A.comm(), [&] {
    ASTERISM_REQUIRE(A.repeated_leaf() < 0, value, "{}: leaf {} of {} is listed several times, so its root is not defined.", call,
                     A.repeated_leaf(), name);
  });
}

void require_roots_once(StarForest const& A, char const* call, char const* name) {
  auto const degree = A.degree();
  auto const several = std::find_if(degree.begin(), degree.end(), [](i64 d) { return d > 1; });
  agree(A.comm(), [&] {
    ASTERISM_REQUIRE(several == degree.end(), value, "{}: root {} of {} has {} leaves; one at most can be inverted.", call,
                     several - degree.begin(), name, *several);
  });
}

void require_same_ranks(StarForest const& A, StarForest const& B, char const* call) {
  ASTERISM_REQUIRE(A.comm() == B.comm(), comm, "{}: the two forests live on different communicators.", call);
}

/// For each position in [0, size): the root of the leaf there.
std::vector<RemoteRoot> roots_of_positions(StarForest const& A, i64 size) {
  std::vector<RemoteRoot> at(static_cast<std::size_t>(size), nowhere);
  auto const g = A.graph();
  for (std::size_t e = 0; e < g.leaves.size(); ++e)
    if (g.leaves[e] < size) at[std::size_t(g.leaves[e])] = g.remote[e];
  return at;
}

struct Edges {
  std::vector<i64> leaves;
  std::vector<RemoteRoot> remote;
  void add(i64 leaf, RemoteRoot root) {
    leaves.push_back(leaf);
    remote.push_back(root);
  }
};

StarForest made(StarForest const& like, i64 roots, Edges edges, i64 leaf_space) {
  return {like.comm(), roots, std::move(edges.leaves), edges.remote, leaf_space, like.transport()};
}

std::vector<char> flags(Communicator const& comm, i64 size, std::span<i64 const> selected, char const* call, char const* what) {
  std::vector<char> chosen(static_cast<std::size_t>(size), 0);
  agree(comm, [&] {
    for (auto const s : selected) {
      ASTERISM_REQUIRE(s >= 0 && s < size, value, "{}: {} {} is outside [0, {}).", call, what, s, size);
      chosen[std::size_t(s)] = 1;
    }
  });
  return chosen;
}

}  // namespace

StarForest compose(StarForest const& A, StarForest const& B) {
  require_same_ranks(A, B, "compose");
  require_leaves_once(A, "compose", "the first forest");
  require_leaves_once(B, "compose", "the second forest");
  auto const at_roots = roots_of_positions(A, B.roots());
  std::vector<RemoteRoot> at_leaves(static_cast<std::size_t>(B.leaf_space()), nowhere);
  B.bcast(at_roots.data(), at_leaves.data());
  Edges edges;
  for (i64 l = 0; l < B.leaf_space(); ++l)
    if (at_leaves[std::size_t(l)].rank >= 0) edges.add(l, at_leaves[std::size_t(l)]);
  return made(A, A.roots(), std::move(edges), B.leaf_space());
}

StarForest compose_inverse(StarForest const& A, StarForest const& B) {
  require_same_ranks(A, B, "compose_inverse");
  require_leaves_once(A, "compose_inverse", "the first forest");
  require_leaves_once(B, "compose_inverse", "the second forest");
  require_roots_once(B, "compose_inverse", "the second forest");
  auto const at_leaves = roots_of_positions(A, B.leaf_space());
  std::vector<RemoteRoot> at_roots(static_cast<std::size_t>(B.roots()), nowhere);
  B.reduce(at_leaves.data(), at_roots.data(), ReduceOp::replace);
  Edges edges;
  for (i64 r = 0; r < B.roots(); ++r)
    if (at_roots[std::size_t(r)].rank >= 0) edges.add(r, at_roots[std::size_t(r)]);
  return made(A, A.roots(), std::move(edges), B.roots());
}

StarForest inverse(StarForest const& A) {
  require_leaves_once(A, "inverse", "the forest");
  require_roots_once(A, "inverse", "the forest");
  std::vector<RemoteRoot> positions(static_cast<std::size_t>(A.leaf_space())), at_roots(static_cast<std::size_t>(A.roots()), nowhere);
  for (i64 l = 0; l < A.leaf_space(); ++l) positions[std::size_t(l)] = {A.comm().rank(), l};
  A.reduce(positions.data(), at_roots.data(), ReduceOp::replace);
  Edges edges;
  for (i64 r = 0; r < A.roots(); ++r)
    if (at_roots[std::size_t(r)].rank >= 0) edges.add(r, at_roots[std::size_t(r)]);
  return made(A, A.leaf_space(), std::move(edges), A.roots());
}

StarForest embed_roots(StarForest const& A, std::span<i64 const> selected) {
  auto const chosen = flags(A.comm(), A.roots(), selected, "embed_roots", "root");
  // a value for each edge, also where a leaf is listed several times
  auto const g = A.graph();
  std::vector<char> kept(g.leaves.size(), 0);
  StarForest const by_edge(A.comm(), A.roots(), std::nullopt, g.remote, i64(g.leaves.size()), A.transport());
  by_edge.bcast(chosen.data(), kept.data());
  Edges edges;
  for (std::size_t e = 0; e < kept.size(); ++e)
    if (kept[e]) edges.add(g.leaves[e], g.remote[e]);
  return made(A, A.roots(), std::move(edges), A.leaf_space());
}

StarForest embed_leaves(StarForest const& A, std::span<i64 const> selected) {
  auto const chosen = flags(A.comm(), A.leaf_space(), selected, "embed_leaves", "leaf");
  auto const g = A.graph();
  Edges edges;
  for (std::size_t e = 0; e < g.leaves.size(); ++e)
    if (chosen[std::size_t(g.leaves[e])]) edges.add(g.leaves[e], g.remote[e]);
  return made(A, A.roots(), std::move(edges), A.leaf_space());
}

StarForest concatenate(std::span<StarForest const> forests, Spaces roots, Spaces leaves) {
  ASTERISM_REQUIRE(!forests.empty(), value, "concatenate: the list of forests is empty.");
  auto const text = [](Spaces s) { return std::string(s == Spaces::shared ? "True" : "False"); };
  Fact const facts[] = {
      {"number of forests", format("{}", forests.size())}, {"shared_roots", text(roots)}, {"shared_leaves", text(leaves)}};
  require_same(forests[0].comm(), "concatenate", facts);
  i64 root_space = 0, leaf_space = 0;
  Edges edges;
  for (auto const& f : forests) {
    require_same_ranks(forests[0], f, "concatenate");
    auto const g = f.graph();
    // where the owner puts this forest's roots
    std::vector<i64> shift(g.leaves.size(), 0);
    if (roots == Spaces::stacked) {
      std::vector<i64> const mine(static_cast<std::size_t>(f.roots()), root_space);
      StarForest const by_edge(f.comm(), f.roots(), std::nullopt, g.remote, i64(g.leaves.size()), f.transport());
      by_edge.bcast(mine.data(), shift.data());
    }
    for (std::size_t e = 0; e < g.leaves.size(); ++e)
      edges.add(g.leaves[e] + (leaves == Spaces::stacked ? leaf_space : 0), {g.remote[e].rank, g.remote[e].offset + shift[e]});
    root_space = roots == Spaces::stacked ? root_space + f.roots() : std::max(root_space, f.roots());
    leaf_space = leaves == Spaces::stacked ? leaf_space + f.leaf_space() : std::max(leaf_space, f.leaf_space());
  }
  return made(forests[0], root_space, std::move(edges), leaf_space);
}

StarForest strided(StarForest const& A, i64 k) {
  agree(A.comm(), [&] { ASTERISM_REQUIRE(k >= 1, value, "strided: {} items per root.", k); });
  ASTERISM_REQUIRE(A.comm().same_on_all_ranks(k), value, "strided: the ranks give different numbers of items ({} here).", k);
  agree(A.comm(), [&] {
    auto const most = std::numeric_limits<i64>::max() / std::max({A.roots(), A.leaf_space(), i64(1)});
    ASTERISM_REQUIRE(k <= most, value, "strided: {} items for each of {} roots and {} leaves; {} is the most that can be numbered.", k,
                     A.roots(), A.leaf_space(), most);
  });
  auto const g = A.graph();
  Edges edges;
  for (std::size_t e = 0; e < g.leaves.size(); ++e)
    for (i64 j = 0; j < k; ++j) edges.add(g.leaves[e] * k + j, {g.remote[e].rank, g.remote[e].offset * k + j});
  return made(A, A.roots() * k, std::move(edges), A.leaf_space() * k);
}

Section section(StarForest const& points, std::span<i64 const> root_dofs) {
  require_leaves_once(points, "section", "the forest of points");
  struct Place {
    i64 count, first;
  };
  std::vector<Place> at_roots, at_leaves(static_cast<std::size_t>(points.leaf_space()), Place{0, 0});
  i64 total = 0;
  agree(points.comm(), [&] {
    ASTERISM_REQUIRE(i64(root_dofs.size()) == points.roots(), shape, "section: {} counts of unknowns for {} root points.", root_dofs.size(),
                     points.roots());
    for (std::size_t r = 0; r < root_dofs.size(); ++r) {
      ASTERISM_REQUIRE(root_dofs[r] >= 0, value, "section: root point {} has {} unknowns.", r, root_dofs[r]);
      ASTERISM_REQUIRE(root_dofs[r] <= std::numeric_limits<i64>::max() - total, value,
                       "section: the root points up to {} have more unknowns than 64 bits can number.", r);
      at_roots.push_back({root_dofs[r], total});
      total += root_dofs[r];
    }
  });
  points.bcast(at_roots.data(), at_leaves.data());
  Section out;
  std::vector<i64> first;
  i64 leaf_total = 0;
  for (auto const& p : at_leaves) {
    out.leaf_dofs.push_back(p.count);
    first.push_back(leaf_total);
    leaf_total += p.count;
  }
  auto const g = points.graph();
  Edges edges;
  for (std::size_t e = 0; e < g.leaves.size(); ++e) {
    auto const& p = at_leaves[std::size_t(g.leaves[e])];
    for (i64 j = 0; j < p.count; ++j) edges.add(first[std::size_t(g.leaves[e])] + j, {g.remote[e].rank, p.first + j});
  }
  out.forest = made(points, total, std::move(edges), leaf_total);
  return out;
}

StarForest matching(Communicator const& comm, std::span<i64 const> roots, std::span<i64 const> leaves) {
  auto const size = std::size_t(comm.size());
  auto const directory = [&](i64 id) { return std::size_t((std::uint64_t(id) * 0x9e3779b97f4a7c15ull >> 20) % size); };
  auto const spread = [&](std::span<i64 const> ids, bool positions) {
    std::vector<std::vector<i64>> to(size);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto& list = to[directory(ids[i])];
      list.push_back(ids[i]);
      if (positions) list.push_back(i64(i));
    }
    std::vector<Parcel> parcels;
    for (std::size_t r = 0; r < size; ++r)
      if (!to[r].empty()) {
        Parcel p{int(r), {}};
        append<i64>(p.data, to[r]);
        parcels.push_back(std::move(p));
      }
    return exchange(comm, std::move(parcels));
  };
  agree(comm, [&] {
    for (auto const& ids : {roots, leaves})
      for (auto const id : ids) ASTERISM_REQUIRE(id >= 0, value, "matching: number {} is negative.", id);
  });
  std::unordered_map<i64, RemoteRoot> known;
  auto const entries = spread(roots, true);
  agree(comm, [&] {
    for (auto const& p : entries) {
      auto const list = items_of<i64>(p.data);
      for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
        auto const [old, fresh] = known.try_emplace(list[i], RemoteRoot{p.rank, list[i + 1]});
        ASTERISM_REQUIRE(fresh, value, "matching: number {} belongs to root {} of rank {} and to root {} of rank {}.", list[i],
                         old->second.offset, old->second.rank, list[i + 1], p.rank);
      }
    }
  });
  auto const questions = spread(leaves, false);
  std::vector<Parcel> answers;
  agree(comm, [&] {
    for (auto const& p : questions) {
      std::vector<RemoteRoot> found;
      for (auto const id : items_of<i64>(p.data)) {
        auto const at = known.find(id);
        ASTERISM_REQUIRE(at != known.end(), value, "matching: a leaf of rank {} has number {}, which no root has.", p.rank, id);
        found.push_back(at->second);
      }
      Parcel answer{p.rank, {}};
      append<RemoteRoot>(answer.data, found);
      answers.push_back(std::move(answer));
    }
  });
  std::vector<std::vector<RemoteRoot>> from(size);
  for (auto const& p : exchange(comm, std::move(answers))) from[std::size_t(p.rank)] = items_of<RemoteRoot>(p.data);
  std::vector<RemoteRoot> remote;
  std::vector<std::size_t> next(size, 0);
  for (auto const id : leaves) {
    auto const d = directory(id);
    remote.push_back(from[d][next[d]++]);
  }
  return {comm, i64(roots.size()), std::nullopt, remote, i64(leaves.size())};
}

StarForest all_gather_pattern(Communicator const& comm, i64 n) {
  agree(comm, [&] { ASTERISM_REQUIRE(n >= 0, value, "all_gather_pattern: {} roots.", n); });
  std::vector<RemoteRoot> remote;
  auto const counts = comm.all_gather(n);
  for (int r = 0; r < comm.size(); ++r)
    for (i64 i = 0; i < counts[std::size_t(r)]; ++i) remote.push_back({r, i});
  auto const leaves = i64(remote.size());
  return {comm, n, std::nullopt, remote, leaves};
}

StarForest all_to_all_pattern(Communicator const& comm, i64 n) {
  agree(comm, [&] { ASTERISM_REQUIRE(n >= 0, value, "all_to_all_pattern: {} items for each rank.", n); });
  ASTERISM_REQUIRE(comm.same_on_all_ranks(n), value, "all_to_all_pattern: the ranks give different numbers of items ({} here).", n);
  std::vector<RemoteRoot> remote;
  for (int r = 0; r < comm.size(); ++r)
    for (i64 i = 0; i < n; ++i) remote.push_back({r, comm.rank() * n + i});
  return {comm, n * comm.size(), std::nullopt, remote, n * comm.size()};
}

}  // namespace asterism::comm
