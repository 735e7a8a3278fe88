// A user's project: solves a Poisson problem with the installed package.
#include <asterism/apps/gallery.hpp>
#include <asterism/solve/solver.hpp>
#include <cstdio>

int main() {
  using namespace asterism;
  auto const A = apps::poisson(comm::Communicator(), {20, 20}, Dtype::float64);
  Options options;
  options.parse("-ksp_type cg -pc_type amg -ksp_rtol 1e-8", OptionLayer::call, "user.cpp");
  solve::Solver solver(A, options);
  la::Vector b(A.range(), A.dtype()), x = b.like();
  la::fill(b, 1.0);
  la::fill(x, 0.0);
  auto const info = solver.solve(b, x);
  std::printf("C++ project: %s after %ld iterations\n", info.reason.c_str(), long(info.iterations));
  return info.converged ? 0 : 1;
}
