// Matchings against all permutations, and permuted matrices against dense ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "asterism/la/ordering/diagonal.hpp"
#include "asterism/la/ordering/graph.hpp"
#include "asterism/la/ordering/matching.hpp"
#include "asterism/la/ordering/ordering.hpp"
#include "asterism/la/ordering/permuted.hpp"

using namespace asterism;

namespace {

/// Entries of different sizes at random places; some are zeros that are stored.
la::Csr random_csr(std::mt19937& random, Dtype dtype, std::int32_t n, std::int32_t m, double density) {
  std::uniform_real_distribution<double> real(0, 1);
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  for (std::int32_t i = 0; i < n; ++i) {
    for (std::int32_t j = 0; j < m; ++j)
      if (real(random) < density) columns.push_back(j);
    offsets.push_back(std::int64_t(columns.size()));
  }
  la::Csr a(dtype, n, m, std::int64_t(columns.size()));
  std::copy(offsets.begin(), offsets.end(), a.row_offsets().begin());
  std::copy(columns.begin(), columns.end(), a.column_indices().begin());
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (auto& v : a.entries<T>()) {
      double const size = real(random) < 0.1 ? 0 : std::pow(10, 6 * real(random) - 3), angle = 6.28 * real(random);
      v = from_complex<T>({size * std::cos(angle), size * std::sin(angle)});
    }
  });
  return a;
}

/// log |a_ij|, -infinity where there is nothing.
std::vector<double> logarithms(la::Csr const& a) {
  std::vector<double> out(std::size_t(a.rows) * std::size_t(a.cols), -INFINITY);
  with_dtype(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::int32_t i = 0; i < a.rows; ++i)
      for (auto p = a.row_offsets()[std::size_t(i)]; p < a.row_offsets()[std::size_t(i) + 1]; ++p)
        out[std::size_t(i) * std::size_t(a.cols) + std::size_t(a.column_indices()[std::size_t(p)])] =
            std::log(std::abs(to_complex(a.entries<T>()[std::size_t(p)])));
  });
  return out;
}

}  // namespace

TEST(Ordering, MatchingsAreTheBestOfAllPermutations) {
  std::mt19937 random(1);
  for (auto const dtype : {Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128})
    for (int turn = 0; turn < 150; ++turn) {
      std::int32_t const n = turn % 7;
      auto const a = random_csr(random, dtype, n, n, 0.3 + 0.1 * (turn % 5));
      auto const log = logarithms(a);
      auto const found = la::maximum_product_matching(a);
      std::vector<std::int32_t> p(static_cast<std::size_t>(n));
      std::iota(p.begin(), p.end(), 0);
      std::pair<int, double> best{0, 0}, mine{0, 0};  // pairs, logarithm of their product
      auto const value = [&](auto const& column_of) {
        std::pair<int, double> out{0, 0};
        for (std::int32_t i = 0; i < n; ++i)
          if (auto const j = column_of[std::size_t(i)]; j >= 0 && log[std::size_t(i * n + j)] > -INFINITY)
            ++out.first, out.second += log[std::size_t(i * n + j)];
        return out;
      };
      do best = std::max(best, value(p));
      while (std::next_permutation(p.begin(), p.end()));
      mine = value(found.column_of_row);
      EXPECT_EQ(found.structural_rank, best.first);
      EXPECT_EQ(mine.first, best.first);
      if (best.first == n) {
        EXPECT_NEAR(mine.second, best.second, 1e-9);
      }
      for (std::int32_t i = 0; i < n; ++i)
        for (std::int32_t j = 0; j < n; ++j) {
          auto const scaled =
              log[std::size_t(i * n + j)] + std::log(found.row_scale[std::size_t(i)]) + std::log(found.column_scale[std::size_t(j)]);
          EXPECT_LE(scaled, 1e-9);
          EXPECT_NEAR(found.column_of_row[std::size_t(i)] == j ? scaled : 0, 0, 1e-9);
        }
    }
}

TEST(Ordering, PermutedAndScaled) {
  std::mt19937 random(2);
  for (auto const dtype : {Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128})
    for (std::int32_t const n : {0, 1, 2, 17}) {
      auto const a = random_csr(random, dtype, n, n, 0.4);
      std::vector<std::int32_t> rows(static_cast<std::size_t>(n)), columns(rows.size());
      std::iota(rows.begin(), rows.end(), 0);
      columns = rows;
      std::shuffle(rows.begin(), rows.end(), random);
      std::shuffle(columns.begin(), columns.end(), random);
      std::vector<double> r(rows.size()), c(rows.size());
      for (auto* s : {&r, &c})
        for (auto& v : *s) v = std::uniform_real_distribution<double>(0.5, 2)(random);
      auto const b = la::permuted(a, rows, columns, r, c);
      auto const from = logarithms(a), to = logarithms(b);
      EXPECT_EQ(b.nnz(), a.nnz());
      for (std::size_t k = 0; k < rows.size(); ++k) {
        for (auto p = b.row_offsets()[k] + 1; p < b.row_offsets()[k + 1]; ++p)
          EXPECT_LT(b.column_indices()[std::size_t(p) - 1], b.column_indices()[std::size_t(p)]);
        for (std::size_t l = 0; l < columns.size(); ++l) {
          auto const i = std::size_t(rows[k]), j = std::size_t(columns[l]);
          auto const want = from[i * rows.size() + j] + std::log(r[i] * c[j]);
          EXPECT_TRUE(want == to[k * rows.size() + l] || std::abs(to[k * rows.size() + l] - want) < 1e-5);
        }
      }
      auto const back = la::inverse_permutation(rows);
      for (std::size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(back[std::size_t(rows[k])], std::int32_t(k));
    }
}

TEST(Ordering, OrdersArePermutations) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 60; ++turn) {
    std::int32_t const n = turn * 3;
    auto const a = random_csr(random, Dtype::float32, n, n, n ? 0.5 * (turn % 9) / n : 0);
    for (auto const& order : {la::reverse_cuthill_mckee(la::Graph(a)), la::approximate_minimum_degree(la::Graph(a))}) {
      auto sorted = order;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(sorted.size(), std::size_t(n));
      for (std::int32_t i = 0; i < n; ++i) EXPECT_EQ(sorted[std::size_t(i)], i);
    }
  }
}

TEST(Ordering, LeastDegreeEndsWhereItsWorkPassesALimit) {
  std::mt19937 random(8);
  for (int turn = 0; turn < 40; ++turn) {
    std::int32_t const n = 5 + turn;
    auto const a = random_csr(random, Dtype::float64, n, n, 3.0 / n);
    la::Graph const graph(a);
    auto const whole = la::minimum_degree_within(graph, 1e30);
    EXPECT_EQ(whole.order, la::approximate_minimum_degree(graph));
    // w columns with b rows below them: the integral of c^2 from b to w + b, column by column
    std::vector<std::set<std::int32_t>> around(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i)
      for (auto const j : graph.of(i)) around[std::size_t(i)].insert(j);
    double flops = 0;
    for (auto const i : whole.order) {
      auto const& mine = around[std::size_t(i)];
      double const b = double(mine.size());
      flops += 1.0 / 3 + b + b * b;
      for (auto const j : mine) {
        around[std::size_t(j)].insert(mine.begin(), mine.end());
        around[std::size_t(j)].erase(i);
        around[std::size_t(j)].erase(j);
      }
    }
    EXPECT_NEAR(whole.flops, flops, 1e-9 * flops);
    auto const part = la::minimum_degree_within(graph, flops / 2);
    EXPECT_GT(part.flops, flops / 2);
    EXPECT_LE(part.flops, whole.flops);
    EXPECT_TRUE(std::equal(part.order.begin(), part.order.end(), whole.order.begin()));
  }
}

TEST(Ordering, GraphsHaveEachNeighbourOnce) {
  std::mt19937 random(4);
  for (int turn = 0; turn < 40; ++turn) {
    std::int32_t const n = turn;
    auto const a = random_csr(random, Dtype::float64, n, n, 0.2);
    std::vector<std::set<std::int32_t>> expected(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) {
      auto const row = a.column_indices().subspan(std::size_t(a.row_offsets()[std::size_t(i)]),
                                                  std::size_t(a.row_offsets()[std::size_t(i) + 1] - a.row_offsets()[std::size_t(i)]));
      std::shuffle(row.begin(), row.end(), random);
      if (row.size() > 2) row[0] = row[1];  // a place may come twice
      for (auto const j : row)
        if (i != j) expected[std::size_t(i)].insert(j), expected[std::size_t(j)].insert(i);
    }
    la::Graph const g(a);
    ASSERT_EQ(g.size(), n);
    for (std::int32_t i = 0; i < n; ++i) {
      auto const found = g.of(i);
      auto const& all = expected[std::size_t(i)];
      EXPECT_EQ(std::vector<std::int32_t>(found.begin(), found.end()), std::vector<std::int32_t>(all.begin(), all.end()));
    }
  }
}

/// The dual values prove that a large one is the best.
TEST(Ordering, ScalesProveTheMatching) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 6; ++turn) {
    auto const a = random_csr(random, Dtype::float64, 400, 400, 0.01 * (turn + 1));
    auto const m = la::maximum_product_matching(a);
    for (std::size_t i = 0; i < 400; ++i)
      for (auto p = a.row_offsets()[i]; p < a.row_offsets()[i + 1]; ++p) {
        auto const j = a.column_indices()[std::size_t(p)];
        double const scaled = m.row_scale[i] * std::abs(a.entries<double>()[std::size_t(p)]) * m.column_scale[std::size_t(j)];
        if (m.structural_rank == 400) {
          EXPECT_LE(scaled, 1 + 1e-9);
        }
        if (m.column_of_row[i] == j) {
          EXPECT_NEAR(scaled, 1, 1e-9);
        }
      }
  }
}

/// Of a quadratic programme with full constraints: all rows of variables want the columns of the constraints, and searches meet the full
/// rows again and again.
TEST(Ordering, FullConstraintsAreMatchedInFewPasses) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> decades(0, 3), further(1, 4);
  std::int32_t const variables = 6000, constraints = 12, n = variables + constraints;
  for (bool const deficient : {false, true}) {
    std::vector<std::int64_t> ptr{0};
    std::vector<std::int32_t> col;
    std::vector<double> val;
    std::vector<double> b(std::size_t(variables) * constraints);
    std::vector<double> weights(variables);
    for (auto& w : weights) w = std::pow(10, decades(random));
    for (std::size_t k = 0; k < constraints; ++k)
      for (std::size_t i = 0; i < variables; ++i) b[k * variables + i] = weights[i] * (k % 3 == 0 ? 0.5 : std::pow(10, further(random)));
    for (std::int32_t i = 0; i < n; ++i) {
      auto const put = [&](std::int32_t j, double v) { col.push_back(j), val.push_back(v); };
      if (i < variables) {
        if (!deficient || i >= constraints + 1) put(i, weights[std::size_t(i)]);
        for (std::int32_t k = 0; k < constraints; ++k) put(variables + k, b[std::size_t(k * variables + i)]);
      } else {
        for (std::int32_t j = 0; j < variables; ++j) put(j, b[std::size_t((i - variables) * variables + j)]);
      }
      ptr.push_back(std::int64_t(col.size()));
    }
    la::Csr a(Dtype::float64, n, n, std::int64_t(col.size()));
    std::ranges::copy(ptr, a.row_offsets().begin());
    std::ranges::copy(col, a.column_indices().begin());
    std::ranges::copy(val, a.entries<double>().begin());
    auto const m = la::maximum_product_matching(a);
    EXPECT_EQ(m.structural_rank, deficient ? n - 1 : n);
    if (!deficient) {
      EXPECT_LT(m.searched, 40 * a.nnz());
    }
    for (std::size_t i = 0; i < std::size_t(n); ++i)
      for (auto p = ptr[i]; p < ptr[i + 1]; ++p) {
        auto const j = col[std::size_t(p)];
        double const scaled = m.row_scale[i] * val[std::size_t(p)] * m.column_scale[std::size_t(j)];
        EXPECT_LE(scaled, 1 + 1e-9);
        if (m.column_of_row[i] == j) {
          EXPECT_NEAR(scaled, 1, 1e-9);
        }
      }
  }
}

TEST(Ordering, ScaledDiagonalsAreThoseOfTheScaledMatrix) {
  std::mt19937 random(6);
  for (auto const dtype : {Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128}) {
    auto const a = random_csr(random, dtype, 60, 60, 0.2);
    std::vector<double> r(60), c(60);
    for (auto& v : r) v = std::exp2(int(random() % 9) - 4);
    for (auto& v : c) v = std::exp2(int(random() % 9) - 4);
    std::vector<std::int32_t> rows(60), columns(60), column_of_row(60);
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), random);
    columns = rows;
    std::shuffle(columns.begin(), columns.end(), random);
    for (std::size_t k = 0; k < 60; ++k) column_of_row[std::size_t(rows[k])] = columns[k];
    auto const made = la::look_at_diagonal(la::permuted(a, rows, columns, r, c));
    auto const seen = la::look_at_diagonal(a, r, c, column_of_row);
    EXPECT_EQ(made.zeros, seen.zeros);
    EXPECT_EQ(made.weak, seen.weak);
    EXPECT_GT(seen.weak, seen.zeros);
  }
}
