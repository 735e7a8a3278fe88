#include <gtest/gtest.h>

#include <random>

#include "asterism/device/scalar.hpp"

using namespace asterism::device;

TEST(Queue, InlineRunsAtOnce) {
  Array a(8);
  submit(Context::host(), [](Queue&, double* x) { *x = 3; }, write<double>(a));
  EXPECT_EQ(*a.as<double>(), 3);
}

TEST(Queue, ShuffleKeepsWhatTheIntentsOrder) {
  // random task graphs: every task reads some arrays and updates one; the result is the serial one
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    constexpr int arrays = 6, tasks = 40;
    std::vector<std::uint64_t> expected(arrays, 1);
    std::vector<Array> a;
    for (int i = 0; i < arrays; ++i) {
      a.emplace_back(8);
      *a.back().as<std::uint64_t>() = 1;
    }
    auto const ctx = Context::shuffle(seed);
    for (int t = 0; t < tasks; ++t) {
      int const from = int(random() % arrays), other = int(random() % arrays), to = int(random() % arrays);
      submit(
          ctx,
          [](Queue&, std::uint64_t const* x, std::uint64_t const* y, std::uint64_t* z) { *z = *z * 6364136223846793005ull + *x * 3 + *y; },
          read<std::uint64_t>(a[std::size_t(from)]), read<std::uint64_t>(a[std::size_t(other)]), update<std::uint64_t>(a[std::size_t(to)]));
      auto& z = expected[std::size_t(to)];
      z = z * 6364136223846793005ull + expected[std::size_t(from)] * 3 + expected[std::size_t(other)];
    }
    ctx.wait("test");
    for (std::size_t i = 0; i < arrays; ++i) ASSERT_EQ(*a[i].as<std::uint64_t>(), expected[i]) << "seed " << seed;
  }
}

TEST(Queue, AMissingIntentIsSeen) {
  // the planted bug: the reader does not declare what it reads; some order must give another answer
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 50 && !seen; ++seed) {
    Array a(8), b(8);
    *a.as<double>() = 0;
    auto const ctx = Context::shuffle(seed);
    submit(ctx, [](Queue&, double* x) { *x = 1; }, write<double>(a));
    submit(ctx, [p = a.as<double>()](Queue&, double* y) { *y = *p; }, write<double>(b));
    ctx.wait("test");
    seen = *b.as<double>() != 1;
  }
  EXPECT_TRUE(seen);
}

TEST(Queue, ErrorsOfQueuedWorkComeAtTheWait) {
  auto const ctx = Context::shuffle(1);
  Array a(8);
  submit(ctx, [](Queue&, double*) { throw std::runtime_error("inside"); }, write<double>(a));
  EXPECT_THROW(ctx.wait("test"), std::runtime_error);
  EXPECT_NO_THROW(ctx.wait("test"));
}

TEST(Scalar, ExpressionsOnPendingResults) {
  auto const ctx = Context::shuffle(3);
  Array r(2 * sizeof(Scalar::Value));
  submit(ctx, [](Queue&, Scalar::Value* v) { v[0] = 6, v[1] = 2; }, write<Scalar::Value>(r));
  auto const x = Scalar::pending(ctx, r, 0, 1), y = Scalar::pending(ctx, r, 1, 1);
  auto const z = sqrt(x / y + 1.0);
  EXPECT_FALSE(z.known());
  Array out(sizeof(double));
  submit(ctx, [](Queue&, double const* a, double* o) { *o = a[0]; }, value<double>(z, 1), write<double>(out));
  ctx.wait("test");
  EXPECT_DOUBLE_EQ(*out.as<double>(), 2);
  EXPECT_DOUBLE_EQ(z.real(), 2);
}

TEST(Scalar, WidthsAndSelect) {
  Scalar const k(std::vector<Scalar::Value>{1.0, 0.0, 3.0});
  auto const s = select(k, 1.0 / k, 0.0);
  EXPECT_DOUBLE_EQ(s.real(0), 1);
  EXPECT_DOUBLE_EQ(s.real(1), 0);  // 1/0 is not chosen
  EXPECT_DOUBLE_EQ(s.real(2), 1.0 / 3);
  EXPECT_THROW(k + Scalar(std::vector<Scalar::Value>{1.0, 2.0}), std::exception);
}

TEST(Parallel, SumsDoNotDependOnThreads) {
  std::vector<double> x(100'003);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i)) * 1e3;
  double results[3];
  for (int t = 1; t <= 3; ++t) {
    host::set_team_size(t);
    Queue q;
    parallel_sum_blocks(q, std::int64_t(x.size()), 1, &results[t - 1], [&](std::int64_t b, std::int64_t e, double* acc) {
      for (auto i = b; i < e; ++i) acc[0] += x[std::size_t(i)];
    });
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  std::vector<int> hits(10'000, 0);
  Queue q;
  parallel_for(q, 10'000, [&](std::int64_t i) { ++hits[std::size_t(i)]; });
  for (int const h : hits) ASSERT_EQ(h, 1);
  EXPECT_THROW(parallel_ranges(q, 10'000, [](std::int64_t, std::int64_t) { throw std::runtime_error("x"); }), std::runtime_error);
}

TEST(Memory, FreedBlocksComeBackWithinTheScopeOnly) {
  constexpr std::size_t large = std::size_t(64) << 20;
  void* first = nullptr;
  {
    host::KeepFreed const keep;
    {
      Array const a(large);
      first = a.raw();
      a.as<char>()[large - 1] = 1;
    }
    {
      Array const smaller(large / 2);  // the rest of the block is given back to the system, its addresses stay
      EXPECT_EQ(smaller.raw(), first);
      Array const another(large);
      EXPECT_NE(another.raw(), first);
    }
    Array const again(large);
    again.as<char>()[large - 1] = 2;
    EXPECT_EQ(again.as<char>()[large - 1], 2);
  }
  Array const small(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.raw()) % 64, 0u);
}
