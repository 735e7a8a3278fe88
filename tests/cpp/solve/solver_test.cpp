#include "asterism/solve/solver.hpp"

#include <gtest/gtest.h>

#include "asterism/apps/gallery.hpp"
#include "harness/world.hpp"

using namespace asterism;

namespace {
solve::SolveInfo run(la::Matrix const& A, std::string const& options, device::Context const& ctx, double* error = nullptr) {
  Options o;
  o.parse(options, OptionLayer::call, "test");
  solve::Solver s(A, o);
  la::Vector x(A.domain(), A.dtype(), 1, ctx), b(A.range(), A.dtype(), 1, ctx), exact = x.like();
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
      if ((ksp == "richardson" || ksp == "chebyshev") && (pc == "none" || pc == "jacobi")) continue;
      double error = 1;
      auto const info =
          run(A, "-ksp_type " + ksp + " -pc_type " + pc + " -ksp_rtol 1e-9 -ksp_max_it 2000", device::Context::host(), &error);
      EXPECT_TRUE(info.converged) << ksp << " " << pc << " " << info.reason << " " << info.why;
      EXPECT_LT(error, 1e-6) << ksp << " " << pc;
      ASSERT_EQ(std::int64_t(info.residual_norms.size()), info.iterations + 1) << ksp << " " << pc;
    }
}

TEST(Solver, ShuffledQueueGivesTheSameBits) {
  auto const A = apps::poisson(world(), {12, 13}, Dtype::float64);
  for (auto const* options :
       {"-ksp_type cg -pc_type amg -pc_amg_coarse_size 10", "-ksp_type gmres -pc_type ilu", "-ksp_type bicgstab -pc_type jacobi",
        "-ksp_type minres -pc_type sor", "-ksp_type chebyshev -pc_type amg -mg_levels_ksp_type chebyshev"}) {
    auto const want = run(A, options, device::Context::host());
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      auto const got = run(A, options, device::Context::shuffle(seed));
      ASSERT_EQ(got.residual_norms, want.residual_norms) << options;
    }
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
