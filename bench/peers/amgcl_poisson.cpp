// Peer: AMGCL's smoothed aggregation + SPAI-0 under CG on the 7-point Poisson matrix, through its public headers, with 32-bit
// indices and its preconditioner in double or in float. Built by bench/run.py where AMGCL_ROOT names a checkout; prints one JSON line.
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <tuple>
#include <vector>

// AMGCL says so of its 64-bit indices alone
template <>
struct amgcl::backend::backends_compatible<amgcl::backend::builtin<double, int>, amgcl::backend::builtin<float, int>> : std::true_type {};

namespace {

struct Matrix {
  int rows;
  std::vector<int> ptr{0}, col;
  std::vector<double> val;
};

Matrix poisson(int n) {
  Matrix A{n * n * n, {0}, {}, {}};
  for (int i = 0; i < A.rows; ++i) {
    int const x = i / (n * n), y = i / n % n, z = i % n;
    auto const put = [&](int c, double v) { A.col.push_back(c), A.val.push_back(v); };
    if (x > 0) put(i - n * n, -1);
    if (y > 0) put(i - n, -1);
    if (z > 0) put(i - 1, -1);
    put(i, 6);
    if (z + 1 < n) put(i + 1, -1);
    if (y + 1 < n) put(i + n, -1);
    if (x + 1 < n) put(i + n * n, -1);
    A.ptr.push_back(int(A.col.size()));
  }
  return A;
}

template <class Real>
void measure(Matrix const& A, int repeats, char const* name) {
  using Outer = amgcl::backend::builtin<double, int>;
  using Inner = amgcl::backend::builtin<Real, int>;
  using Solver =
      amgcl::make_solver<amgcl::amg<Inner, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>, amgcl::solver::cg<Outer>>;
  typename Solver::params prm;
  prm.solver.tol = 1e-8;
  auto const now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  std::vector<double> set_ups, solves;
  std::size_t its = 0;
  double error = 0;
  for (int r = 0; r < repeats; ++r) {
    double const t0 = now();
    Solver solve(std::tie(A.rows, A.ptr, A.col, A.val), prm);
    set_ups.push_back(now() - t0);
    std::vector<double> b(std::size_t(A.rows), 1.0), x(std::size_t(A.rows), 0.0);
    double const t1 = now();
    std::tie(its, error) = solve(b, x);
    solves.push_back(now() - t1);
  }
  auto const print = [](char const* what, std::vector<double> const& values) {
    std::printf("\"%s\": [", what);
    for (std::size_t r = 0; r < values.size(); ++r) std::printf("%s%.4f", r ? ", " : "", values[r]);
    std::printf("], ");
  };
  std::printf("{\"peer\": \"amgcl\", \"preconditioner\": \"%s\", \"index_bits\": 32, ", name);
  print("setup", set_ups);
  print("solve", solves);
  std::printf("\"iterations\": %zu, \"error\": %.3e}\n", its, error);
}

}  // namespace

int main(int argc, char** argv) {
  int const n = argc > 1 ? std::atoi(argv[1]) : 128, repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  auto const A = poisson(n);
  if (argc > 3 && std::string_view(argv[3]) == "float") measure<float>(A, repeats, "float");
  else measure<double>(A, repeats, "double");
}
