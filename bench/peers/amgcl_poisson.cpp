// Peer: AMGCL's smoothed aggregation + SPAI-0 under CG on the 7-point Poisson matrix, through its public
// headers. Built by bench/run.py where AMGCL_ROOT names a checkout; prints one JSON line.
#if defined(AMGCL_BOOST_TUPLE)  // releases up to 1.0 take Boost's tuples
#include <boost/range.hpp>
#include <boost/tuple/tuple.hpp>
using boost::tie;
#else
#include <tuple>
using std::tie;
#endif
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>

#include <boost/range.hpp>
#include <boost/tuple/tuple.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

int main(int argc, char** argv) {
  long const n = argc > 1 ? std::atol(argv[1]) : 128;
  int const repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  std::vector<long> ptr{0}, col;
  std::vector<double> val;
  for (long i = 0; i < n * n * n; ++i) {
    long const x = i / (n * n), y = i / n % n, z = i % n;
    auto const put = [&](long c, double v) { col.push_back(c), val.push_back(v); };
    if (x > 0) put(i - n * n, -1);
    if (y > 0) put(i - n, -1);
    if (z > 0) put(i - 1, -1);
    put(i, 6);
    if (z + 1 < n) put(i + 1, -1);
    if (y + 1 < n) put(i + n, -1);
    if (x + 1 < n) put(i + n * n, -1);
    ptr.push_back(long(col.size()));
  }
  using Backend = amgcl::backend::builtin<double>;
  using Solver = amgcl::make_solver<amgcl::amg<Backend, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>,
                                    amgcl::solver::cg<Backend>>;
  typename Solver::params prm;
  prm.solver.tol = 1e-8;
  long const rows = n * n * n;
  auto const now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  std::printf("{\"peer\": \"amgcl\", \"setup\": [");
  std::vector<double> solves;
  std::size_t its = 0;
  double error = 0;
  for (int r = 0; r < repeats; ++r) {
    double const t0 = now();
    Solver solve(tie(rows, ptr, col, val), prm);
    double const t1 = now();
    std::vector<double> b(std::size_t(rows), 1.0), x(std::size_t(rows), 0.0);
    double const t2 = now();
    tie(its, error) = solve(b, x);
    solves.push_back(now() - t2);
    std::printf("%s%.4f", r ? ", " : "", t1 - t0);
  }
  std::printf("], \"solve\": [");
  for (std::size_t r = 0; r < solves.size(); ++r) std::printf("%s%.4f", r ? ", " : "", solves[r]);
  std::printf("], \"iterations\": %zu, \"error\": %.3e}\n", its, error);
}
