#include "asterism/grid/grid.hpp"

#include <algorithm>
#include <limits>

#include "asterism/base/error.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;

i64 modulo(i64 a, i64 n) { return (a % n + n) % n; }

}  // namespace

Grid::Grid(comm::Communicator const& comm, std::vector<i64> const& shape, i64 width, Stencil stencil, std::vector<bool> const& periodic,
           std::vector<int> const& ranks, comm::TransportChoice transport)
    : comm_(comm), dimensions_(int(shape.size())), width_(width), stencil_(stencil) {
  comm::agree(comm, [&] {
    ASTERISM_REQUIRE(!shape.empty() && shape.size() <= 3, shape, "a grid has 1, 2 or 3 dimensions, not {}.", shape.size());
    ASTERISM_REQUIRE(periodic.size() == shape.size(), shape, "a grid of {} dimensions needs as many answers to 'periodic', not {}.",
                     shape.size(), periodic.size());
    ASTERISM_REQUIRE(width >= 0, value, "ghost points {} deep.", width);
    i64 points = 1;
    for (auto const s : shape) {
      ASTERISM_REQUIRE(s >= 1, shape, "a grid needs at least one point in each direction, not {}.", s);
      points = checked_product(points, s, "grid");
    }
    if (ranks.empty()) return;
    ASTERISM_REQUIRE(ranks.size() == shape.size(), shape, "a grid of {} dimensions is cut in as many directions, not {}.", shape.size(),
                     ranks.size());
    i64 boxes = 1;
    for (auto const r : ranks) {
      ASTERISM_REQUIRE(r >= 1 && r <= comm.size(), value, "a direction cannot be cut into {} boxes for {} ranks.", r, comm.size());
      boxes *= r;
    }
    ASTERISM_REQUIRE(boxes == comm.size(), value, "the grid is cut into {} boxes, but there are {} ranks.", boxes, comm.size());
  });
  std::uint64_t signature = std::uint64_t(width) * 4 + std::uint64_t(stencil) * 2 + 1;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    auto const d = 3 - shape.size() + a;
    n_[d] = shape[a];
    periodic_[d] = periodic[a];
    p_[d] = ranks.empty() ? 0 : ranks[a];
    signature = signature * 1000003 + std::uint64_t(shape[a]) * 4096 + std::uint64_t(p_[d]) * 2 + periodic[a];
  }
  ASTERISM_REQUIRE(comm.same_on_all_ranks(i64(signature >> 1)), value,
                   "the ranks describe different grids; here {} x {} x {} points, ghost points {} deep.", n_[0], n_[1], n_[2], width);
  if (ranks.empty()) choose_ranks();
  layout_ = comm::Layout(comm, owned().points());

  auto const mine = ghosted();
  auto const size = mine.sizes();
  std::vector<i64> ghost_leaves, all_leaves;
  std::vector<comm::RemoteRoot> ghost_roots, all_roots;
  each_part(stencil_, [&](std::array<Run, 3> const& part, int rank, bool own) {
    auto const theirs = owned(rank), around = ghosted(rank);
    auto const their_size = theirs.sizes(), around_size = around.sizes();
    for (i64 i = 0; i < part[0].length; ++i)
      for (i64 j = 0; j < part[1].length; ++j)
        for (i64 k = 0; k < part[2].length; ++k) {
          i64 const x = part[0].theirs + i, y = part[1].theirs + j, z = part[2].theirs + k;
          i64 const leaf = ((part[0].at + i) * size[1] + part[1].at + j) * size[2] + part[2].at + k;
          all_leaves.push_back(leaf);
          all_roots.push_back({rank, (x * their_size[1] + y) * their_size[2] + z});
          if (own) continue;
          i64 const u = x + theirs.low[0] - around.low[0], v = y + theirs.low[1] - around.low[1], w = z + theirs.low[2] - around.low[2];
          ghost_leaves.push_back(leaf);
          ghost_roots.push_back({rank, (u * around_size[1] + v) * around_size[2] + w});
        }
  });
  ghosts_ = comm::StarForest(comm, mine.points(), std::move(ghost_leaves), ghost_roots, mine.points(), transport);
  global_to_local_ = comm::StarForest(comm, owned().points(), std::move(all_leaves), all_roots, mine.points(), transport);
  ghosts_.set_name("ghost points of a grid");
  global_to_local_.set_name("global to local of a grid");
}

/// The cuts through which the fewest points are exchanged. Of equals the one that cuts the slower directions: its faces lie
/// closer together in memory.
void Grid::choose_ranks() {
  int const ranks = comm_.size();
  double best = std::numeric_limits<double>::infinity();
  for (int a = ranks; a >= 1; --a)
    for (int b = ranks / a; b >= 1; --b) {
      if (ranks % (a * b)) continue;
      if ((dimensions_ < 3 && a > 1) || (dimensions_ < 2 && b > 1)) continue;
      std::array<int, 3> const p{a, b, ranks / (a * b)};
      double cost = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        double const faces = periodic_[d] && p[d] > 1 ? p[d] : p[d] - 1;
        cost += faces * double(n_[0]) * double(n_[1]) * double(n_[2]) / double(n_[d]);
        if (p[d] > n_[d]) cost += 1e18 * p[d];  // empty boxes only where nothing else is left
      }
      if (cost < best) {
        best = cost;
        p_ = p;
      }
    }
}

std::array<i64, 2> Grid::cut(int d, int box) const {
  auto const D = std::size_t(d);
  auto const begin = [&](i64 c) { return n_[D] / p_[D] * c + std::min<i64>(c, n_[D] % p_[D]); };
  return {begin(box), begin(box + 1)};
}

std::array<i64, 2> Grid::cut_with_ghosts(int d, int box) const {
  auto [low, high] = cut(d, box);
  if (low == high) return {low, high};  // nothing of one's own, so nothing around it
  low -= width_;
  high += width_;
  if (!periodic_[std::size_t(d)]) {
    low = std::max<i64>(low, 0);
    high = std::min(high, n_[std::size_t(d)]);
  }
  return {low, high};
}

Box Grid::box(int rank, Cut const& cut_of) const {
  auto const at = box_of(rank);
  Box out;
  for (std::size_t d = 0; d < 3; ++d) {
    auto const [low, high] = (this->*cut_of)(int(d), at[d]);
    out.low[d] = low;
    out.high[d] = high;
  }
  return out;
}

Box Grid::owned(int rank) const { return box(rank, &Grid::cut); }
Box Grid::ghosted(int rank) const { return box(rank, &Grid::cut_with_ghosts); }

std::vector<Grid::Run> Grid::runs(int d) const {
  auto const D = std::size_t(d);
  int const me = box_of(comm_.rank())[D];
  auto const [low, high] = cut(d, me);
  auto const [first, last] = cut_with_ghosts(d, me);
  std::vector<Run> out;
  for (i64 g = first; g < last;) {
    bool const own = g >= low && g < high;
    i64 const i = modulo(g, n_[D]);
    i64 const q = n_[D] / p_[D], extra = n_[D] % p_[D];  // the first `extra` boxes have q + 1 points
    int const box = int(i < extra * (q + 1) ? i / (q + 1) : extra + (i - extra * (q + 1)) / q);
    auto const [begin, end] = cut(d, box);
    // up to the owner's end, and not across the border of my own points
    i64 const stop = std::min({last, g + end - i, g < low ? low : g < high ? high : last});
    out.push_back({box, g - first, i - begin, stop - g, own});
    g = stop;
  }
  return out;
}

/// f(runs, owner, whether these are my own points) for every part of my local array that a stencil needs.
template <class F>
void Grid::each_part(Stencil stencil, F const& f) const {
  auto const x = runs(0), y = runs(1), z = runs(2);
  for (auto const& a : x)
    for (auto const& b : y)
      for (auto const& c : z) {
        int const outside = !a.own + !b.own + !c.own;
        if (outside > 1 && stencil == Stencil::star) continue;
        f(std::array<Run, 3>{a, b, c}, (a.box * p_[1] + b.box) * p_[2] + c.box, outside == 0);
      }
}

std::vector<i64> Grid::numbers() const {
  auto const size = ghosted().sizes();
  std::vector<i64> out(std::size_t(ghosted().points()), -1);
  each_part(Stencil::box, [&](std::array<Run, 3> const& part, int rank, bool) {
    auto const& [a, b, c] = part;
    auto const theirs = owned(rank).sizes();
    auto const first = layout_.offsets()[std::size_t(rank)];
    for (i64 i = 0; i < a.length; ++i)
      for (i64 j = 0; j < b.length; ++j)
        for (i64 k = 0; k < c.length; ++k)
          out[std::size_t(((a.at + i) * size[1] + b.at + j) * size[2] + c.at + k)] =
              first + ((a.theirs + i) * theirs[1] + b.theirs + j) * theirs[2] + c.theirs + k;
  });
  return out;
}

}  // namespace asterism::grid
