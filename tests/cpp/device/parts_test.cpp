// Parts of an array, each with an order of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "asterism/device/array.hpp"

using namespace asterism::device;

TEST(Parts, DisjointOnesDoNotWaitForEachOther) {
  std::atomic<bool> go{false};
  auto const queue = Queue::thread(), other = Queue::thread();
  Array a(24);
  a.divide({16, 0, 8});
  std::fill_n(a.as<double>(), 3, 0.0);
  auto const owned = a.view(0, 16), ghosts = a.view(16, 8);
  submit(
      queue,
      [&go](Executor&, double* x) {
        while (!go) std::this_thread::yield();
        x[0] = x[1] = 1;
      },
      write<double>(owned));
  submit(other, [](Executor&, double* x) { *x = 2; }, write<double>(ghosts));
  ghosts.settle(Access::read, "test");  // would wait for ever if one part waited for the other
  EXPECT_EQ(a.as<double>()[2], 2);
  Array sum(8);
  submit(other, [](Executor&, double const* x, double* s) { *s = x[0] + x[1] + x[2]; }, read<double>(a), write<double>(sum));
  auto const early = other.record();
  EXPECT_FALSE(early.done());  // all of it: after both
  go = true;
  sum.settle(Access::read, "test");
  EXPECT_EQ(*sum.as<double>(), 4);
}

TEST(Parts, ShuffleKeepsWhatTheirIntentsOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    constexpr std::size_t parts = 4;
    std::vector<std::uint64_t> expected(parts, 1);
    auto const queue = seed % 2 ? Queue::shuffle(seed) : Queue::strict();
    Array a(8 * parts);
    std::fill_n(a.as<std::uint64_t>(), parts, std::uint64_t(1));
    a.divide(std::vector<std::size_t>(parts, 8));
    for (int t = 0; t < 40; ++t) {
      // from any range to any other, which may overlap, span parts or be all of it
      auto const range = [&] {
        auto const first = random() % parts;
        return std::pair(first, 1 + random() % (parts - first));
      };
      auto const [from, m] = range();
      auto const [to, n] = range();
      submit(
          queue,
          [m = m, n = n](Executor&, std::uint64_t const* x, std::uint64_t* z) {
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i < m; ++i) sum = sum * 31 + x[i];
            for (std::size_t i = 0; i < n; ++i) z[i] = z[i] * 6364136223846793005ull + sum + i;
          },
          read<std::uint64_t>(a.view(8 * from, 8 * m)), update<std::uint64_t>(a.view(8 * to, 8 * n)));
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < m; ++i) sum = sum * 31 + expected[from + i];
      for (std::size_t i = 0; i < n; ++i) expected[to + i] = expected[to + i] * 6364136223846793005ull + sum + i;
    }
    a.settle(Access::read, "test");
    for (std::size_t i = 0; i < parts; ++i) ASSERT_EQ(a.as<std::uint64_t>()[i], expected[i]) << "seed " << seed;
  }
}

TEST(Parts, OneThatIsLeftOutIsSeen) {
  // the planted bug: of two parts that a task reads it names one
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 50 && !seen; ++seed) {
    Array a(16), sum(8);
    std::fill_n(a.as<double>(), 2, 0.0);
    a.divide({8, 8});
    auto const queue = Queue::shuffle(seed);
    submit(queue, [](Executor&, double* x) { *x = 1; }, write<double>(a.view(0, 8)));
    submit(queue, [](Executor&, double* x) { *x = 2; }, write<double>(a.view(8, 8)));
    submit(queue, [](Executor&, double const* x, double* s) { *s = x[0] + x[1]; }, read<double>(a.view(0, 8)), write<double>(sum));
    queue.wait("test");
    seen = *sum.as<double>() != 3;
  }
  EXPECT_TRUE(seen);
}

TEST(Parts, OnlyTheNeededOneIsCopied) {
  auto const queue = Queue::strict();
  Array a(64);
  std::fill_n(a.as<double>(), 8, 1.0);
  a.divide({48, 16});
  reset_copy_counts();
  submit(queue, [](Executor&, double* x) { x[0] = x[1] = 5; }, update<double>(a.view(48, 16)));
  a.settle(Access::read, "test");
  EXPECT_EQ(a.as<double>()[0], 1);
  EXPECT_EQ(a.as<double>()[6], 5);
  std::int64_t there = 0, back = 0;
  for (auto const& c : copy_counts()) there += c.to_apart_bytes, back += c.to_host_bytes;
  EXPECT_EQ(there, 16);
  EXPECT_EQ(back, 16);
}
