#include "asterism/grid/partition.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using EdgeSets = comm::StarForest::EdgeSets;

i64 modulo(i64 a, i64 n) { return (a % n + n) % n; }

/// Where box c of p begins among n points that `used` of them have: part j of these is that of box j p / used. The first n % used parts
/// have one more.
i64 begin_of_box(i64 n, i64 p, i64 used, i64 c) {
  i64 const part = (c * used + p - 1) / p;
  return n / used * part + std::min<i64>(part, n % used);
}

/// numbers: the shape, the boxes, and how many are used.
i64 first_of_rank(std::vector<i64> const& numbers, i64 rank, i64 ranks) {
  auto const *n = numbers.data(), *p = n + 3, *u = n + 6;
  if (rank == ranks) return n[0] * n[1] * n[2];
  i64 const a = rank / (p[1] * p[2]), b = rank / p[2] % p[1], c = rank % p[2];
  i64 const x = begin_of_box(n[0], p[0], u[0], a), dx = begin_of_box(n[0], p[0], u[0], a + 1) - x;
  i64 const y = begin_of_box(n[1], p[1], u[1], b), dy = begin_of_box(n[1], p[1], u[1], b + 1) - y;
  return x * n[1] * n[2] + dx * (y * n[2] + dy * begin_of_box(n[2], p[2], u[2], c));
}

/// A part of a box as positions of an array.
comm::IndexSet positions(Triple const& low, Triple const& size, Triple const& array, i64 first = 0) {
  return comm::IndexSet::box(first + (low[0] * array[1] + low[1]) * array[2] + low[2], size, array[2], array[1]);
}

/// Collects the pieces of the edges with each rank.
class Edges {
 public:
  void add(int rank, comm::IndexSet leaves, comm::IndexSet roots) {
    auto& [l, r] = pieces_[rank];
    l.push_back(std::move(leaves));
    r.push_back(std::move(roots));
  }
  std::vector<EdgeSets> joined() const {
    std::vector<EdgeSets> out;
    for (auto const& [rank, sets] : pieces_) out.push_back({rank, comm::IndexSet::joined(sets.first), comm::IndexSet::joined(sets.second)});
    return out;
  }

 private:
  std::map<int, std::pair<std::vector<comm::IndexSet>, std::vector<comm::IndexSet>>> pieces_;
};

Triple lengths(std::array<Partition::Run, 3> const& part) { return {part[0].length, part[1].length, part[2].length}; }

}  // namespace

/// Of equals the one that cuts the slower directions: its faces lie closer together in memory.
std::array<int, 3> Partition::choose_boxes(Triple const& n, int dimensions, std::array<bool, 3> const& periodic, int ranks) {
  double best = std::numeric_limits<double>::infinity();
  std::array<int, 3> out{1, 1, 1};
  for (int a = ranks; a >= 1; --a)
    for (int b = ranks % a ? 0 : ranks / a; b >= 1; --b) {
      if (ranks / a % b) continue;
      if ((dimensions < 3 && a > 1) || (dimensions < 2 && b > 1)) continue;
      std::array<int, 3> const p{a, b, ranks / (a * b)};
      double cost = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        double const faces = periodic[d] && p[d] > 1 ? p[d] : p[d] - 1;
        cost += faces * double(n[0]) * double(n[1]) * double(n[2]) / double(n[d]);
        if (p[d] > n[d]) cost += 1e18 * p[d];  // empty boxes only where nothing else is left
      }
      if (cost < best) {
        best = cost;
        out = p;
      }
    }
  return out;
}

std::array<i64, 2> Partition::cut(std::size_t d, int box) const {
  return {begin_of_box(n_[d], p_[d], used_[d], box), begin_of_box(n_[d], p_[d], used_[d], box + 1)};
}

Partition Partition::on_fewer(i64 ranks) const {
  auto out = *this;
  auto const has_points = [&](std::size_t d) { return std::min<i64>(out.used_[d], n_[d]); };
  while (has_points(0) * has_points(1) * has_points(2) > std::max<i64>(1, ranks)) {
    std::size_t most = 0;
    for (std::size_t d = 1; d < 3; ++d)
      if (has_points(d) > has_points(most)) most = d;
    out.used_[most] = int(has_points(most)) - 1;
  }
  return out;
}

std::array<i64, 2> Partition::cut_with_ghosts(std::size_t d, int box) const {
  auto [low, high] = cut(d, box);
  if (low == high) return {low, high};  // nothing of one's own, so nothing around it
  low -= width_;
  high += width_;
  if (!periodic_[d]) {
    low = std::max<i64>(low, 0);
    high = std::min(high, n_[d]);
  }
  return {low, high};
}

Box Partition::box(int rank, Cut cut_of) const {
  auto const at = box_of(rank);
  Box out;
  for (std::size_t d = 0; d < 3; ++d) {
    auto const [low, high] = (this->*cut_of)(d, at[d]);
    out.low[d] = low, out.high[d] = high;
  }
  return out;
}

Box Partition::owned(int rank) const { return box(rank, &Partition::cut); }
Box Partition::ghosted(int rank) const { return box(rank, &Partition::cut_with_ghosts); }

int Partition::box_at(std::size_t d, i64 i) const {
  i64 const q = n_[d] / used_[d], extra = n_[d] % used_[d];  // the first `extra` parts have q + 1 points
  i64 const part = i < extra * (q + 1) ? i / (q + 1) : extra + (i - extra * (q + 1)) / q;
  return int(part * p_[d] / used_[d]);
}

comm::Layout Partition::layout(comm::Communicator const& comm) const { return comm::Layout::from_rule(comm, first_of_rank, numbers()); }

std::vector<i64> Partition::numbers() const { return {n_[0], n_[1], n_[2], p_[0], p_[1], p_[2], used_[0], used_[1], used_[2]}; }

i64 Partition::number(Triple const& point) const {
  int const rank = rank_of({box_at(0, point[0]), box_at(1, point[1]), box_at(2, point[2])});
  auto const own = owned(rank);
  auto const size = own.sizes();
  return first_of_rank(numbers(), rank, ranks()) + ((point[0] - own.low[0]) * size[1] + point[1] - own.low[1]) * size[2] + point[2] -
         own.low[2];
}

std::vector<Partition::Run> Partition::runs(int rank, std::size_t d) const {
  int const me = box_of(rank)[d];
  return runs(d, cut_with_ghosts(d, me), cut(d, me));
}

std::vector<Partition::Run> Partition::runs(std::size_t d, std::array<i64, 2> of, std::array<i64, 2> own) const {
  auto const [first, last] = of;
  auto const [low, high] = own;
  std::vector<Run> out;
  for (i64 g = first; g < last;) {
    int const side = g < low ? -1 : g < high ? 0 : 1;
    i64 const i = modulo(g, n_[d]);
    int const box = box_at(d, i);
    auto const [begin, end] = cut(d, box);
    // up to the owner's end, and not across the border of the own points
    i64 const stop = std::min({last, g + end - i, side < 0 ? low : side == 0 ? high : last});
    out.push_back({box, side, g - first, g - (side < 0 ? first : side == 0 ? low : high), i - begin, stop - g});
    g = stop;
  }
  return out;
}

Partition::Slab Partition::slab(int rank, std::array<int, 3> const& side) const {
  auto const own = owned(rank), around = ghosted(rank);
  i64 first = 0;
  for (int a = -1; a <= 1; ++a)
    for (int b = -1; b <= 1; ++b)
      for (int c = -1; c <= 1; ++c) {
        std::array<int, 3> const s{a, b, c};
        int const outside = (a != 0) + (b != 0) + (c != 0);
        Slab slab{first, {}};
        bool const there = outside == 1 || (outside > 1 && stencil_ == Stencil::box);
        for (std::size_t d = 0; d < 3 && there; ++d)
          slab.size[d] = s[d] < 0 ? own.low[d] - around.low[d] : s[d] > 0 ? around.high[d] - own.high[d] : own.high[d] - own.low[d];
        if (s == side) return slab;
        first += slab.points();
      }
  return {};
}

i64 Partition::ghosts(int rank) const {
  auto const last = slab(rank, {1, 1, 1});
  return last.first + last.points();
}

std::vector<EdgeSets> Partition::to_ghosts(int rank) const {
  Edges edges;
  each_part(rank, stencil_, [&](std::array<Run, 3> const& part, int owner, bool own) {
    if (own) return;
    auto const s = slab(rank, {part[0].side, part[1].side, part[2].side});
    edges.add(owner, positions({part[0].in_side, part[1].in_side, part[2].in_side}, lengths(part), s.size, s.first),
              positions({part[0].theirs, part[1].theirs, part[2].theirs}, lengths(part), owned(owner).sizes()));
  });
  return edges.joined();
}

std::vector<EdgeSets> Partition::within_local(int rank) const {
  auto const size = ghosted(rank).sizes();
  Edges edges;
  each_part(rank, stencil_, [&](std::array<Run, 3> const& part, int owner, bool own) {
    if (own) return;
    auto const theirs = owned(owner), around = ghosted(owner);
    Triple low;
    for (std::size_t d = 0; d < 3; ++d) low[d] = part[d].theirs + theirs.low[d] - around.low[d];
    edges.add(owner, positions({part[0].at, part[1].at, part[2].at}, lengths(part), size), positions(low, lengths(part), around.sizes()));
  });
  return edges.joined();
}

std::vector<EdgeSets> Partition::to_box(Box const& box) const {
  Edges edges;
  if (box.points() == 0) return edges.joined();
  auto const along = [&](std::size_t d) { return runs(d, {box.low[d], box.high[d]}, {box.low[d], box.high[d]}); };
  each_of({along(0), along(1), along(2)}, Stencil::box, [&](std::array<Run, 3> const& part, int owner, bool) {
    edges.add(owner, positions({part[0].at, part[1].at, part[2].at}, lengths(part), box.sizes()),
              positions({part[0].theirs, part[1].theirs, part[2].theirs}, lengths(part), owned(owner).sizes()));
  });
  return edges.joined();
}

std::vector<EdgeSets> Partition::to_local(int rank) const {
  auto const size = ghosted(rank).sizes();
  Edges edges;
  each_part(rank, stencil_, [&](std::array<Run, 3> const& part, int owner, bool) {
    edges.add(owner, positions({part[0].at, part[1].at, part[2].at}, lengths(part), size),
              positions({part[0].theirs, part[1].theirs, part[2].theirs}, lengths(part), owned(owner).sizes()));
  });
  return edges.joined();
}

}  // namespace asterism::grid
