#include "asterism/solve/solver.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "asterism/apps/gallery.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;

namespace {
solve::SolveInfo run(la::Matrix const& A, std::string const& options, device::Queue const& queue, double* error = nullptr) {
  Options o;
  o.parse(options, OptionLayer::call, "test");
  solve::Solver s(A, o);
  la::Vector x(A.domain(), A.dtype(), 1, queue), b(A.range(), A.dtype(), 1, queue), exact = x.like();
  fill_hashed(exact, 9);
  A.apply(exact, b);
  fill(x, 0.0);
  auto const info = s.solve(b, x);
  axpy(-1.0, exact, x);
  if (error) *error = norm(x).real() / norm(exact).real();
  return info;
}
}  // namespace

TEST(Solver, EveryMethodWithEveryPreconditioner) {
  auto const& c = world();
  auto const A = apps::poisson(c, {17, 19}, Dtype::float64);
  for (auto const& [ksp, m] : krylov::methods())
    for (auto const& [pc, p] : precond::preconditioners()) {
      if (ksp == "preonly") continue;
      if ((pc == "ilut" || pc == "asm") && (ksp == "cg" || ksp == "pipecg" || ksp == "cr" || ksp == "minres" || ksp == "chebyshev"))
        continue;  // not symmetric
      if ((ksp == "richardson" || ksp == "chebyshev") && (pc == "none" || pc == "jacobi")) continue;
      double error = 1;
      auto const nested = pc == "ksp" ? " -ksp_ksp_type richardson -ksp_ksp_max_it 2 -ksp_pc_type sor" : "";
      auto const info =
          run(A, "-ksp_type " + ksp + " -pc_type " + pc + nested + " -ksp_rtol 1e-9 -ksp_max_it 2000", device::Queue::host(), &error);
      EXPECT_TRUE(info.converged) << ksp << " " << pc << " " << info.reason << " " << info.why;
      EXPECT_LT(error, 1e-6) << ksp << " " << pc;
      ASSERT_EQ(std::int64_t(info.residual_norms.size()), info.iterations + 1) << ksp << " " << pc;
    }
}

TEST(Solver, EveryQueueGivesTheSameBits) {
  auto const A = apps::poisson(world(), {12, 13}, Dtype::float64);
  auto const thread = device::Queue::thread(), strict = device::Queue::strict();
  for (auto const* options :
       {"-ksp_type cg -pc_type amg -pc_amg_coarse_size 10", "-ksp_type gmres -pc_type ilu", "-ksp_type bicgstab -pc_type jacobi",
        "-ksp_type minres -pc_type sor", "-ksp_type chebyshev -pc_type amg -mg_levels_ksp_type chebyshev",
        "-ksp_type pipecg -pc_type jacobi", "-ksp_type tfqmr -pc_type bjacobi", "-ksp_type cg -ksp_cg_single_reduction -pc_type amg",
        "-ksp_type cg -pc_type chebyshev", "-ksp_type bicg -pc_type ilu", "-ksp_type bicg -pc_type amg", "-ksp_type cr -pc_type sor",
        "-ksp_type cgs -pc_type ilu", "-ksp_type gcr -ksp_gcr_restart 5 -pc_type amg"}) {
    auto const want = run(A, options, device::Queue::host());
    EXPECT_EQ(want.host_waits, 0) << options;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      auto const got = run(A, options, device::Queue::shuffle(seed));
      ASSERT_EQ(got.residual_norms, want.residual_norms) << options;
    }
    for (auto const& queue : {thread, strict}) {
      auto const got = run(A, options, queue);
      ASSERT_EQ(got.residual_norms, want.residual_norms) << options << " " << queue.kind();
      ASSERT_EQ(got.true_residual, want.true_residual) << options << " " << queue.kind();
    }
  }
}

namespace {
/// The bits of x, and what is known of the solve.
template <class T>
std::pair<std::vector<T>, solve::SolveInfo> solved(la::Matrix const& A, std::string const& options, std::int64_t k) {
  Options o;
  o.parse(options, OptionLayer::call, "test");
  solve::Solver s(A, o);
  la::Vector x(A.domain(), A.dtype(), k), b(A.range(), A.dtype(), k);
  fill_hashed(b, 3);
  fill(x, 0.0);
  auto info = s.solve(b, x);
  auto const v = x.host<T>();
  return {{v.begin(), v.end()}, info};
}
}  // namespace

TEST(Solver, AsynchronousIsTheSameBitByBit) {
  // the same kernels in the same order: iterates, histories and the stopping iteration, in all dtypes, several columns that end at
  // different iterations, whatever the queue and however late the host looks
  std::size_t cases = 0;
  for (std::string const method :
       {"cg -pc_type jacobi", "cg -pc_type amg -pc_amg_coarse_size 20", "cg -ksp_cg_single_reduction -pc_type jacobi",
        "pipecg -pc_type jacobi", "bicgstab -pc_type jacobi", "bicgstab -pc_type none", "tfqmr -pc_type jacobi"})
    for (auto const dtype : test::two_dtypes(cases++)) {
      auto const A = apps::poisson(world(), {23, 19}, dtype);
      with_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (std::int64_t const k : {1, 3}) {
          auto const options = "-ksp_rtol 1e-4 -ksp_type " + method;
          auto const [want, info] = solved<T>(A, options, k);
          ASSERT_TRUE(info.converged) << options;
          for (std::string const how :
               {"-queue thread -ksp_check_every 1", "-ksp_check_every 7", "-ksp_check_every 100", "-queue strict -ksp_check_every 5",
                "-queue shuffle -queue_seed 4 -ksp_check_every 3", "-queue inline"}) {
            auto const [got, late] = solved<T>(A, options + " -ksp_asynchronous " + how, k);
            ASSERT_EQ(late.residual_norms, info.residual_norms) << options << " " << how << " " << name_of(dtype) << " " << k;
            ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(T)), 0) << options << " " << how << " " << name_of(dtype);
            ASSERT_EQ(late.iterations, info.iterations) << options << " " << how;
            ASSERT_EQ(late.reason, info.reason);
          }
        }
      });
    }
}

TEST(Solver, AsynchronousEndsWithTheSameReasons) {
  auto const A = apps::poisson(world(), {23, 19}, Dtype::float64);
  for (std::string const options :
       {"-ksp_type cg -pc_type none -ksp_max_it 17 -ksp_rtol 1e-12", "-ksp_type cg -pc_type none -ksp_max_it 0",
        "-ksp_type bicgstab -pc_type none -ksp_max_it 9 -ksp_rtol 1e-12", "-ksp_type cg -pc_type jacobi -ksp_atol 1e-2 -ksp_rtol 0",
        "-ksp_type tfqmr -pc_type none -ksp_divtol 1.0000001 -ksp_max_it 40"}) {
    auto const [want, info] = solved<double>(A, options, 1);
    auto const [got, late] = solved<double>(A, options + " -ksp_asynchronous -ksp_check_every 5", 1);
    EXPECT_EQ(late.reason, info.reason) << options;
    EXPECT_EQ(late.why, info.why) << options;
    EXPECT_EQ(late.iterations, info.iterations) << options;
    EXPECT_EQ(got, want) << options;
  }
  // an indefinite matrix breaks down within cg: on the queue, with the same words
  auto const rows = A.range();
  std::vector<std::int64_t> offsets{0}, columns;
  std::vector<double> values;
  for (auto i = rows.begin(); i < rows.end(); ++i) {
    columns.push_back(i);
    values.push_back(i % 7 ? double(i % 5 + 1) : -1);
    offsets.push_back(std::int64_t(columns.size()));
  }
  auto const indefinite = la::Matrix::from_rows<std::int64_t>(rows, rows, Dtype::float64, offsets, columns, values.data());
  auto const options = std::string("-ksp_type cg -pc_type none -ksp_check_input false");
  auto const [want, info] = solved<double>(indefinite, options, 1);
  auto const [got, late] = solved<double>(indefinite, options + " -ksp_asynchronous", 1);
  EXPECT_EQ(info.reason, "DIVERGED_INDEFINITE_MAT");
  EXPECT_EQ(late.reason, info.reason);
  EXPECT_EQ(late.why, info.why);
  EXPECT_EQ(got, want);
}

TEST(Solver, AsynchronousSolvesHardlyWait) {
  auto const A = apps::poisson(world(), {80, 80}, Dtype::float64);
  auto const run = [&](std::string const& more) {
    return solved<double>(A, "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-300 -ksp_max_it 200 " + more, 1).second;
  };
  auto const synchronous = run("-queue thread");
  EXPECT_GE(synchronous.host_waits, 200);
  EXPECT_LE(synchronous.host_waits, 3 * 200 + 5);
  for (int const every : {5, 20, 50}) {
    auto const before = device::host::blocking_reaches();
    auto const late = run("-ksp_asynchronous -ksp_check_every " + std::to_string(every));
    EXPECT_EQ(late.iterations, 200);
    EXPECT_LE(late.host_waits, 200 / every + 3) << every;
    // where threads are put to sleep, counted apart: the ranks' own waits and those of the worker for nobody
    EXPECT_LE(device::host::blocking_reaches() - before, late.host_waits + 2) << every;
  }
}

TEST(Solver, HierarchyDoesNotDependOnTheRanks) {
  // every rank also builds the whole problem alone; the distributed hierarchy prints the same levels
  auto const view = [](la::Matrix const& A) {
    Options o;
    o.parse("-ksp_type cg -pc_type amg -pc_amg_coarse_size 20", OptionLayer::call, "test");
    auto const text = solve::Solver(A, o).view();
    return text.substr(text.find("level "));
  };
  auto const strip = [](std::string s) {  // storage depends on the local pattern
    std::string out;
    for (std::size_t at = 0; at < s.size();) {
      auto const end = s.find('\n', at);
      out += s.substr(at, 41) + "\n";
      at = end + 1;
    }
    return out;
  };
  EXPECT_EQ(strip(view(apps::poisson(world(), {9, 10, 11}, Dtype::float64))),
            strip(view(apps::poisson(comm::Communicator(), {9, 10, 11}, Dtype::float64))));
  EXPECT_EQ(strip(view(apps::elasticity(world(), {5, 4, 4}, 1, 0.3, Dtype::float64))),
            strip(view(apps::elasticity(comm::Communicator(), {5, 4, 4}, 1, 0.3, Dtype::float64))));
}

TEST(Refinement, EndsWhereTheBackwardErrorIsInfinite) {
  // nothing is solved, of so many rows in float32 that b alone is beside rounding: each step's error is as infinite as the one before
  comm::Communicator const alone;
  la::Layout const layout(alone, 20000);
  auto const rows = layout.local_size();
  std::vector<std::int64_t> offsets(std::size_t(rows) + 1), columns(static_cast<std::size_t>(rows));
  std::iota(offsets.begin(), offsets.end(), 0);
  std::iota(columns.begin(), columns.end(), 0);
  std::vector<float> const ones(std::size_t(rows), 1), zeros(std::size_t(rows), 0);
  auto const A = la::Matrix::from_rows<std::int64_t>(layout, layout, Dtype::float32, offsets, columns, ones.data());
  auto const none = la::Matrix::from_rows<std::int64_t>(layout, layout, Dtype::float32, offsets, columns, zeros.data());
  la::Vector b(layout, Dtype::float32), x = b.like();
  fill(b, 1.0);
  fill(x, 0.0);
  auto const size = solve::magnitudes_of(A);
  auto const done = solve::Refinement(A, size, false).refine(none, b, x, 10);
  EXPECT_EQ(done.steps, 0);
  EXPECT_TRUE(std::isinf(done.backward_error.at(0)));
}
