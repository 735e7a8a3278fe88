// Smoothed prolongation of scalar unknowns, against its formula with dense matrices.
#include "asterism/precond/amg/prolongation.hpp"
#include "asterism/precond/amg/coarsening/grid_boxes.hpp"
#include "asterism/precond/amg/pairwise.hpp"

#include <gtest/gtest.h>

#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::precond::amg;
using std::int64_t;

namespace {

constexpr double threshold = 0.1, omega = 0.7;

/// Couplings along an nx by ny grid with random coefficients, some of them weak, and a node that stands alone.
Dense grid(int64_t nx, int64_t ny, bool complex, bool weak) {
  auto const n = nx * ny;
  auto const r = random(n, n, complex, unsigned(n));
  Dense a(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      bool const beside = (i / nx == j / nx && std::abs(double(i - j)) == 1) || std::abs(double(i - j)) == double(nx);
      if (beside && i != n / 2 && j != n / 2) a(i, j) = (weak && (i * j) % 7 == 3 ? 0.01 : 1.0) * (r(i, j) - 2.0);
    }
  for (int64_t i = 0; i < n; ++i) a(i, i) = 4.0 + r(i, i);
  return a;
}

/// Rows of all lengths, most with a pattern of their own, some longer than a few vectors.
Dense irregular(int64_t n, bool complex) {
  auto const r = random(n, n, complex, 5), p = random(n, n, false, 6);
  Dense a(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (i == j || std::abs(p(i, j)) > (i % 10 == 4 ? 0.3 : 0.93)) a(i, j) = i == j ? 3.0 + r(i, j) : r(i, j);
  return a;
}

/// Weak couplings go to the diagonal so that the product with b stays the same.
Dense strong_part(Dense const& a, Dense const& b) {
  auto out = a;
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.cols(); ++j)
      if (i != j && !(std::norm(a(i, j)) > threshold * threshold * std::abs(a(i, i)) * std::abs(a(j, j)))) {
        out(i, i) += a(i, j) * b(j, 0) / b(i, 0);
        out(i, j) = 0;
      }
  return out;
}

template <class T>
void check(Dense const& a, bool complete) {
  Progress progress("test", 0);
  comm::Cancellation cancel(world(), progress);
  auto const n = a.rows();
  auto const layout = uneven(world(), n);
  auto const A = to_sparse(a, layout, layout, dtype_v<T>);
  auto const rows = rows_of<T>(A);
  auto const graph = complete ? pattern_graph(rows, layout) : strong_couplings(rows, layout, 1, threshold, cancel);
  auto const aggregates = aggregate(graph, lengths_of_grid(graph), cancel);
  auto near_null = random(n, 1, sizeof(T) > 8, 3);
  for (int64_t i = 0; i < n; ++i) near_null(i, 0) += 2.0;
  Buffer<T> B(layout.local_size());
  for (int64_t i = 0; i < B.size(); ++i) {
    auto const v = near_null(layout.begin() + i, 0);
    if constexpr (sizeof(T) > 8) B[i] = T(v.real(), v.imag());
    else B[i] = v.real();
  }
  auto const P0 = tentative_prolongation(graph, aggregates, 1, 1, B.data(), cancel);
  auto const& coarse = aggregates.coarse;
  auto const tentative = to_dense(matrix_of(unsmoothed_prolongation(graph, aggregates, P0, 1, coarse, cancel), layout, coarse));
  auto const P =
      to_dense(matrix_of(smoothed_prolongation(rows, graph, aggregates, P0, B.data(), 1, omega, coarse, cancel), layout, coarse));
  auto filtered = complete ? a : strong_part(a, near_null);
  auto const product = filtered * tentative;
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < P.cols(); ++c)
      largest = std::max(largest, std::abs(P(i, c) - (tentative(i, c) - omega / filtered(i, i) * product(i, c))));
  EXPECT_LT(largest, 1e-14 * double(n)) << n;
}

}  // namespace

TEST(Prolongation, IsTheTentativeOneSmoothedWithTheStrongCouplings) {
  for (bool const weak : {false, true}) {
    for (auto const& [nx, ny] : {std::pair<int64_t, int64_t>{13, 11}, {9, 9}, {40, 1}, {1, 1}, {2, 1}}) {
      check<double>(grid(nx, ny, false, weak), false);
      check<Complex<double>>(grid(nx, ny, true, weak), false);
    }
    check<double>(irregular(150, false), !weak);
    check<Complex<double>>(irregular(150, true), !weak);
  }
}
