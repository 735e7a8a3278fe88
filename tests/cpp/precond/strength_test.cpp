// Measures of strength for aggregation, against their formulas in dense matrices.
#include "asterism/precond/amg/coarsening/strength.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "asterism/apps/gallery.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::precond::amg;
using std::int64_t;

namespace {

constexpr double radius = 1.9, threshold = 0.25;

bool same_component(int64_t i, int64_t j, int64_t bs) { return i != j && (i - j) % bs == 0; }

Dense classical(Dense const& a, int64_t bs) {
  Dense s(a.rows(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    double most = 0;
    for (int64_t j = 0; j < a.rows(); ++j)
      if (same_component(i, j, bs)) most = std::max(most, std::abs(a(i, j)));
    for (int64_t j = 0; j < a.rows(); ++j)
      if (same_component(i, j, bs) && a(i, j) != Value(0) && std::abs(a(i, j)) >= threshold * most) s(i, j) = 1;
  }
  return s;
}

Dense evolution(Dense const& a, int64_t bs) {
  auto const n = a.rows();
  auto m = Dense::identity(n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) m(i, j) -= a(i, j) / (a(i, i) * radius);
  auto const z = m * m;  // column i: two steps from delta_i
  Dense s(n, n);
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> measure(std::size_t(n), -1);
    double least = 1e300;
    for (int64_t j = 0; j < n; ++j) {
      if (!same_component(i, j, bs) || a(i, j) == Value(0) || z(j, i) == Value(0)) continue;
      auto const ratio = z(i, i) / z(j, i);
      if ((std::conj(z(i, i)) * z(j, i)).real() < 0 || std::abs(ratio) < 1e-4) continue;
      measure[std::size_t(j)] = std::max(std::abs(1.0 - ratio), 1e-4);
      least = std::min(least, measure[std::size_t(j)]);
    }
    for (int64_t j = 0; j < n; ++j)
      if (measure[std::size_t(j)] >= 0 && threshold * measure[std::size_t(j)] < least) s(i, j) = 1;
  }
  return s;
}

/// Nodes, one of which depends on the other, where a has an entry.
Dense nodes(Dense const& a, Dense const& s, int64_t bs) {
  auto const n = a.rows() / bs;
  Dense out(n, n);
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.rows(); ++j)
      if (i / bs != j / bs && a(i, j) != Value(0) && (s(i, j) != Value(0) || s(j, i) != Value(0))) out(i / bs, j / bs) = 1;
  return out;
}

template <class T>
Dense graph(la::Matrix const& A, int64_t bs, bool by_evolution) {
  Progress progress("test", 0);
  comm::Cancellation cancel(world(), progress);
  auto const rows = rows_of<T>(A);
  auto const strong =
      by_evolution ? evolution_couplings(rows, A.range(), bs, threshold, radius, cancel) : classical_couplings(rows, bs, threshold, cancel);
  auto const g = node_graph(rows, strong, A.range(), bs, cancel);
  Rows<double> out;
  out.count = g.count;
  out.ptr = g.ptr;
  out.col = g.col;
  out.val = Buffer<double>(out.nnz(), 1.0);
  out.map = g.map;
  return to_dense(matrix_of(out, g.layout, g.layout));
}

void check(Dense const& a, bool complex, int64_t bs) {
  auto layout = uneven(world(), a.rows() / bs);
  auto offsets = layout.offsets();
  for (auto& o : offsets) o *= bs;
  layout = la::Layout::from_offsets(world(), offsets);
  auto const A = to_sparse(a, layout, layout, complex ? Dtype::complex128 : Dtype::float64);
  for (bool const by_evolution : {false, true}) {
    auto const want = nodes(a, by_evolution ? evolution(a, bs) : classical(a, bs), bs);
    auto const got = complex ? graph<Complex<double>>(A, bs, by_evolution) : graph<double>(A, bs, by_evolution);
    EXPECT_EQ(norm(got - want), 0) << a.rows() << " " << complex << " " << bs << " " << by_evolution;
  }
}

Dense kron_with_random(Dense const& a, int64_t bs, bool complex) {
  auto const r = random(a.rows() * bs, a.rows() * bs, complex, 11);
  Dense out(a.rows() * bs, a.rows() * bs);
  for (int64_t i = 0; i < out.rows(); ++i)
    for (int64_t j = 0; j < out.cols(); ++j)
      if (a(i / bs, j / bs) != Value(0)) out(i, j) = 0.2 * r(i, j) + (i % bs == j % bs ? a(i / bs, j / bs) : Value(0));
  return out;
}

}  // namespace

TEST(Strength, IsThatOfTheFormula) {
  for (bool const complex : {false, true})
    for (int64_t const n : {1, 2, 17, 60}) {
      check(sparse_positive(n, complex, 3), complex, 1);
      check(sparse_general(n, complex, 4), complex, 1);
      check(kron_with_random(sparse_general(n, complex, 5), 2, complex), complex, 2);
      check(kron_with_random(sparse_positive(n, complex, 5), 3, complex), complex, 3);
    }
}

TEST(Strength, PatternsThatAreNotSymmetric) {
  auto a = sparse_general(40, false, 6);
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t j = 0; j < 40; ++j)
      if ((i + 2 * j) % 3 == 0 && i != j) a(i, j) = 0;
  check(a, false, 1);
}

TEST(Strength, AFewDenseRows) {
  for (bool const complex : {false, true}) {
    int64_t const n = 420;
    auto const r = random(n, n, complex, 21);
    Dense a(n, n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (std::abs(double(i - j)) <= 1 || i == 7 || j == 7 || i == 200 || j == 200)
          a(i, j) = i == j ? Value(i == 7 || i == 200 ? 300 : 4) : -0.6 - 0.4 * r(i, j);
    check(a, complex, 1);
  }
}

TEST(Strength, FollowsAnisotropy) {
  auto const A = apps::poisson(world(), {9, 9}, Dtype::float64, {false, false, {1, 1e-3}});
  for (bool const by_evolution : {false, true}) {
    auto const g = graph<double>(A, 1, by_evolution);
    for (int64_t i = 0; i < 81; ++i)
      for (int64_t j = 0; j < 81; ++j) EXPECT_EQ(g(i, j), Value(std::abs(double(i - j)) == 9 ? 1 : 0)) << i << " " << j;
  }
}
