#include "asterism/la/assembly/builder.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "asterism/la/assembly/vector_assembly.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::la;

namespace {

using Indices = std::vector<std::int64_t>;

/// A call of a rank: blocks of small integers, so that sums are exact.
struct Call {
  int flushes = 0;
  bool insert = false;
  std::int64_t count = 1, m = 1, n = 1;
  Indices i, j;
  std::vector<int> v;
};

std::vector<Call> random_calls(std::mt19937& random, std::int64_t rows, std::int64_t columns, int calls) {
  std::vector<Call> out;
  auto const index = [&](std::int64_t size) { return random() % 9 == 0 ? -1 : std::int64_t(random() % std::uint64_t(size)); };
  for (int k = 0; k < calls; ++k) {
    Call c{k / 5, k % 5 > 2, std::int64_t(random() % 4), 1 + std::int64_t(random() % 3), 1 + std::int64_t(random() % 4), {}, {}, {}};
    for (std::int64_t e = 0; e < c.count * c.m; ++e) c.i.push_back(index(rows));
    for (std::int64_t e = 0; e < c.count * c.n; ++e) c.j.push_back(index(columns));
    for (std::int64_t e = 0; e < c.count * c.m * c.n; ++e) c.v.push_back(int(random() % 9) - 4);
    out.push_back(c);
  }
  return out;
}

template <class T>
void give(Builder& builder, std::vector<Call> const& calls, T factor) {
  int flushes = 0;
  for (auto const& c : calls) {
    for (; flushes < c.flushes; ++flushes) builder.flush();
    std::vector<T> v;
    for (auto const x : c.v) v.push_back(factor * T(real_t<T>(x)));
    if (c.insert) builder.insert(c.count, c.i, c.j, v.data());
    else builder.add(c.count, c.i, c.j, v.data());
  }
}

template <class T>
void check(std::int64_t rows, std::int64_t columns, int calls) {
  auto const& comm = world();
  std::vector<std::vector<Call>> of_ranks;
  for (int r = 0; r < comm.size(); ++r) {
    std::mt19937 random(unsigned(r + 10 * rows));
    of_ranks.push_back(random_calls(random, rows, columns, calls));
  }
  std::map<std::pair<std::int64_t, std::int64_t>, int> want;
  for (int turn = 0; turn < 2 * calls; ++turn)
    for (auto const& of_rank : of_ranks)
      for (auto const& c : of_rank) {
        if (2 * c.flushes + (c.insert ? 1 : 0) != turn) continue;
        for (std::int64_t e = 0; e < std::int64_t(c.v.size()); ++e) {
          auto const block = e / c.n / c.m;
          std::pair const at(c.i[std::size_t(e / c.n)], c.j[std::size_t(block * c.n + e % c.n)]);
          if (at.first >= 0 && at.second >= 0) want[at] = c.insert ? c.v[std::size_t(e)] : want[at] + c.v[std::size_t(e)];
        }
      }
  auto const row_layout = Layout::even(comm, rows);
  Builder builder(row_layout, Layout::even(comm, columns), dtype_v<T>);
  std::optional<Matrix> before;
  for (int round = 1; round <= 3; ++round) {
    give(builder, of_ranks[std::size_t(comm.rank())], T(real_t<T>(round)));
    auto const A = builder.matrix();
    ASSERT_EQ(A.nnz(), std::int64_t(want.size()));
    EXPECT_EQ(builder.entries(), 0);
    auto const got = A.to_rows();
    for (std::int64_t r = 0; r < row_layout.local_size(); ++r)
      for (auto p = got.offsets[std::size_t(r)]; p < got.offsets[std::size_t(r) + 1]; ++p) {
        auto const found = want.find({row_layout.begin() + r, got.columns[std::size_t(p)]});
        ASSERT_NE(found, want.end());
        EXPECT_EQ(to_complex(got.values.as<T>()[p]), std::complex<double>(round * found->second));
      }
    if (before && comm.max(A.local_nnz()) > 0) EXPECT_TRUE(comm.size() > 1 || A.shares_pattern_with(*before));
    before = A;
  }
}

template <class F>
std::string error_of(F const& f) {
  try {
    f();
  } catch (Error const& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(Builder, TakesCallsInTheOrderOfTurnsRanksAndPositions) {
  for (auto const [rows, columns] : {std::pair(13, 13), {1, 1}, {30, 7}, {3, 50}})
    for (int const calls : {0, 1, 13}) {
      check<float>(rows, columns, calls);
      check<double>(rows, columns, calls);
      check<Complex<float>>(rows, columns, calls);
      check<Complex<double>>(rows, columns, calls);
    }
}

TEST(Builder, RefusesWhatCannotBeAndKeepsTheRest) {
  auto const& comm = world();
  auto const layout = Layout::even(comm, 4 * comm.size());
  Builder builder(layout, layout, Dtype::float64, Remote::refuse);
  double const v[] = {1, 2, 3, 4};
  Indices const here{layout.begin(), layout.begin() + 1}, beyond{layout.begin(), layout.global_size()};
  builder.add(1, here, here, v);
  EXPECT_NE(error_of([&] { builder.add(1, beyond, here, v); }).find("Builder.add: entry 2, ("), std::string::npos);
  EXPECT_NE(error_of([&] { builder.insert(1, here, beyond, v); }).find("Builder.insert: entry 1, ("), std::string::npos);
  if (comm.size() > 1) {
    Indices const remote{layout.begin(), (layout.begin() + 4) % layout.global_size()};
    EXPECT_NE(error_of([&] { builder.add(1, remote, here, v); }).find("in a row of rank"), std::string::npos);
  }
  builder.insert(1, Indices{here[0]}, Indices{here[0]}, v);
  EXPECT_NE(error_of([&] { builder.add(1, here, here, v); }).find("flush()"), std::string::npos);
  auto const A = builder.matrix();
  EXPECT_EQ(A.nnz(), 4 * comm.size());
  auto const rows = A.to_rows();
  EXPECT_EQ(rows.values.as<double>()[0], 1);
  EXPECT_EQ(rows.values.as<double>()[3], 4);
}

TEST(VectorAssembly, SumsOrTakesTheLastInTheOrderOfRanks) {
  auto const& comm = world();
  std::int64_t const n = 11;
  auto const layout = Layout::even(comm, n);
  std::vector<double> sums(std::size_t(n), 0), last(std::size_t(n), 0);
  Indices i;
  std::vector<double> v;
  for (int r = 0; r < comm.size(); ++r)
    for (std::int64_t e = 0; e < 40; ++e) {
      auto const at = (e * e + 3 * r) % (n + 2) - 1;  // negative: ignored
      if (at >= n) continue;
      double const x = double(e - 3 * r);
      if (at >= 0) sums[std::size_t(at)] += x, last[std::size_t(at)] = x;
      if (r == comm.rank()) i.push_back(at), v.push_back(x);
    }
  for (bool const replace : {false, true}) {
    VectorAssembly const plan(layout, i, replace);
    auto const& want = replace ? last : sums;
    for (auto const& queue : {Queue::host(), Queue::thread(), Queue::shuffle(1)}) {
      Vector values(plan.entries(), Dtype::float64, 1, queue);
      std::copy(v.begin(), v.end(), values.host<double>().begin());
      auto const b = plan.vector(values);
      for (std::int64_t k = 0; k < b.local_size(); ++k)
        EXPECT_EQ(b.host<double>()[std::size_t(k)], want[std::size_t(layout.begin() + k)]) << queue.kind();
    }
  }
  EXPECT_NE(error_of([&] { VectorAssembly(layout, Indices{comm.rank() == 0 ? n : 0}); }).find("entry 0 is at 11, outside"),
            std::string::npos);
}
