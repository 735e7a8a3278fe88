// Algebraic multigrid as a whole: every smoother, cycle and family is one operator on any number of ranks.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "asterism/apps/gallery.hpp"
#include "asterism/base/interrupt.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using std::int64_t;

namespace {

precond::PreconditionerPtr made(la::Matrix const& A, std::string const& options) {
  return solver(A, "-ksp_type fgmres -pc_dtype float64 -pc_type " + options).preconditioner();
}

struct Row {
  std::string options;
  bool symmetric = true, by_ranks = false;
};
/// Each smoother, each cycle and each family.
std::vector<Row> const& table() {
  static std::vector<Row> const rows = {
      {"amg"},
      {"amg -mg_levels_pc_type jacobi -mg_levels_ksp_max_it 2"},
      {"amg -mg_levels_pc_type jacobi -mg_levels_pc_jacobi_type rowl1 -mg_levels_ksp_max_it 2"},
      {"amg -mg_levels_ksp_max_it 2 -mg_levels_up_ksp_max_it 1", false},
      {"amg -mg_levels_ksp_max_it 1 -mg_levels_up_ksp_max_it 2", false},
      {"amg -mg_levels_ksp_max_it 2 -mg_levels_up_ksp_max_it 0", false},
      {"amg -mg_levels_ksp_max_it 0 -mg_levels_up_ksp_max_it 3 -mg_levels_ksp_type richardson", false},
      {"gamg -mg_levels_ksp_type chebyshev"},
      {"gamg -mg_levels_ksp_type chebyshev -mg_levels_ksp_chebyshev_kind first -mg_levels_ksp_max_it 3"},
      {"gamg -mg_levels_ksp_type chebyshev -mg_levels_ksp_chebyshev_kind fourth -mg_levels_pc_type spai0"},
      {"gamg -mg_levels_ksp_type chebyshev -mg_levels_pc_type jacobi -mg_levels_pc_jacobi_type rowl1 -mg_levels_ksp_max_it 4"},
      {"gamg -mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 3 -mg_levels_up_ksp_max_it 1", false},
      {"amg -mg_levels_pc_type color_sor"},
      {"amg -mg_levels_pc_type color_sor -mg_levels_ksp_max_it 2 -mg_levels_up_ksp_max_it 1", false},
      {"amg -mg_levels_pc_type sor -mg_levels_ksp_max_it 2", true, true},
      {"amg -mg_levels_pc_type ilu", true, true},
      {"amg -mg_levels_pc_type icc -mg_levels_ksp_max_it 2", true, true},
      {"amg -pc_amg_strength classical"},
      {"amg -pc_amg_strength evolution"},
      {"amg -pc_amg_agg_type pairwise -pc_amg_cycle_type w -mg_levels_ksp_max_it 2"},
      {"amg -pc_amg_type classical"},
      {"amg -pc_amg_type classical -pc_amg_coarsen_type hmis"},
      {"amg -pc_amg_type classical -pc_amg_interp_type direct -pc_amg_cycle_type w"},
      {"amg -pc_amg_cycle_type w"},
      {"amg -pc_amg_coarse_rows_per_rank 0"},
      {"amg -pc_amg_coarse_rows_per_rank 20"},
      {"amg -pc_amg_coarse_rows_per_rank 1000 -pc_amg_cycle_type w -mg_levels_pc_type color_sor"},
      {"amg -pc_amg_coarse_rows_per_rank 1000 -pc_amg_type classical"},
      {"amg -pc_amg_cycle_type w -mg_levels_pc_type color_sor"},
      {"amg -pc_amg_agg_type mis2 -pc_amg_cycle_type f", false},
      {"amg -pc_amg_agg_type mis2 -pc_amg_cycle_type f -mg_levels_ksp_type chebyshev", false},
  };
  return rows;
}
/// Three levels and more.
std::string const small = " -pc_amg_coarse_size 3";

}  // namespace

TEST(Multigrid, IsOneOperatorOnAnyNumberOfRanks) {
  for (std::size_t i = 0; i < table().size(); ++i)
    for (auto const dtype : two_dtypes(i)) {
      auto const& row = table()[i];
      auto const what = row.options + " " + std::string(name_of(dtype));
      auto const A = apps::poisson(world(), {17, 9}, dtype), alone = apps::poisson(comm::Communicator(), {17, 9}, dtype);
      int64_t const n = 17 * 9;
      auto const M = made(A, row.options + small);
      ASSERT_GE(M->levels().size(), 3u) << what;
      auto const m = columns_of(*M), a = to_dense(A);
      double const size = tolerance(dtype) * norm(m);
      if (!row.by_ranks || world().size() == 1) {
        EXPECT_LT(norm(m - columns_of(*made(alone, row.options + small))), size) << what;
      }
      EXPECT_EQ(M->symmetric(), row.symmetric) << what;
      EXPECT_EQ(norm(m - adjoint(m)) < size, row.symmetric) << what;
      EXPECT_FALSE(M->varies());
      for (bool const conjugate : {false, true})
        EXPECT_LT(norm(columns_of_transpose(*M, conjugate) - transposed(m, conjugate)), size) << what << conjugate;
      // one column by itself
      auto const x = random(n, 1, is_complex(dtype), 17);
      auto const b = to_vector(x, A.range(), dtype);
      la::Vector y(A.range(), dtype), z = y.like();
      M->apply(b, y);
      EXPECT_LT(norm(to_dense(y) - m * x), 10 * tolerance(dtype) * norm(m * x)) << what;
      auto const sum = M->apply_and_dot(b, z).values().at(0);
      EXPECT_LT(norm(to_dense(z) - to_dense(y)), tolerance(dtype) * norm(m * x)) << what;
      EXPECT_LT(std::abs(sum - dot(b, z).values().at(0)), 10 * tolerance(dtype) * norm(x) * norm(m * x)) << what;
      // errors in the norm of A fall in each step, in any direction: I - M A, many times
      auto const e = Dense::identity(n) - m * a;
      auto v = random(n, 1, is_complex(dtype), 3);
      auto const energy = [&](Dense const& u) { return std::sqrt((adjoint(u) * a * u)(0, 0).real()); };
      double factor = 0;
      for (int it = 0; it < 30; ++it) {
        auto const next = e * v;
        factor = energy(next) / energy(v);
        v = Value(1 / norm(next)) * next;
      }
      EXPECT_LT(factor, 0.6) << what;
      EXPECT_GT(factor, 0.001) << what;
    }
}

TEST(Multigrid, OfAGeneralMatrixHasAnAdjoint) {
  for (std::size_t i = 0; i < table().size(); ++i)
    for (auto const dtype : two_dtypes(i)) {
      auto const& row = table()[i];
      if (row.options.find("icc") != std::string::npos) continue;  // for Hermitian matrices
      // a grid's matrix with a wind, and a phase where it is complex
      auto a = to_dense(apps::poisson(world(), {9, 8}, dtype));
      for (int64_t k = 0; k + 8 < a.rows(); ++k) a(k, k + 8) += is_complex(dtype) ? Value(0.2, 0.3) : 0.4;
      auto const layout = uneven(world(), 72);
      auto const M = made(to_sparse(a, layout, layout, dtype), row.options + small);
      auto const m = columns_of(*M);
      ASSERT_GT(norm(m - adjoint(m)), 0.01 * norm(m)) << row.options;
      for (bool const conjugate : {false, true})
        EXPECT_LT(norm(columns_of_transpose(*M, conjugate) - transposed(m, conjugate)), tolerance(dtype) * norm(m))
            << row.options << " " << name_of(dtype) << conjugate;
    }
}

namespace {
double seconds_of_this_thread() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The user is asked each time that work may ask.
struct AskedAlways {
  explicit AskedAlways(std::function<bool()> poll) { set_interrupt_poll(std::move(poll), 0); }
  AskedAlways(AskedAlways const&) = delete;
  AskedAlways& operator=(AskedAlways const&) = delete;
  ~AskedAlways() { set_interrupt_poll({}); }
};
}  // namespace

TEST(Multigrid, SetUpAsksForCtrlCWithinItsLoops) {
  if (world().size() > 1 || sanitized) return;  // there it waits as well, or other things take time
  for (std::string const options : {"-pc_type amg -pc_amg_agg_type mis2", "-pc_type amg -pc_amg_type classical"}) {
    auto const A = apps::poisson(world(), {56, 56, 56}, Dtype::float64);
    double longest = 1;  // between two questions, as a part of the whole
    for (int tries = 0; tries < 3; ++tries) {
      double const begin = seconds_of_this_thread();
      double last = begin, here = 0;
      auto const ask = [&] {
        double const now = seconds_of_this_thread();
        here = std::max(here, now - last);
        last = now;
        return false;
      };
      AskedAlways const asked(ask);
      solver(A, options);
      ask();
      longest = std::min(longest, here / (last - begin));
    }
    EXPECT_LT(longest, 0.16) << options;  // about 0.2 where no loop asks
  }
}

TEST(Multigrid, CtrlCEndsASetUpOnAllRanks) {
  auto const A = apps::poisson(world(), {30, 30, 30}, Dtype::float64);
  solver(A, "-pc_type amg");  // the first one takes longer
  int asked = 0;
  {
    AskedAlways const count([&] { return ++asked < 0; });
    solver(A, "-pc_type amg");
  }
  bool const presses = world().rank() == world().size() - 1;
  for (double const part : {0.0, 0.2, 0.5}) {
    int n = 0;
    AskedAlways const pressed([&] { return presses && ++n > part * asked; });
    auto const error = error_of([&] { solver(A, "-pc_type amg"); });
    // loops ask by the clock: a set-up that is quicker than the one before may end before the key is pressed
    bool const reached = comm::collective(world(), "reached", [&] { return world().max(std::int64_t(n > part * asked)) > 0; });
    EXPECT_EQ(error.find("interrupted") != std::string::npos, reached) << part << " " << error;
    EXPECT_TRUE(reached || part > 0.2);
  }
  la::Vector b(A.range(), Dtype::float64), x = b.like();
  fill(b, 1.0);
  fill(x, 0.0);
  EXPECT_TRUE(solver(A, "-ksp_type cg -pc_type amg").solve(b, x).converged);
}

// The levels keep what products with the same bits on any ranks read, and nothing else.
TEST(Multigrid, ASolveGoesOnWhereTheSetUpHadTheSameBitsOnAnyRanks) {
  auto const A = apps::poisson(world(), {31, 33}, Dtype::float64);
  la::Vector b(A.range(), Dtype::float64), x = b.like();
  fill(b, 1.0);
  for (std::string const options : {"-mg_levels_ksp_type chebyshev", "-mg_levels_pc_type spai0"}) {
    auto const made = [&] { return solver(A, "-ksp_type cg -ksp_rtol 1e-8 -pc_type amg -pc_amg_coarse_size 20 " + options); };
    set_reproducible(true);
    auto s = made();
    set_reproducible(false);
    fill(x, 0.0);
    auto const found = s.solve(b, x);
    EXPECT_TRUE(found.converged) << options << " " << found.reason << " " << found.why;
    auto plain = made();
    fill(x, 0.0);
    EXPECT_NEAR(double(found.iterations), double(plain.solve(b, x).iterations), 1) << options;
  }
}

TEST(Multigrid, MemoryIsThatOfTheChosenSmoother) {
  auto const A = apps::elasticity(world(), {9, 8, 7}, 1.0, 0.3, Dtype::float64);
  std::string const options = "-ksp_type cg -pc_type amg -pc_amg_coarse_size 20", kind = "chebyshev (opt_fourth) x ";
  auto const chosen = solver(A, options);
  auto const text = chosen.view();
  auto const at = text.find(kind);
  ASSERT_NE(at, std::string::npos) << text;
  auto const degree = text.substr(at + kind.size(), 1);
  ASSERT_GT(degree, "1");
  auto const given =
      solver(A, options + " -mg_levels_ksp_type chebyshev -mg_levels_ksp_chebyshev_kind opt_fourth -mg_levels_ksp_max_it " + degree);
  EXPECT_EQ(chosen.preconditioner()->memory_bytes(), given.preconditioner()->memory_bytes()) << degree;
}

TEST(Multigrid, KCyclesWithFlexibleMethods) {
  auto const A = apps::poisson(world(), {31, 33}, Dtype::float64);
  la::Vector b(A.range(), Dtype::float64), x = b.like();
  fill(b, 1.0);
  std::int64_t before = 0;
  for (std::string const type : {"v", "k"}) {
    auto s = solver(
        A, "-pc_type amg -pc_amg_agg_type pairwise -pc_amg_coarse_size 5 -ksp_rtol 1e-8 -ksp_type fgmres -pc_amg_cycle_type " + type);
    fill(x, 0.0);  // the initial guess
    auto const info = s.solve(b, x);
    EXPECT_TRUE(info.converged);
    if (type == "k") {
      EXPECT_LT(info.iterations, before);
    }
    before = info.iterations;
  }
  EXPECT_NE(error_of([&] { solver(A, "-pc_type amg -pc_amg_coarse_size 5 -ksp_type cg -pc_amg_cycle_type k"); }).find("fgmres"),
            std::string::npos);
  EXPECT_NE(solver(A, "-pc_type amg -pc_amg_coarse_size 5 -pc_amg_cycle_type k").view().find("fgmres"), std::string::npos);
}

TEST(Multigrid, SmoothersSayWhatTheyCannotDo) {
  auto const A = apps::poisson(world(), {9, 8}, Dtype::float64);
  auto const text = [&](std::string const& options) { return error_of([&] { made(A, "amg -pc_amg_coarse_size 6 " + options); }); };
  EXPECT_NE(text("-mg_levels_ksp_type chebyshev -mg_levels_pc_type ilu").find("richardson"), std::string::npos);
  EXPECT_NE(text("-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 9").find("_kind fourth"), std::string::npos);
  EXPECT_NE(text("-mg_levels_pc_type spai0 -mg_levels_pc_jacobi_type rowl1").find("jacobi"), std::string::npos);
  auto const view = [&](std::string const& options) { return solver(A, "-pc_type amg -pc_amg_coarse_size 6 " + options).view(); };
  EXPECT_NE(view("-mg_levels_pc_type sor").find("iterations depend on the ranks"), std::string::npos);
  EXPECT_NE(view("-mg_levels_pc_type color_sor").find("colours"), std::string::npos);
  EXPECT_NE(view("-pc_amg_measure").find("smoothing"), std::string::npos);
}

TEST(Multigrid, LevelsHaveTheirPrecision) {
  // a list of one is that precision for all; coarse ones in less take as many iterations, and the cycle stays symmetric
  for (auto const dtype : {Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128}) {
    bool const complex = is_complex(dtype), wide = real_of(dtype) == Dtype::float64;
    auto const A = apps::poisson(world(), {37, 31}, dtype);
    la::Vector b(A.range(), dtype), x = b.like();
    fill_hashed(b, 3);
    std::map<std::string, int64_t> iterations;
    for (std::string const of : {"float64", "float32", "bfloat16", "float64,float32", "float32,bfloat16", "float64,float32,bfloat16",
                                 "float64,bfloat16,float32"}) {
      auto const options = "-ksp_type cg -ksp_rtol 1e-4 -pc_type amg -pc_amg_coarse_size 6 -pc_amg_dtype " + of;
      if ((complex && of.find("bfloat16") != of.npos) || (!wide && of.find("float64") != of.npos)) {
        EXPECT_NE(error_of([&] { solver(A, options); }).find("Use float32"), std::string::npos) << of;
        continue;
      }
      auto s = solver(A, options);
      fill(x, 0.0);
      iterations[of] = s.solve(b, x).iterations;
      auto const view = s.view();
      for (std::string const word : {"float64", "bfloat16"})
        EXPECT_EQ(view.substr(view.find("storage, smoother")).find(word) != view.npos,
                  of.find(word) != of.npos && !(complex && word == "float64"))
            << of << "\n"
            << view;
    }
    for (auto const& [of, count] : iterations) EXPECT_LE(std::abs(count - iterations.at("float32")), 1) << of;
  }
}

TEST(Multigrid, PrecisionsOfLevelsThatThereAreNot) {
  auto const A = apps::poisson(world(), {9, 8}, Dtype::float64);
  auto const text = [&](std::string const& options) { return error_of([&] { solver(A, "-pc_type amg " + options); }); };
  EXPECT_NE(text("-pc_amg_dtype float16").find("\"float16\" is none of float64, float32, bfloat16"), std::string::npos);
  EXPECT_NE(text("-pc_amg_dtype float64,").find("\"\" is none of"), std::string::npos);
  EXPECT_NE(text("-pc_amg_dtype float64,float32 -pc_dtype float32").find("Leave out one of the two"), std::string::npos);
}
