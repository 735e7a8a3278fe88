#include "asterism/grid/bricks/brick_transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "asterism/device/queue.hpp"
#include "asterism/grid/bricks/stencil_operator.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::grid;
using namespace asterism::test;
using la::Vector;
using i64 = std::int64_t;

namespace {

/// The lexicographic number of each entry of a vector of all ranks; -1 of padding.
std::vector<i64> numbers(BrickDomain const& domain) {
  auto const n = domain.shape();
  auto const own = domain.owned();
  std::vector<double> lexicographic;
  for (auto i = own.low[0]; i < own.high[0]; ++i)
    for (auto j = own.low[1]; j < own.high[1]; ++j)
      for (auto k = own.low[2]; k < own.high[2]; ++k) lexicographic.push_back(double(1 + (i * n[1] + j) * n[2] + k));
  Vector v(domain.space(), Dtype::float64);
  domain.to_bricks(lexicographic.data(), v.host<double>().data(), sizeof(double));
  auto const all = to_dense(v);
  std::vector<i64> out;
  for (i64 i = 0; i < all.rows(); ++i) out.push_back(i64(all(i, 0).real()) - 1);
  return out;
}

Triple point(i64 number, Triple const& n) { return {number / (n[1] * n[2]), number / n[2] % n[1], number % n[2]}; }

/// What fine point i of an axis is made of: on the line between the coarse points around it, or to the border where values are zero; behind
/// the last coarse point of an axis without such a border it is that one.
double weight(i64 fine, i64 coarse, i64 n, i64 m, bool periodic, Centring centring, std::array<double, 2> const& ends) {
  if (centring == Centring::blocks) return std::min(fine / 2, m - 1) == coarse ? 1 : 0;
  bool const nodes = centring == Centring::nodes;
  double const at = double(fine) + (nodes ? 0 : 0.5), last = double(n) - (nodes ? 1 : 0.5);
  std::map<double, i64> points;
  for (i64 turn = periodic ? -1 : 0; turn <= (periodic ? 1 : 0); ++turn)
    for (i64 c = 0; c < m; ++c) points[double(nodes && periodic ? 2 * c : 2 * c + 1) + double(turn * (nodes ? n : 2 * m))] = c;
  if (!periodic && ends[0] > 0) points[(nodes ? 0 : 0.5) - ends[0]] = -1;
  if (!periodic && ends[1] > 0) points[last + ends[1]] = -1;
  auto const above = points.lower_bound(at);
  if (above == points.end()) return std::prev(above)->second == coarse ? 1 : 0;
  if (above->first == at || above == points.begin()) return above->second == coarse ? 1 : 0;
  auto const below = std::prev(above);
  double const share = (at - below->first) / (above->first - below->first);
  return (above->second == coarse ? share : 0) + (below->second == coarse ? 1 - share : 0);
}

Dense by_definition(BrickDomain const& fine, BrickDomain const& coarse, Centring centring, Ends const& ends) {
  auto const rows = numbers(fine), cols = numbers(coarse);
  Dense p(i64(rows.size()), i64(cols.size()));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < cols.size(); ++c) {
      if (rows[r] < 0 || cols[c] < 0) continue;
      auto const to = point(rows[r], fine.shape()), from = point(cols[c], coarse.shape());
      double product = 1;
      for (auto d = std::size_t(3 - fine.dimensions()); d < 3; ++d)
        product *= weight(to[d], from[d], fine.shape()[d], coarse.shape()[d], fine.periodic()[d], centring, ends[d]);
      p(i64(r), i64(c)) = product;
    }
  return p;
}

struct Case {
  std::vector<i64> shape;
  std::vector<i64> brick;
  std::vector<bool> periodic;
  Centring centring;
  std::optional<Ends> ends = {};
  bool any_size = false;
  Ends where() const { return ends.value_or(usual_ends(centring)); }
};
std::vector<Case> const cases = {
    {{15}, {4}, {false}, Centring::nodes},
    {{16}, {4}, {true}, Centring::nodes},
    {{12}, {3}, {false}, Centring::cells, {{{{}, {}, {0.5, 0}}}}},
    {{2}, {2}, {true}, Centring::cells},
    {{7, 9}, {2, 4}, {false, false}, Centring::nodes},
    {{8, 11}, {2, 3}, {true, false}, Centring::nodes},
    {{6, 8}, {4, 2}, {false, true}, Centring::cells, {{{{}, {0, 0.5}, {}}}}},
    {{5, 7, 9}, {2, 3, 4}, {false, false, false}, Centring::nodes},
    {{4, 8, 5}, {2, 4, 4}, {true, true, false}, Centring::nodes},
    {{4, 6, 10}, {2, 2, 4}, {true, false, false}, Centring::blocks},
    {{4, 6, 10}, {2, 2, 4}, {true, false, false}, Centring::cells, {{{{}, {0.5, 0.5}, {0.5, 0}}}}},
    {{16}, {4}, {false}, Centring::nodes, {}, true},
    {{2}, {4}, {false}, Centring::nodes, {{{{}, {}, {0, 1}}}}, true},
    {{15}, {5}, {true}, Centring::nodes, {}, true},
    {{13}, {4}, {false}, Centring::cells, {{{{}, {}, {0.5, 0.5}}}}, true},
    {{9, 12}, {3, 4}, {true, false}, Centring::cells, {{{{}, {}, {0.75, 0}}}}, true},
    {{7, 10}, {2, 4}, {false, false}, Centring::nodes, {{{{}, {0.5, 1}, {0, 0.75}}}}, true},
    {{7, 6, 9}, {2, 3, 4}, {false, false, false}, Centring::cells, {{{{1, 0}, {0.5, 0.5}, {0, 1.25}}}}, true},
    {{5, 6, 9}, {2, 3, 4}, {false, false, false}, Centring::blocks, {}, true},
    // by whole rows
    {{16}, {8}, {true}, Centring::nodes},
    {{15, 31}, {8, 8}, {false, false}, Centring::nodes},
    {{16, 17}, {8, 8}, {true, false}, Centring::nodes},
    {{18, 32}, {8, 8}, {false, true}, Centring::cells, {{{{}, {0.5, 0}, {}}}}},
    {{4, 15, 9}, {2, 8, 8}, {true, false, false}, Centring::nodes},
    {{3, 16, 16}, {2, 8, 8}, {false, true, true}, Centring::nodes},
    {{4, 10, 16}, {2, 8, 8}, {false, false, true}, Centring::cells, {{{{}, {0.5, 0.5}, {}}}}},
    {{4, 10, 16}, {2, 8, 8}, {true, false, false}, Centring::blocks},
    {{5, 12, 10}, {2, 8, 8}, {false, false, false}, Centring::nodes, {{{{1, 1}, {0.5, 1}, {1, 0}}}}, true},
    {{3, 13, 11}, {2, 8, 8}, {false, false, false}, Centring::cells, {{{{0, 0}, {0.5, 0.75}, {0.5, 0.5}}}}, true},
    {{3, 9, 11}, {2, 8, 8}, {false, false, false}, Centring::blocks, {}, true},
};

Vector in(la::Space const& space, Dense const& values, Dtype dtype, device::Queue const& queue) {
  Vector out(space, dtype, values.cols(), queue);
  copy(to_vector(values, space, dtype), out);
  return out;
}

/// Rows of padding become zero.
Dense without_padding(Dense a, std::vector<i64> const& numbers) {
  for (i64 i = 0; i < a.rows(); ++i)
    for (i64 j = 0; j < a.cols(); ++j)
      if (numbers[std::size_t(i)] < 0) a(i, j) = 0;
  return a;
}

}  // namespace

TEST(BrickTransfer, IsThatOfHatFunctions) {
  for (auto const& c : cases) {
    BrickDomain const fine(world(), c.shape, c.brick, c.periodic);
    auto const coarse = BrickTransfer::coarsened(fine, c.centring, {c.any_size, {}, c.any_size ? 3 : 0});
    ASSERT_TRUE(coarse);
    auto const p = by_definition(fine, *coarse, c.centring, c.where()), back = adjoint(p);
    auto const fine_numbers = numbers(fine), coarse_numbers = numbers(*coarse);
    double share = 1;
    for (int d = 0; d < fine.dimensions(); ++d) share /= 2;
    for (auto const dtype : all_dtypes) {
      auto const P = std::make_shared<BrickTransfer>(fine, *coarse, c.centring, dtype, c.where());
      for (i64 const k : {1, 3}) {
        auto const x = without_padding(random(p.cols(), k, is_complex(dtype), 1), coarse_numbers),
                   b = without_padding(random(p.rows(), k, is_complex(dtype), 2), fine_numbers), px = p * x, pb = back * b;
        double const size = tolerance(dtype) * (norm(b) + norm(x));
        for (auto const& queue : {device::Queue::host(), device::Queue::thread(), device::Queue::shuffle(5)}) {
          auto const xc = in(coarse->space(), x, dtype, queue);
          auto y = in(fine.space(), b, dtype, queue), r = xc.like();
          auto const what = format("{} {} in {} columns, {} dimensions of {}", name_of(dtype), queue.kind(), k, c.shape.size(), c.shape[0]);
          P->apply_transpose(y, r, true);
          EXPECT_LT(norm(to_dense(r) - pb), size) << what;
          BrickRestriction(P).apply(y, r);
          EXPECT_LT(norm(to_dense(r) - Value(share) * pb), size) << what;
          P->apply_add(xc, y);
          EXPECT_LT(norm(to_dense(y) - (b + px)), size) << what;
          P->apply(xc, y);
          EXPECT_LT(norm(to_dense(y) - px), size) << what << ", with zeros in the padding";
        }
      }
    }
  }
}

/// A cubic along each axis, zero at the borders of nodes; of a periodic axis a wave, up to what cubics miss of it.
double cubics(double i, i64 n, bool periodic, Centring centring, std::size_t d) {
  if (periodic) return 1.5 + std::cos(2 * std::acos(-1.0) * (double(i) + (centring == Centring::nodes ? 0 : 0.5)) / double(n));
  if (centring == Centring::nodes) {
    double const t = (double(i) + 1) / double(n + 1);
    return t * (1 - t) * (1 + double(d) + 3 * t);
  }
  double const t = (double(i) + 0.5) / double(n);
  return 1 + t * (double(d) - t * (2 - 3 * t));
}

TEST(BrickTransfer, ByCubicsReproducesThem) {
  std::vector<Case> const all = {
      {{15}, {4}, {false}, Centring::nodes},
      {{5}, {2}, {false}, Centring::nodes},
      {{12}, {3}, {false}, Centring::cells, {{{{}, {}, {0.5, 0}}}}},
      {{7, 9}, {2, 4}, {false, false}, Centring::nodes},
      {{8, 16}, {4, 2}, {false, false}, Centring::cells},
      {{64, 11}, {2, 3}, {true, false}, Centring::nodes},
      {{11, 7, 9}, {2, 3, 4}, {false, false, false}, Centring::nodes},
      {{8, 10, 64}, {2, 2, 4}, {false, false, true}, Centring::cells},
      {{9, 11}, {3, 4}, {false, false}, Centring::cells, {{{{}, {0, 0}, {0.75, 0.5}}}}, true},
      {{10, 8}, {4, 4}, {false, false}, Centring::nodes, {{{{}, {1, 0.5}, {0, 0}}}}, true},
  };
  for (auto const& c : all)
    for (auto const dtype : {Dtype::float64, Dtype::float32}) {
      BrickDomain const fine(world(), c.shape, c.brick, c.periodic);
      auto const coarse = BrickTransfer::coarsened(fine, c.centring, {c.any_size, {}, 0});
      ASSERT_TRUE(coarse);
      auto const P = std::make_shared<BrickTransfer>(fine, *coarse, c.centring, dtype, c.where())->by_cubics();
      auto const values = [&](BrickDomain const& domain) {  // by the place of a point among the fine ones
        bool const is_coarse = domain.shape() != fine.shape(), nodes = c.centring == Centring::nodes;
        auto const where = numbers(domain);
        Dense out(i64(where.size()), 1);
        for (std::size_t r = 0; r < where.size(); ++r) {
          if (where[r] < 0) continue;
          auto const at = point(where[r], domain.shape());
          double product = 1;
          for (auto d = std::size_t(3 - domain.dimensions()); d < 3; ++d)
            product *= cubics(!is_coarse ? double(at[d])
                                         : 2 * double(at[d]) + (!nodes                 ? 0.5
                                                                : domain.periodic()[d] ? 0
                                                                                       : 1),
                              fine.shape()[d], domain.periodic()[d], c.centring, d);
          out(i64(r), 0) = product;
        }
        return out;
      };
      Vector y(fine.space(), dtype);
      P->apply(in(coarse->space(), values(*coarse), dtype, device::Queue::host()), y);
      bool const wave = std::count(c.periodic.begin(), c.periodic.end(), true) > 0;
      auto const want = values(fine);
      EXPECT_LT(norm(to_dense(y) - want), (wave ? 5e-5 : 10 * tolerance(dtype)) * norm(want)) << c.shape.size() << " of " << c.shape[0];
      EXPECT_NE(error_of([&] {
                  Vector r(coarse->space(), dtype);
                  P->apply_transpose(y, r, true);
                }).find("no transpose"),
                std::string::npos);
    }
}

TEST(BrickTransfer, OfADomainThatHasCoarsePoints) {
  auto const coarse = [](std::vector<i64> const& shape, std::vector<i64> const& brick, std::vector<bool> const& periodic, Centring centring,
                         std::vector<int> const& least = {}) {
    return BrickTransfer::coarsened(BrickDomain(world(), shape, brick, periodic), centring, {false, least, 0});
  };
  EXPECT_EQ(coarse({31, 32}, {8, 8}, {false, true}, Centring::nodes)->shape(), (Triple{1, 15, 16}));
  EXPECT_EQ(coarse({30, 32}, {8, 8}, {false, true}, Centring::cells)->shape(), (Triple{1, 15, 16}));
  EXPECT_FALSE(coarse({30, 32}, {8, 8}, {false, true}, Centring::nodes)) << "an even number of nodes";
  EXPECT_FALSE(coarse({1}, {8}, {false}, Centring::nodes));
  auto const smaller = coarse({8, 24}, {8, 8}, {true, true}, Centring::nodes);
  EXPECT_EQ(smaller->brick(), (Triple{1, 4, 6})) << "of 4 and 12 points the divisors that are nearest to 8";
  EXPECT_EQ(coarse({1000, 40}, {8, 8}, {true, true}, Centring::nodes)->brick(), (Triple{1, 10, 10}));
  EXPECT_EQ(coarse({1000, 40}, {8, 8}, {true, true}, Centring::nodes, {2, 2})->brick(), (Triple{1, 5, 5})) << "kernels of a wide stencil";
  EXPECT_EQ(coarse({62}, {2}, {true}, Centring::nodes)->brick(), (Triple{1, 1, 1})) << "31 is a prime";
  EXPECT_FALSE(coarse({62}, {2}, {true}, Centring::nodes, {2}));
  EXPECT_FALSE(coarse({8, 24}, {8, 8}, {true, true}, Centring::nodes, {5, 1})) << "a stencil that reads 5 points far";
  EXPECT_FALSE(coarse({6}, {6}, {true}, Centring::nodes, {4})) << "bricks of 3 points";
  auto const any = [](std::vector<i64> const& shape, std::vector<i64> const& brick, std::vector<bool> const& periodic, Centring centring,
                      i64 points_per_rank = 0) {
    return BrickTransfer::coarsened(BrickDomain(world(), shape, brick, periodic), centring, {true, {}, points_per_rank});
  };
  EXPECT_EQ(any({30, 25}, {8, 5}, {false, true}, Centring::nodes)->shape(), (Triple{1, 15, 13}));
  EXPECT_EQ(any({15, 30}, {8, 5}, {false, true}, Centring::cells)->brick(), (Triple{1, 8, 5}));
  EXPECT_FALSE(any({1}, {8}, {false}, Centring::cells));
  auto const ends = BrickTransfer::coarse_ends(BrickDomain(world(), {30, 31, 9}, {8, 8, 8}, {false, false, false}), Centring::cells,
                                               {{{0.5, 0.5}, {0.5, 0}, {0.75, 0.75}}});
  EXPECT_EQ(ends, (Ends{{{0.5, 0.5}, {0.5, 0}, {0.625, 1.125}}}));
  auto const of_nodes = BrickTransfer::coarse_ends(BrickDomain(world(), {31, 30, 9}, {8, 8, 8}, {false, false, false}), Centring::nodes,
                                                   {{{1, 1}, {1, 1}, {0, 0.5}}});
  EXPECT_EQ(of_nodes, (Ends{{{1, 1}, {1, 0.5}, {0, 0.75}}}));
  for (i64 const per_rank : {1, 20, 40, 1000}) {  // of 120
    auto const domain = any({20, 24}, {2, 2}, {false, false}, Centring::cells, per_rank);
    int const mine = domain->owned().points() > 0 ? 1 : 0;
    EXPECT_LE(world().sum(i64(mine)), std::max<i64>(1, 120 / per_rank));
    EXPECT_EQ(world().sum(domain->owned().points()), 120);
    if (per_rank == 1000) {
      EXPECT_EQ(mine, world().rank() == 0 ? 1 : 0);
    }
  }
}

TEST(BrickTransfer, NamesVectorsThatDoNotFit) {
  BrickDomain const fine(world(), {15}, {4}, {false});
  auto const coarse = BrickTransfer::coarsened(fine, Centring::nodes);
  BrickTransfer const P(fine, *coarse, Centring::nodes, Dtype::float64, usual_ends(Centring::nodes));
  Vector x(coarse->space(), Dtype::float64), y(fine.space(), Dtype::float64, 2);
  EXPECT_NE(error_of([&] { P.apply(x, y); }).find("vectors of 2 and 1 columns"), std::string::npos);
  EXPECT_NE(error_of([&] { P.apply(y, x); }).find("interpolation"), std::string::npos);
}

TEST(Colouring, NoTwoPointsOfAColourAreCoupled) {
  Box const box{{0, 0, 0}, {4, 6, 2}};
  auto const sizes = box.sizes();
  for (auto const kind : {Colouring::red_black, Colouring::boxes}) {
    std::vector<int> colours;
    for (i64 a = 0; a < box.points(); ++a) colours.push_back(colour_of(point(a, sizes), kind));
    for (std::size_t a = 0; a < colours.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        auto const p = point(i64(a), sizes), q = point(i64(b), sizes);
        i64 steps = 0, most = 0;
        for (std::size_t d = 0; d < 3; ++d) {
          i64 const apart = std::min(std::abs(p[d] - q[d]), sizes[d] - std::abs(p[d] - q[d]));
          steps += apart, most = std::max(most, apart);
        }
        bool const coupled = kind == Colouring::red_black ? steps == 1 : most == 1;
        if (coupled) {
          EXPECT_NE(colours[a], colours[b]) << a << " " << b;
        }
      }
    EXPECT_EQ(*std::max_element(colours.begin(), colours.end()) + 1, colour_count(sizes, {true, true, true}, kind));
    EXPECT_EQ(colour_count({4, 5, 2}, {true, true, true}, kind), 0) << "an odd number around an end";
  }
  EXPECT_EQ(colour_count({1, 5, 4}, {false, false, false}, Colouring::boxes), 4);
  EXPECT_EQ(colour_count({1, 5, 4}, {false, false, false}, Colouring::none), 0);
}
