#include "asterism/grid/grid.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::grid {
namespace {
using i64 = std::int64_t;

/// Of the own points, in the order of vectors.
la::Vector coordinates_of(comm::Layout const& layout, Box const& own, Placement const& placed) {
  auto const d = placed.spacing.size();
  la::Vector xyz(layout, Dtype::float64, i64(d));
  auto at = xyz.host<double>().begin();
  for (auto a = own.low[0]; a < own.high[0]; ++a)
    for (auto b = own.low[1]; b < own.high[1]; ++b)
      for (auto c = own.low[2]; c < own.high[2]; ++c) {
        Triple const p{a, b, c};
        for (std::size_t k = 0; k < d; ++k) *at++ = placed.origin[k] + double(p[3 - d + k]) * placed.spacing[k];
      }
  return xyz;
}
}  // namespace

Grid::Grid(comm::Communicator const& comm, std::vector<i64> const& shape, i64 width, Stencil stencil, std::vector<bool> const& periodic,
           std::vector<int> const& ranks, comm::TransportChoice transport, Placement placement, i64 most_ranks)
    : comm_(comm), dimensions_(int(shape.size())), placement_(std::move(placement)) {
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
    auto& [origin, spacing] = placement_;
    if (spacing.empty())
      for (std::size_t a = 0; a < shape.size(); ++a) spacing.push_back(1 / double(std::max<i64>(periodic[a] ? shape[a] : shape[a] - 1, 1)));
    if (origin.empty()) origin.assign(shape.size(), 0);
    ASTERISM_REQUIRE(spacing.size() == shape.size() && origin.size() == shape.size(), shape,
                     "a grid of {} dimensions needs as many spacings, not {}.", shape.size(), spacing.size());
    for (auto const h : spacing)
      ASTERISM_REQUIRE(h > 0 && std::isfinite(h), value, "the spacing of points is a positive number, not {}.", h);
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
  Triple n{1, 1, 1};
  std::array<int, 3> p{1, 1, 1};
  std::array<bool, 3> around{};
  std::uint64_t signature = std::uint64_t(width) * 4 + std::uint64_t(stencil) * 2 + 1;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    auto const d = 3 - shape.size() + a;
    n[d] = shape[a];
    around[d] = periodic[a];
    p[d] = ranks.empty() ? 0 : ranks[a];
    signature = signature * 1000003 + std::uint64_t(shape[a]) * 4096 + std::uint64_t(p[d]) * 2 + periodic[a];
    signature = signature * 1000003 + std::bit_cast<std::uint64_t>(placement_.spacing[a]);
  }
  ASTERISM_REQUIRE(comm.same_on_all_ranks(i64(signature >> 1)), value,
                   "the ranks describe different grids; here {} x {} x {} points, ghost points {} deep.", n[0], n[1], n[2], width);
  if (ranks.empty()) p = Partition::choose_boxes(n, dimensions_, around, comm.size());
  partition_ = Partition(n, p, around, width, stencil).on_fewer(most_ranks);

  int const me = comm.rank();
  i64 const own = owned().points(), local = ghosted().points();
  auto const forest = [&](char const* name, i64 roots, std::vector<comm::StarForest::EdgeSets> edges, i64 leaves) {
    auto f = comm::StarForest::from_index_sets(comm, roots, std::move(edges), leaves, transport);
    f.set_name(name);
    return f;
  };
  ghosts_ = forest("ghost points of a grid", local, partition_.within_local(me), local);
  global_to_local_ = forest("global to local of a grid", own, partition_.to_local(me), local);
  auto const points = partition_.layout(comm);
  space_ = la::Space(points)
               .with_coordinates([points, own = owned(), at = placement_] { return coordinates_of(points, own, at); })
               .with_ghosts(forest("ghosts behind a grid's vectors", own, partition_.to_ghosts(me), partition_.ghosts(me)));
}

std::vector<i64> Grid::numbers() const {
  auto const size = ghosted().sizes();
  std::vector<i64> out(std::size_t(ghosted().points()), -1);
  partition_.each_part(comm_.rank(), Stencil::box, [&](std::array<Partition::Run, 3> const& part, int rank, bool) {
    auto const& [a, b, c] = part;
    auto const theirs = owned(rank).sizes();
    auto const first = space_.first_of(rank);
    for (i64 i = 0; i < a.length; ++i)
      for (i64 j = 0; j < b.length; ++j)
        for (i64 k = 0; k < c.length; ++k)
          out[std::size_t(((a.at + i) * size[1] + b.at + j) * size[2] + c.at + k)] =
              first + ((a.theirs + i) * theirs[1] + b.theirs + j) * theirs[2] + c.theirs + k;
  });
  return out;
}

}  // namespace asterism::grid
