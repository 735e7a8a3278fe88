// Triangular solves by the kernels SOLVE and WAIT, on the emulated device: with few and many blocks at once, on several ranks.
#include "asterism/direct/triangular/gpu/gpu_triangular_solver.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "asterism/base/error.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/direct/triangular/triangular_solver.hpp"
#include "direct/grids.hpp"
#include "direct/random_triangle.hpp"
#include "harness/world.hpp"

using namespace direct_tests;

namespace {

/// The same on each rank, of which the rows named are its own.
template <class T>
std::vector<T> whole(comm::Communicator const& comm, std::vector<std::int32_t> const& rows, std::int32_t n, std::int64_t columns,
                     T const* own) {
  auto const all_rows = comm.all_gather_bytes(std::as_bytes(std::span(rows)));
  auto const all = comm.all_gather_bytes(std::as_bytes(std::span(own, rows.size() * std::size_t(columns))));
  std::vector<T> x(std::size_t(n * columns));
  for (std::size_t i = 0; i < all_rows.size() / sizeof(std::int32_t); ++i) {
    std::int32_t row;
    std::memcpy(&row, all_rows.data() + i * sizeof row, sizeof row);
    std::memcpy(x.data() + std::size_t(row * columns), all.data() + i * std::size_t(columns) * sizeof(T), std::size_t(columns) * sizeof(T));
  }
  return x;
}

template <class T>
class GpuTriangle : public testing::Test {};
using Dtypes = testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(GpuTriangle, Dtypes);

TYPED_TEST(GpuTriangle, SolvesAsTheDenseOneSays) {
  using T = TypeParam;
  auto const& comm = world();
  device::gpu::open("auto");
  double const level = sizeof(real_t<T>) == 4 ? 2e-6 : 5e-15;
  for (unsigned seed = 0; seed < 4; ++seed)
    for (auto const& grid : grids_of(comm.size())) {
      RandomTriangle const problem(seed, seed == 3 ? 1 : 9, seed % 2 ? 3 : 12, 0.3);
      GpuTriangularSolver solver(comm, {problem.triangle<T>(grid, comm.rank())});
      for (auto const sweep : {Sweep::forward, Sweep::backward})
        for (std::int64_t const columns : {1, 3, 8, 11}) {
          auto const b = right_hand_side<T>(problem.n, columns);
          std::vector<T> first;
          for (int turn = 0; turn < 3; ++turn) {
            std::vector<T> own;
            for (auto const row : solver.owned_rows()) own.insert(own.end(), b.begin() + row * columns, b.begin() + (row + 1) * columns);
            auto const x = device::Array::of(std::span<T const>(own));
            solver.solve(0, sweep, columns, x);
            x.settle(device::Access::read, "test");
            auto const all = whole(comm, solver.owned_rows(), problem.n, columns, x.template as<T>());
            ASSERT_LE(problem.error(sweep, columns, all, b), level) << grid.describe() << ' ' << columns << ' ' << int(sweep);
            if (turn == 0) first = all;
            else ASSERT_EQ(std::memcmp(first.data(), all.data(), all.size() * sizeof(T)), 0) << "other bits in turn " << turn;
          }
        }
    }
}

/// So many entries beside a supernode that several blocks of threads multiply them.
TEST(GpuTriangles, DivideLargeSupernodes) {
  auto const& comm = world();
  device::gpu::open("auto");
  RandomTriangle const problem(21, 160, 20, 1.0);
  auto const b = right_hand_side<double>(problem.n, 2);
  for (auto const& grid : grids_of(comm.size())) {
    GpuTriangularSolver solver(comm, {problem.triangle<double>(grid, comm.rank())});
    for (auto const sweep : {Sweep::forward, Sweep::backward}) {
      std::vector<double> own;
      for (auto const row : solver.owned_rows()) own.insert(own.end(), b.begin() + row * 2, b.begin() + (row + 1) * 2);
      auto const x = device::Array::of(std::span<double const>(own));
      solver.solve(0, sweep, 2, x);
      x.settle(device::Access::read, "test");
      ASSERT_LE(problem.error(sweep, 2, whole(comm, solver.owned_rows(), problem.n, 2, x.as<double>()), b), 1e-13) << grid.describe();
    }
  }
}

/// L whose diagonal blocks exchange rows, and another triangle of the same pattern beside it: as the host solves them.
TEST(GpuTriangles, ExchangeRowsAsOnTheHost) {
  auto const& comm = world();
  device::gpu::open("auto");
  RandomTriangle const problem(11, 6, 7, 0.4);
  auto const& nodes = problem.pattern->nodes();
  std::mt19937 random(3);
  for (auto const& grid : grids_of(comm.size())) {
    auto const exchanged = problem.triangle<double>(grid, comm.rank());
    for (std::int32_t k = 0; k < nodes.count(); ++k) {
      std::vector<std::int32_t> order(std::size_t(nodes.width(k)));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      if (exchanged->owns_diagonal(k)) exchanged->exchange_rows(k, order);
    }
    std::vector<std::shared_ptr<LocalTriangle const>> const both{exchanged, problem.triangle<double>(grid, comm.rank())};
    GpuTriangularSolver solver(comm, both);
    TriangularSolver host(comm, both);
    EXPECT_EQ(solver.owned_rows(), host.owned_rows());
    for (std::size_t const t : {0, 1})
      for (auto const sweep : {Sweep::forward, Sweep::backward})
        for (std::int64_t const columns : {1, 3}) {
          auto expected = right_hand_side<double>(std::int32_t(solver.owned()), columns);
          auto const x = device::Array::of(std::span<double const>(expected));
          solver.solve(t, sweep, columns, x);
          x.settle(device::Access::read, "test");
          host.solve(t, sweep, columns, std::as_writable_bytes(std::span(expected)));
          for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(x.as<double>()[i], expected[i], 1e-13) << t << ' ' << int(sweep);
        }
  }
}

/// Of one rank: the others do not wait for ever, and the solver goes on.
TEST(GpuTriangles, RefuseAWrongLength) {
  auto const& comm = world();
  device::gpu::open("auto");
  RandomTriangle const problem(5, 4, 3, 0.5);
  GpuTriangularSolver solver(comm, {problem.triangle<double>(grids_of(comm.size()).front(), comm.rank())});
  auto const rows = std::size_t(solver.owned());
  device::Array const wrong(8 * rows + (comm.rank() == 0 ? 8 : 0));
  std::fill_n(wrong.as<double>(), wrong.bytes() / 8, 1.0);
  EXPECT_THROW(solver.solve(0, Sweep::forward, 1, wrong), Error);
  auto const b = right_hand_side<double>(problem.n, 1);
  std::vector<double> own;
  for (auto const row : solver.owned_rows()) own.push_back(b[std::size_t(row)]);
  auto const x = device::Array::of(std::span<double const>(own));
  solver.solve(0, Sweep::forward, 1, x);
  x.settle(device::Access::read, "test");
  EXPECT_LE(problem.error(Sweep::forward, 1, whole(comm, solver.owned_rows(), problem.n, 1, x.as<double>()), b), 5e-15);
}

}  // namespace
