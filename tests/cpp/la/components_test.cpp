#include "asterism/la/components.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "asterism/base/reproducible_sum.hpp"
#include "asterism/la/near_null_space.hpp"
#include "asterism/la/union_find.hpp"
#include "asterism/la/vectors/row_parts.hpp"
#include "harness/dense.hpp"
#include "harness/gpu.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::la;
using namespace asterism::test;

namespace {

using i64 = std::int64_t;
using Edges = std::vector<std::pair<i64, i64>>;

/// Each rank has a part of the rows, some have none.
Layout shares(comm::Communicator const& c, i64 n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<i64> cuts = {0, n};
  for (int r = 1; r < c.size(); ++r) cuts.push_back(random() % 3 == 0 ? 0 : i64(random() % std::uint64_t(n + 1)));
  std::sort(cuts.begin(), cuts.end());
  return Layout::from_offsets(c, cuts);
}

/// Ones at the edges and, if both, at those turned round; zeros that are stored at `zeros`; twos on the diagonal.
template <class T>
Matrix matrix_of_edges(Layout const& rows, Edges const& edges, bool both, Edges const& zeros = {}) {
  std::vector<i64> i, j;
  std::vector<T> v;
  auto const add = [&](i64 a, i64 b, T x) {
    if (rows.owner(a) == rows.comm().rank()) i.push_back(a), j.push_back(b), v.push_back(x);
  };
  for (i64 a = 0; a < rows.global_size(); ++a)
    if (a % 3 != 0) add(a, a, T(2));
  for (auto const& [a, b] : edges) {
    add(a, b, T(1));
    if (both && a != b) add(b, a, T(1));
  }
  for (auto const& [a, b] : zeros) add(a, b, T(0)), add(b, a, T(0));
  return Matrix::from_coo<i64>(rows, rows, dtype_v<T>, i, j, v.data());
}

/// Of each row the first one of its component: by spreading until nothing changes.
std::vector<i64> by_spreading(i64 n, Edges const& edges) {
  std::vector<i64> first(static_cast<std::size_t>(n));
  std::iota(first.begin(), first.end(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto const& [a, b] : edges) {
      auto &x = first[std::size_t(a)], &y = first[std::size_t(b)];
      if (x != y) x = y = std::min(x, y), changed = true;
    }
  }
  return first;
}

void expect_components(Matrix const& A, std::vector<i64> const& want) {
  Components const found(A);
  auto const begin = A.range().begin();
  auto all = want;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(found.count(), i64(all.size()));
  ASSERT_EQ(i64(found.of_rows().size()), A.range().local_size());
  auto const here = found.first_rows().size();
  for (std::size_t i = 0; i < found.of_rows().size(); ++i) {
    auto const c = std::size_t(found.of_rows()[i]);
    ASSERT_LT(c, here);
    EXPECT_EQ(found.first_rows()[c], want[std::size_t(begin) + i]) << "row " << begin + i64(i);
  }
  // rows of each component and the largest of them, over all ranks
  std::vector<double> rows(2 * here, 0), largest(here, 0);
  for (std::size_t i = 0; i < found.of_rows().size(); ++i) {
    auto const c = std::size_t(found.of_rows()[i]);
    rows[2 * c] += 1;
    rows[2 * c + 1] += double(begin) + double(i);
    largest[c] = double(begin) + double(i);
  }
  found.sum(rows, 2);
  found.max(largest);
  for (std::size_t c = 0; c < here; ++c) {
    double count = 0, sum = 0, most = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      if (want[i] == found.first_rows()[c]) count += 1, sum += double(i), most = double(i);
    EXPECT_EQ(rows[2 * c], count);
    EXPECT_EQ(rows[2 * c + 1], sum);
    EXPECT_EQ(largest[c], most);
  }
  std::vector<char> odd(here);
  for (std::size_t c = 0; c < here; ++c) odd[c] = found.first_rows()[c] % 2 == 1;
  std::erase_if(all, [](i64 f) { return f % 2 == 0; });
  EXPECT_EQ(found.chosen(odd), all);
}

}  // namespace

TEST(UnionFind, NamesSetsByTheirLeastMembers) {
  UnionFind sets(9);
  EXPECT_EQ(sets.join(7, 3), 3);
  EXPECT_EQ(sets.join(8, 5), 5);
  EXPECT_EQ(sets.join(8, 7), 3);
  EXPECT_EQ(sets.join(3, 8), 3);
  std::vector<std::int32_t> found;
  for (std::int32_t i = 0; i < 9; ++i) found.push_back(sets.find(i));
  EXPECT_EQ(found, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 3, 6, 3, 3}));
}

TEST(Components, OfRandomGraphs) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    i64 const n = seed % 10 == 0 ? i64(seed / 10) : 5 + i64(random() % 60);
    auto const rows = shares(world(), n, seed);
    Edges edges, zeros;
    for (i64 e = 0; n > 0 && e < n * i64(seed % 4) / 3; ++e)
      edges.emplace_back(i64(random() % std::uint64_t(n)), i64(random() % std::uint64_t(n)));
    for (i64 e = 0; n > 0 && e < 5; ++e) {
      std::pair const z(i64(random() % std::uint64_t(n)), i64(random() % std::uint64_t(n)));
      auto const turned = std::pair(z.second, z.first);
      if (std::find(edges.begin(), edges.end(), z) == edges.end() && std::find(edges.begin(), edges.end(), turned) == edges.end())
        zeros.push_back(z);
    }
    auto const want = by_spreading(n, edges);
    bool const both = seed % 2 == 0;
    expect_components(matrix_of_edges<double>(rows, edges, both, zeros), want);
    if (seed % 3 == 0) expect_components(matrix_of_edges<Complex<float>>(rows, edges, both, zeros), want);
  }
}

TEST(Components, ThatAreOneByWayOfOtherRanks) {
  for (i64 const stride : {1, 5, 7, 30}) {  // rows that are far apart are coupled: each rank has many pieces of each chain
    i64 const n = 60;
    Edges edges;
    for (i64 i = 0; i + stride < n; ++i) edges.emplace_back(i, i + stride);
    expect_components(matrix_of_edges<double>(Layout::even(world(), n), edges, true), by_spreading(n, edges));
  }
}

TEST(Components, OfAMatrixThatHoldsHalf) {
  Edges edges;
  for (i64 i = 0; i + 2 < 40; ++i) edges.emplace_back(i, i + 2);
  auto const rows = Layout::even(world(), 40);
  auto const half = matrix_of_edges<double>(rows, edges, true).symmetric(SymmetricHalf::Kind::symmetric);
  expect_components(half, by_spreading(40, edges));
  EXPECT_TRUE(half.half());
}

TEST(Components, MarksSpreadOverEach) {
  i64 const n = 50;
  auto const rows = Layout::even(world(), n);
  Edges edges;
  for (i64 i = 0; i + 1 < n; ++i)
    if (i != 19) edges.emplace_back(i, i + 1);  // 0 ... 19, and the others
  auto const A = matrix_of_edges<double>(rows, edges, true);
  auto const marks_at = [&](std::vector<std::pair<i64, std::uint64_t>> const& at) {
    std::vector<std::uint64_t> marks(std::size_t(rows.local_size()), 0);
    for (auto const& [row, mark] : at)
      if (rows.owner(row) == world().rank()) marks[std::size_t(row - rows.begin())] |= mark;
    return marks;
  };
  EXPECT_TRUE(marks_spread(A, marks_at({{7, 3}, {30, 3}}), 3));
  EXPECT_TRUE(marks_spread(A, marks_at({{0, 1}, {19, 2}, {20, 2}, {49, 1}}), 3));
  EXPECT_FALSE(marks_spread(A, marks_at({{7, 3}}), 3));
  EXPECT_FALSE(marks_spread(A, marks_at({{7, 3}, {30, 1}}), 3));
  EXPECT_FALSE(marks_spread(A, marks_at({}), 1));
}

TEST(RowParts, SumsAndUpdates) {
  for (bool const same_bits : {false, true})
    for (auto const dtype : all_dtypes)
      for (i64 const n : {0, 3, 200, 20000})
        for (i64 const parts : {1, 3, 64})
          for (bool const scattered : {false, true}) {
            SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(n) + " " + std::to_string(parts));
            if (same_bits && n > 1000 && parts == 64 && sanitized) continue;
            auto const rows = shares(world(), n, unsigned(n));
            RowParts const all{parts, Array(std::size_t(rows.local_size()) * sizeof(std::int32_t))};
            auto* const of = all.of.as<std::int32_t>();
            for (i64 i = 0; i < rows.local_size(); ++i) {
              auto const row = rows.begin() + i;
              of[i] = std::int32_t(scattered ? row * 7919 % (parts + 1) : row * (parts + 1) / n) - 1;
            }
            Vector x(rows, dtype), z(rows, dtype), y(rows, dtype);
            fill_hashed(x, 1), fill_hashed(z, 2), fill_hashed(y, 3);
            set_reproducible(same_bits);
            Vector const both[] = {x, z};
            auto const found = part_dots(all, both, y);
            set_reproducible(false);
            std::vector<Scalar::Value> factors;
            for (i64 p = 0; p < parts; ++p) factors.emplace_back(0.5 + double(p), is_complex(dtype) ? 0.25 : 0.0);
            auto updated = y.like(), want_updated = y.like();
            copy(y, updated), copy(y, want_updated);
            part_axpy(all, Scalar(factors), x, updated);
            for (i64 p = 0; p < parts; ++p) {
              auto masked = x.like(), masked_z = x.like();
              copy(x, masked), copy(z, masked_z);
              with_dtype(dtype, [&](auto tag) {
                using T = typename decltype(tag)::type;
                for (i64 i = 0; i < rows.local_size(); ++i)
                  if (of[i] != p) masked.host<T>()[std::size_t(i)] = masked_z.host<T>()[std::size_t(i)] = T(0);
              });
              ASSERT_EQ(found[0].width(), parts);
              EXPECT_LE(std::abs(found[0].value(p) - dot(masked, y).value()), tolerance(dtype) * double(n + 1));
              EXPECT_LE(std::abs(found[1].value(p) - dot(masked_z, y).value()), tolerance(dtype) * double(n + 1));
              axpy(factors[std::size_t(p)], masked, want_updated);
            }
            axpy(-1.0, updated, want_updated);
            EXPECT_LE(norm(want_updated).real(), 64 * tolerance(dtype) * double(n + 1));
          }
}
