// Pairwise aggregation, against a greedy matching in dense matrices.
#include "asterism/precond/amg/pairwise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "asterism/apps/gallery.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using namespace asterism::precond::amg;
using std::int64_t;

namespace {

constexpr double threshold = 0.25;
using Groups = std::vector<std::vector<int64_t>>;

/// The strongest pair first; nodes that stay out are in no group.
Groups matched(Dense const& w, std::vector<bool> const& out) {
  auto const n = w.rows();
  std::vector<double> most(std::size_t(n), 0);
  struct Edge {
    double weight;
    int64_t i, j;
  };
  std::vector<Edge> edges;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      if (j == i) continue;
      most[std::size_t(i)] = std::max(most[std::size_t(i)], w(i, j).real());
      if (j > i) edges.push_back({w(i, j).real(), i, j});
    }
  std::sort(edges.begin(), edges.end(), [](auto const& a, auto const& b) { return a.weight > b.weight; });
  std::vector<bool> taken = out;
  Groups groups;
  for (auto const& [weight, i, j] : edges) {
    if (weight <= 0 || weight < threshold * std::min(most[std::size_t(i)], most[std::size_t(j)])) continue;
    if (taken[std::size_t(i)] || taken[std::size_t(j)]) continue;
    taken[std::size_t(i)] = taken[std::size_t(j)] = true;
    groups.push_back({i, j});
  }
  for (int64_t i = 0; i < n; ++i)
    if (!taken[std::size_t(i)]) groups.push_back({i});
  return groups;
}

Groups twice_matched(Dense const& w, std::vector<bool> const& out) {
  auto const pairs = matched(w, out);
  Dense sums{int64_t(pairs.size()), int64_t(pairs.size())};
  for (std::size_t p = 0; p < pairs.size(); ++p)
    for (std::size_t q = 0; q < pairs.size(); ++q)
      for (auto const i : pairs[p])
        for (auto const j : pairs[q]) sums(int64_t(p), int64_t(q)) += w(i, j);
  Groups groups;
  for (auto const& g : matched(sums, std::vector<bool>(pairs.size(), false))) {
    groups.emplace_back();
    for (auto const p : g) groups.back().insert(groups.back().end(), pairs[std::size_t(p)].begin(), pairs[std::size_t(p)].end());
    std::sort(groups.back().begin(), groups.back().end());
  }
  return groups;
}

struct Result {
  Groups groups;  // on every rank
  Dense P;
};
template <class T>
Result result(la::Matrix const& A, int64_t bs) {
  Progress progress("test", 0);
  comm::Cancellation cancel(world(), progress);
  auto const rows = rows_of<T>(A);
  auto const g = strong_couplings(rows, A.range(), bs, 0, cancel);
  auto const a = pairwise_aggregates(rows, g, bs, threshold, cancel);
  Buffer<T> B(A.range().local_size() * bs, T(0));
  for (int64_t i = 0; i < A.range().local_size(); ++i) B[i * bs + i % bs] = T(1);
  auto const P0 = tentative_prolongation(g, a, bs, bs, B.data(), cancel);
  auto offsets = a.coarse.offsets();
  for (auto& o : offsets) o *= bs;
  auto const coarse = la::Layout::from_offsets(world(), offsets);
  Result out;
  out.P = to_dense(matrix_of(unsmoothed_prolongation(g, a, P0, bs, coarse, cancel), A.range(), coarse));
  for (int64_t c = 0; c < out.P.cols(); c += bs) {
    out.groups.emplace_back();
    for (int64_t i = 0; i < out.P.rows(); i += bs)
      if (out.P(i, c) != Value(0)) out.groups.back().push_back(i / bs);
  }
  return out;
}

std::set<std::vector<int64_t>> as_set(Groups const& g) { return {g.begin(), g.end()}; }

/// Of random weights, no two alike.
Dense random_couplings(int64_t n, bool complex, unsigned seed) {
  auto const r = random(n, n, complex, seed);
  Dense a(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (auto const d = std::abs(double(i - j)); d == 1 || d == 2 || d == 9) a(i, j) = r(i, j) - 0.4;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::abs(a(i, j));
    a(i, i) = i % 13 == 7 ? 5.5 * sum + 1 : sum + 0.1;
  }
  return a;
}

}  // namespace

TEST(Pairwise, GroupsAreThoseOfTheGreedyMatching) {
  for (bool const complex : {false, true})
    for (int64_t const n : {1, 2, 3, 40, 91}) {
      auto const a = random_couplings(n, complex, unsigned(n));
      auto const layout = uneven(world(), n);
      auto const A = to_sparse(a, layout, layout, complex ? Dtype::complex128 : Dtype::float64);
      Dense w(n, n);
      std::vector<bool> out;
      for (int64_t i = 0; i < n; ++i) {
        double others = 0;
        for (int64_t j = 0; j < n; ++j) {
          if (j == i) continue;
          others += std::abs(a(i, j));
          w(i, j) = -0.5 * (a(i, j) + a(j, i)).real();  // the diagonal is real and positive
        }
        out.push_back(std::abs(a(i, i)) >= 5 * others);
      }
      auto const got = complex ? result<Complex<double>>(A, 1) : result<double>(A, 1);
      EXPECT_EQ(as_set(got.groups), as_set(twice_matched(w, out))) << n << " " << complex;
      EXPECT_LT(norm(adjoint(got.P) * got.P - Dense::identity(got.P.cols())), 1e-13);
    }
}

TEST(Pairwise, NodesOfElasticityGoTogether) {
  auto const A = apps::elasticity(world(), {4, 3, 2}, 1, 0.3, Dtype::float64);
  auto const got = result<double>(A, 3);
  std::set<int64_t> all;
  for (auto const& g : got.groups) {
    EXPECT_GE(g.size(), 1u);
    EXPECT_LE(g.size(), 4u);
    for (auto const i : g) EXPECT_TRUE(all.insert(i).second) << i;
  }
  EXPECT_EQ(int64_t(all.size()), A.global_rows() / 3);
  EXPECT_LT(int64_t(got.groups.size()), A.global_rows() / 3 / 3 + 1);
  EXPECT_LT(norm(adjoint(got.P) * got.P - Dense::identity(got.P.cols())), 1e-13);
}

TEST(Pairwise, FollowsAnisotropy) {
  auto const A = apps::poisson(world(), {12, 12}, Dtype::float64, {false, false, {1, 1e-3}});
  for (auto const& g : result<double>(A, 1).groups) {
    EXPECT_LE(g.size(), 4u);
    for (auto const i : g) EXPECT_EQ(i % 12, g[0] % 12);
  }
}
