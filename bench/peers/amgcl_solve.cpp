// Peer: AMGCL's smoothed aggregation + SPAI-0 under CG for a matrix in a file (bench/multigrid.py writes it), right-hand side 1 unless the
// file has one, through its public headers, with 32-bit indices and its preconditioner in double or in float. Built where AMGCL_ROOT names
// a checkout; prints one JSON line. Usage: amgcl_solve FILE REPEATS double|float [MOST ITERATIONS]
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>

#include <chrono>
#include <cmath>
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
  int rows, block_size, modes;
  std::vector<int> ptr, col;
  std::vector<double> val, near_null_space, b;
};

template <class T>
std::vector<T> items(std::FILE* file, std::size_t count) {
  std::vector<T> out(count);
  if (std::fread(out.data(), sizeof(T), count, file) != count) std::exit(2);
  return out;
}

/// rows, entries, block size, columns of the near-null space (four 64-bit numbers); offsets, columns (32 bits); values; near-null space,
/// row-major; a right-hand side or the end.
Matrix read(char const* name) {
  auto* const file = std::fopen(name, "rb");
  if (!file) std::exit(2);
  auto const sizes = items<long long>(file, 4);
  Matrix A;
  A.rows = int(sizes[0]);
  A.block_size = int(sizes[2]);
  A.modes = int(sizes[3]);
  A.ptr = items<int>(file, std::size_t(sizes[0]) + 1);
  A.col = items<int>(file, std::size_t(sizes[1]));
  A.val = items<double>(file, std::size_t(sizes[1]));
  A.near_null_space = items<double>(file, std::size_t(sizes[0] * sizes[3]));
  A.b.assign(std::size_t(A.rows), 1.0);
  if (int const next = std::fgetc(file); next != EOF) {
    std::ungetc(next, file);
    A.b = items<double>(file, std::size_t(A.rows));
  }
  std::fclose(file);
  return A;
}

/// Not ru_maxrss, which a process takes over from the one that started it.
long peak_bytes() {
  auto* const status = std::fopen("/proc/self/status", "r");
  long kilobytes = 0;
  for (char line[256]; status && std::fgets(line, sizeof line, status);)
    if (std::sscanf(line, "VmHWM: %ld", &kilobytes) == 1) break;
  if (status) std::fclose(status);
  return kilobytes * 1024;
}

template <class Real>
void measure(Matrix const& A, int repeats, int most, char const* name) {
  using Outer = amgcl::backend::builtin<double, int>;
  using Inner = amgcl::backend::builtin<Real, int>;
  using Solver =
      amgcl::make_solver<amgcl::amg<Inner, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>, amgcl::solver::cg<Outer>>;
  typename Solver::params prm;
  prm.solver.tol = 1e-8;
  prm.solver.maxiter = std::size_t(most);
  prm.precond.coarsening.aggr.block_size = unsigned(A.block_size);
  prm.precond.coarsening.nullspace.cols = A.modes;
  prm.precond.coarsening.nullspace.B = A.near_null_space;
  auto const now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  std::vector<double> set_ups, solves;
  // the method multiplies with the matrix in double: the one in the preconditioner is rounded, and its solution another one
  amgcl::backend::crs<double, int, int> const matrix(std::tie(A.rows, A.ptr, A.col, A.val));
  std::size_t its = 0;
  double error = 0, of_r = 0, of_b = 0;
  for (int r = 0; r < repeats; ++r) {
    double const t0 = now();
    Solver solve(std::tie(A.rows, A.ptr, A.col, A.val), prm);
    set_ups.push_back(now() - t0);
    std::vector<double> x(std::size_t(A.rows), 0.0);
    double const t1 = now();
    std::tie(its, error) = solve(matrix, A.b, x);
    solves.push_back(now() - t1);
    of_r = of_b = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      double left = A.b[i];
      for (int p = A.ptr[i]; p < A.ptr[i + 1]; ++p) left -= A.val[std::size_t(p)] * x[std::size_t(A.col[std::size_t(p)])];
      of_r += left * left;
      of_b += A.b[i] * A.b[i];
    }
  }
  auto const print = [](char const* what, std::vector<double> const& values) {
    std::printf("\"%s\": [", what);
    for (std::size_t r = 0; r < values.size(); ++r) std::printf("%s%.4f", r ? ", " : "", values[r]);
    std::printf("], ");
  };
  std::printf("{\"peer\": \"amgcl\", \"preconditioner\": \"%s\", \"index_bits\": 32, ", name);
  print("setup", set_ups);
  print("solve", solves);
  std::printf("\"peak_bytes\": %ld, \"iterations\": %zu, \"error\": %.3e, \"residual\": ", peak_bytes(), its, error);
  if (double const residual = std::sqrt(of_r / of_b); std::isfinite(residual)) std::printf("%.3e}\n", residual);
  else std::printf("null}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  auto const A = read(argv[1]);
  int const repeats = std::atoi(argv[2]), most = argc > 4 ? std::atoi(argv[4]) : 5000;
  if (std::string_view(argv[3]) == "float") measure<float>(A, repeats, most, "float");
  else measure<double>(A, repeats, most, "double");
}
