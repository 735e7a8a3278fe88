#include "asterism/grid/star_operator.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "asterism/device/race_check.hpp"
#include "asterism/grid/interpolation.hpp"
#include "asterism/precond/multigrid/cycle.hpp"
#include "asterism/solve/solver.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::grid;
using namespace asterism::test;
using device::Queue;
using la::Vector;
using i64 = std::int64_t;

namespace {

i64 modulo(i64 a, i64 n) { return (a % n + n) % n; }

/// All points of a grid with their numbers.
template <class F>
void each_point(Grid const& g, F const& f) {
  auto const n = g.shape();
  for (i64 i = 0; i < n[0]; ++i)
    for (i64 j = 0; j < n[1]; ++j)
      for (i64 l = 0; l < n[2]; ++l) f(Triple{i, j, l}, g.partition().number({i, j, l}));
}

/// The star by its definition.
Dense by_definition(Grid const& g, double centre, std::array<double, 3> const& sides) {
  auto const n = g.shape();
  Dense a(n[0] * n[1] * n[2], n[0] * n[1] * n[2]);
  each_point(g, [&](Triple const& at, i64 row) {
    a(row, row) += centre;
    for (auto d = std::size_t(3 - g.dimensions()); d < 3; ++d)
      for (int const step : {-1, 1}) {
        auto to = at;
        to[d] += step;
        if (g.partition().periodic()[d]) to[d] = modulo(to[d], n[d]);
        else if (to[d] < 0 || to[d] >= n[d]) continue;
        a(row, g.partition().number(to)) += sides[d];
      }
  });
  return a;
}

/// Interpolation by its definition: products of hat functions.
Dense interpolation_by_definition(Grid const& fine, Grid const& coarse) {
  auto const n = fine.shape(), m = coarse.shape();
  Dense p(n[0] * n[1] * n[2], m[0] * m[1] * m[2]);
  each_point(fine, [&](Triple const& at, i64 row) {
    each_point(coarse, [&](Triple const& from, i64 column) {
      double weight = 1;
      for (std::size_t d = 0; d < 3; ++d) {
        if (n[d] == 1) continue;
        bool const around = fine.partition().periodic()[d];
        i64 apart = std::abs(at[d] - (2 * from[d] + !around));
        if (around) apart = std::min(apart, n[d] - apart);
        weight *= apart == 0 ? 1 : apart == 1 ? 0.5 : 0;
        if (around && n[d] == 2 && apart == 1) weight *= 2;  // from both sides
      }
      p(row, column) = weight;
    });
  });
  return p;
}

std::vector<Queue> queues() {
  std::vector<Queue> out{Queue::host(), Queue::thread(), Queue::strict(), Queue::shuffle(7)};
  std::string why;
  if (device::gpu::available("cuda", why)) out.push_back(Queue::gpu());
  return out;
}

Vector on(Queue const& queue, Vector const& v, bool with_ghosts, la::Space const& space) {
  Vector out(with_ghosts ? space : la::Space(static_cast<comm::Layout const&>(space)), v.dtype(), v.columns(), queue);
  copy(v, out);
  return out;
}

struct Case {
  std::vector<i64> shape;
  std::vector<bool> periodic;
  i64 width;
};
std::vector<Case> const cases{{{7}, {false}, 1},
                              {{8}, {true}, 2},
                              {{1}, {true}, 1},
                              {{5, 6}, {false, true}, 1},
                              {{3, 1}, {true, true}, 1},
                              {{31, 1}, {false, false}, 1},
                              {{4, 3, 5}, {false, false, false}, 1},
                              {{4, 5, 3}, {true, false, true}, 2},
                              {{2, 2, 2}, {true, true, true}, 1}};

}  // namespace

TEST(StarOperator, AgreesWithItsDefinition) {
  std::array<double, 3> const sides{-1, -0.5, 0.25};
  for (auto const& [shape, periodic, width] : cases)
    for (auto const stencil : {Stencil::star, Stencil::box}) {
      Grid const g(world(), shape, width, stencil, periodic, {});
      auto const a = by_definition(g, 3.5, sides);
      auto const n = g.layout().global_size();
      for (auto const dtype : all_dtypes)
        for (i64 const k : {1, 2}) {
          StarOperator const A(g, 3.5, sides, dtype);
          auto const dx = random(n, k, is_complex(dtype), 1), db = random(n, k, is_complex(dtype), 2),
                     dw = random(n, 1, is_complex(dtype), 3);
          Dense wide(n, n);
          for (i64 i = 0; i < n; ++i) wide(i, i) = dw(i, 0);
          auto const x0 = to_vector(dx, g.layout(), dtype), b0 = to_vector(db, g.layout(), dtype), w0 = to_vector(dw, g.layout(), dtype);
          for (auto const& queue : queues())
            for (bool const with_ghosts : {true, false}) {
              auto const x = on(queue, x0, with_ghosts, g.space()), b = on(queue, b0, false, g.space()),
                         w = on(queue, w0, false, g.space());
              auto const what = format("{} points, {}, {} columns, queue {}, ghosts {}", n, name_of(dtype), k, queue.kind(), with_ghosts);
              auto const check = [&](char const* which, Vector const& got, Dense const& want) {
                EXPECT_LT(norm(to_dense(got) - want), tolerance(dtype) * (1 + norm(want))) << which << ", " << what;
              };
              auto y = b.like();
              A.apply(x, y);
              check("apply", y, a * dx);
              A.apply_transpose(x, y, true);
              check("transpose", y, adjoint(a) * dx);
              copy(b, y);
              A.apply_add(x, y);
              check("add", y, db + a * dx);
              A.residual(b, x, y);
              check("residual", y, db - a * dx);
              A.smooth(b, x, w, y);
              check("smooth", y, dx + wide * (db - a * dx));
            }
          auto const d = to_dense(A.diagonal());
          for (i64 i = 0; i < n; ++i) EXPECT_LT(std::abs(d(i, 0) - a(i, i)), 1e-6);
        }
    }
}

TEST(StarOperator, LongLinesAndVectorsOfAnotherGridOfTheSameLayout) {
  // lines are cut into pieces for threads; a vector may have room for the ghosts of another grid
  Grid const g(world(), {20011}, 1, Stencil::star, {true}, {}), other(world(), {20011}, 3, Stencil::star, {false}, {});
  ASSERT_TRUE(g.layout().fits(other.layout()));
  StarOperator const A(g, 3.0, {0, 0, -1.5}, Dtype::float64), B(other, 3.0, {0, 0, -1.5}, Dtype::float64);
  Vector x(other.space(), Dtype::float64), z(g.space(), Dtype::float64), y = z.like();
  fill_hashed(x, 3);
  copy(x, z);
  auto const whole = to_dense(x);
  A.apply(x, y);
  auto const wrapped = to_dense(y);
  B.apply(z, y);
  auto const bounded = to_dense(y);
  for (i64 i = 0; i < 20011; ++i) {
    auto const at = [&](i64 p) { return p < 0 || p >= 20011 ? Value(0) : whole(p, 0); };
    ASSERT_LT(std::abs(bounded(i, 0) - (3.0 * at(i) - 1.5 * (at(i - 1) + at(i + 1)))), 1e-13);
    ASSERT_LT(std::abs(wrapped(i, 0) - (3.0 * at(i) - 1.5 * (at(modulo(i - 1, 20011)) + at(modulo(i + 1, 20011))))), 1e-13);
  }
}

TEST(StarOperator, WhatIsCoarseIsNearGalerkinsProduct) {
  // on a vector that varies slowly; directions of one point, and what becomes one, included
  for (auto const& shape : std::vector<std::vector<i64>>{{31}, {31, 1}, {15, 3}, {7, 7, 1}}) {
    Grid const g(world(), shape, 1, Stencil::star, std::vector<bool>(shape.size(), false), {});
    std::shared_ptr<la::Operator const> A =
        std::make_shared<StarOperator const>(g, 2.0 * double(shape.size()) + 0.1, std::array<double, 3>{-1, -1, -1}, Dtype::float64);
    for (int level = 0; level < 2; ++level) {
      auto const coarse = A->coarse({});
      if (!coarse) break;
      Vector x(coarse->A->domain(), Dtype::float64), px(A->domain(), Dtype::float64), apx = px.like(), rapx = x.like(), ax = x.like();
      fill(x, 1.0);
      coarse->A->apply(x, ax);
      coarse->P->apply(x, px);
      A->apply(px, apx);
      coarse->R->apply(apx, rapx);
      auto const have = std::abs(dot(x, ax).real()), want = std::abs(dot(x, rapx).real());
      EXPECT_GT(have, 0.5 * want) << shape.size() << " level " << level;
      EXPECT_LT(have, 2 * want) << shape.size() << " level " << level;
      A = coarse->A;
    }
  }
}

TEST(StarOperator, BoundsOfEigenvaluesAreOfTheDiagonal) {
  auto const bound = [](std::vector<i64> const& shape, std::vector<bool> const& periodic, double centre,
                        std::array<double, 3> const& sides) {
    return StarOperator(Grid(world(), shape, 1, Stencil::star, periodic, {}), centre, sides, Dtype::float64).eigenvalue_bound();
  };
  EXPECT_EQ(bound({40, 40}, {false, false}, 4, {0, -1, -1}), 2);
  EXPECT_EQ(bound({40, 1}, {false, true}, 0, {0, -1, 1}), 2);
  EXPECT_EQ(bound({40, 1}, {false, false}, 2, {0, -1, -1000}), 2);
  EXPECT_EQ(bound({40, 40}, {false, false}, 0, {0, -1, -1}), std::nullopt);
}

TEST(StarOperator, WrongVectorsAreErrors) {
  Grid const g(world(), {8, 5}, 1, Stencil::star, {false, false}, {});
  StarOperator const A(g, 4.0, {0, -1, -1}, Dtype::float64);
  Vector x(g.space(), Dtype::float64, 2), y = x.like(), one(g.space(), Dtype::float64), single(g.space(), Dtype::float32, 2);
  fill(x, 1.0);
  EXPECT_NE(error_of([&] { A.residual(one, x, y); }).find("x has 2 columns, y or b has 1"), std::string::npos);
  EXPECT_NE(error_of([&] { A.smooth(y, x, x, y); }).find("one column"), std::string::npos);
  EXPECT_NE(error_of([&] { A.apply(single, y); }).find("float32"), std::string::npos);
  int const last = world().size() - 1;
  auto const made = [&](double centre) { StarOperator(g, centre, {0, -1, -1}, Dtype::float64); };
  EXPECT_NE(error_of([&] { made(world().rank() == last ? NAN : 4.0); }).find("finite"), std::string::npos);
  if (last > 0) {
    EXPECT_NE(error_of([&] { made(world().rank()); }).find("centre"), std::string::npos);
  }
}

TEST(StarOperator, OrderIsKeptByIntentsAlone) {
  // products of products on a queue that runs tasks in any allowed order, every pair of conflicting accesses checked
  Grid const g(world(), {6, 5, 4}, 1, Stencil::star, {true, false, true}, {});
  StarOperator const A(g, 2.0, {-0.3, 0.2, 0.1}, Dtype::float64);
  auto const a = by_definition(g, 2.0, {-0.3, 0.2, 0.1});
  auto const start = random(120, 1, false, 1);
  device::race_check::enable(true);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    auto const queue = Queue::shuffle(seed);
    Vector x(g.space(), Dtype::float64, 1, queue), y = x.like();
    copy(to_vector(start, g.layout(), Dtype::float64), x);
    auto want = start;
    for (int i = 0; i < 6; ++i) {
      A.apply(x, y);
      std::swap(x, y);
      scale(0.5, x);
      want = Value(0.5) * (a * want);
    }
    EXPECT_LT(norm(to_dense(x) - want), 1e-12 * norm(want)) << "seed " << seed;
  }
  device::race_check::enable(false);
}

TEST(Interpolation, AgreesWithItsDefinition) {
  std::vector<Case> const grids{{{7}, {false}, 1},
                                {{8}, {true}, 1},
                                {{5, 4}, {false, true}, 1},
                                {{3, 5, 7}, {false, false, false}, 1},
                                {{4, 5, 2}, {true, false, true}, 1}};
  for (auto const& [shape, periodic, width] : grids) {
    Grid const fine(world(), shape, width, Stencil::star, periodic, {});
    auto const coarse = Interpolation::coarsened(fine);
    ASSERT_TRUE(coarse);
    auto const p = interpolation_by_definition(fine, *coarse);
    for (auto const dtype : all_dtypes)
      for (i64 const k : {1, 3}) {
        Interpolation const P(fine, *coarse, dtype);
        auto const x = random(p.cols(), k, is_complex(dtype), 1), r = random(p.rows(), k, is_complex(dtype), 2);
        for (auto const& queue : queues()) {
          auto const xc = on(queue, to_vector(x, coarse->layout(), dtype), true, coarse->space());
          auto y = on(queue, to_vector(r, fine.layout(), dtype), false, fine.space()), rc = xc.like();
          P.apply_transpose(y, rc, true);
          EXPECT_LT(norm(to_dense(rc) - adjoint(p) * r), tolerance(dtype) * norm(r)) << queue.kind();
          P.apply_add(xc, y);
          EXPECT_LT(norm(to_dense(y) - (r + p * x)), tolerance(dtype) * norm(r)) << queue.kind();
          P.apply(xc, y);
          EXPECT_LT(norm(to_dense(y) - p * x), tolerance(dtype) * norm(x)) << queue.kind();
        }
      }
  }
  EXPECT_FALSE(Interpolation::coarsened(Grid(world(), {6, 7}, 1, Stencil::star, {false, false}, {})));
  EXPECT_FALSE(Interpolation::coarsened(Grid(world(), {1, 1}, 1, Stencil::star, {false, false}, {})));
}

namespace {

/// Two levels that operators' facets give: nothing here knows of grids.
class TwoLevels final : public precond::Preconditioner {
 public:
  explicit TwoLevels(precond::OperatorPtr const& A) : Preconditioner(*A) {
    auto const coarse = A->coarse({}).value();
    precond::ChebyshevPolynomial p;
    p.weights = A->diagonal();
    precond::invert_entries(p.weights, "chebyshev", A->matrix() != nullptr);
    p.hi = A->eigenvalue_bound().value();
    p.lo = p.hi / 4;
    precond::GridLevel const first{A, coarse.P, coarse.R, precond::chebyshev_smoother(p, {2, 2}, "chebyshev"), {}};
    precond::GridLevel last;
    last.A = coarse.A;
    Options options;
    options.parse("-pc_type chebyshev -pc_chebyshev_degree 40 -pc_chebyshev_ratio 500", OptionLayer::call, "test");
    coarse_ = std::make_shared<solve::Solver>(coarse.A, la::Matrix(), nullptr, options);
    last.solver = coarse_->preconditioner();
    cycle_ = precond::Cycle({first, last}, precond::CycleType::v);
  }
  void apply(Vector const& b, Vector& x) const override { cycle_.apply(b, x); }
  std::string describe() const override { return "two levels"; }
  bool update(la::Matrix const&) override { return false; }

 private:
  std::shared_ptr<solve::Solver> coarse_;
  precond::Cycle cycle_;
};

}  // namespace

TEST(StarOperator, CgWithChebyshevAndWithACycleOfTwoLevelsWithoutAMatrix) {
  for (auto const dtype : all_dtypes)
    for (std::string const queue : {"inline", "thread", "shuffle"}) {
      Grid const g(world(), {15, 31}, 1, Stencil::star, {false, false}, {});
      auto const A = std::make_shared<StarOperator const>(g, 4.0, std::array<double, 3>{0, -1, -1}, dtype);
      Vector b(g.space(), dtype);
      fill(b, 1.0);
      std::int64_t plain = 0;
      for (int which = 0; which < 3; ++which) {
        Options options;
        options.parse("-ksp_type cg -ksp_rtol 1e-5 -queue " + queue +
                          (which == 0   ? " -pc_type none"
                           : which == 1 ? " -pc_type chebyshev"
                                        : ""),
                      OptionLayer::call, "test");
        std::shared_ptr<la::Operator const> const M = which == 2 ? std::make_shared<TwoLevels>(A) : nullptr;
        solve::Solver s(A, {}, M, options);
        Vector x(g.space(), dtype);
        fill(x, 0.0);
        auto const info = s.solve(b, x);
        EXPECT_TRUE(info.converged) << which << " " << info.why;
        auto r = b.like();
        A->residual(b, x, r);
        EXPECT_LT(norm(r).real(), 1.1e-5 * norm(b).real());
        if (which == 0) plain = info.iterations;
        if (which == 1) {
          EXPECT_LT(2 * info.iterations, plain);
        }
        if (which == 2) {
          EXPECT_LE(info.iterations, 8) << "of a cycle of two levels";
        }
      }
    }
}
