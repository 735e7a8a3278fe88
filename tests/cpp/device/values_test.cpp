// What tasks of queues work on: scalars that are pending, sums of teams of threads, memory that is kept and counted.
#include <gtest/gtest.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/condition.hpp"
#include "asterism/device/race_check.hpp"

using namespace asterism::device;

TEST(Scalar, ConditionsAndStoredValues) {
  for (auto const& queue : {Queue::host(), Queue::shuffle(5), Queue::thread(), Queue::strict()}) {
    Array r(2 * sizeof(Scalar::Value)), out(sizeof(double));
    submit(queue, [](Executor&, Scalar::Value* v) { v[0] = 1, v[1] = 3; }, write<Scalar::Value>(r));
    auto const x = Scalar::pending(queue, r, 0, 1), y = Scalar::pending(queue, r, 1, 1), both = Scalar::pending(queue, r, 0, 2);
    auto carried = x;
    for (int i = 0; i < 10'000; ++i) carried = (carried + y).stored(queue);  // an expression of this depth would end the stack
    EXPECT_EQ(carried.real(), 30'001);
    EXPECT_EQ(any(less(both, 2.0)).real(), 1);
    EXPECT_EQ(any(less_equal(both, 0.5)).real(), 0);
    EXPECT_EQ((min(x, y) + 10.0 * max(x, y)).real(), 31);
    EXPECT_EQ(equal(x * 3.0, y).real(), 1);
    for (bool const wanted : {true, false})
      for (auto const& value : {less(x, y), less(y, x)}) {
        submit(queue, [](Executor&, double* v) { *v = 0; }, write<double>(out));
        if (Condition const c{queue, value, wanted}; c) submit(queue, [](Executor&, double* v) { *v = 1; }, write<double>(out));
        submit(queue, [](Executor&, double* v) { *v += 4; }, update<double>(out));  // not under it
        out.settle(Access::read, "test");
        EXPECT_EQ(*out.as<double>(), 4 + double((value.real() != 0) == wanted));
      }
  }
}

TEST(Scalar, ExpressionsOnPendingResults) {
  auto const queue = Queue::shuffle(3);
  Array r(2 * sizeof(Scalar::Value));
  submit(queue, [](Executor&, Scalar::Value* v) { v[0] = 6, v[1] = 2; }, write<Scalar::Value>(r));
  auto const x = Scalar::pending(queue, r, 0, 1), y = Scalar::pending(queue, r, 1, 1);
  auto const z = sqrt(x / y + 1.0);
  EXPECT_FALSE(z.known());
  Array out(sizeof(double));
  submit(queue, [](Executor&, Numbers<double> a, double* o) { *o = a.here()[0]; }, value<double>(z, 1), write<double>(out));
  queue.wait("test");
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
    Executor executor;
    parallel_sum_blocks(executor, std::int64_t(x.size()), 1, &results[t - 1],
                        [&](std::int64_t b, std::int64_t e, std::int64_t, double* acc) {
                          for (auto i = b; i < e; ++i) acc[0] += x[std::size_t(i)];
                        });
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  std::vector<int> hits(10'000, 0);
  Executor executor;
  parallel_for(executor, 10'000, [&](std::int64_t i) { ++hits[std::size_t(i)]; });
  for (int const h : hits) ASSERT_EQ(h, 1);
  EXPECT_THROW(parallel_ranges(executor, 10'000, [](std::int64_t, std::int64_t) { throw std::runtime_error("x"); }), std::runtime_error);
}

TEST(Scalar, ConditionsEndInAnyOrderAndAreOfOneColumn) {
  for (auto const& queue : {Queue::thread(), Queue::strict(), Queue::shuffle(7)}) {
    Array a(8), flags(2 * sizeof(Scalar::Value));
    auto const set = [&](Array const& to, double v) {
      submit(queue, [v](Executor&, Scalar::Value* f) { *f = v; }, write<Scalar::Value>(to));
    };
    auto const add = [&](double v) { submit(queue, [v](Executor&, double* x) { *x += v; }, update<double>(a)); };
    submit(queue, [](Executor&, double* x) { *x = 0; }, write<double>(a));
    auto const no = flags.view(0, sizeof(Scalar::Value)), yes = flags.view(sizeof(Scalar::Value), sizeof(Scalar::Value));
    set(no, 0);
    set(yes, 1);
    auto outer = std::make_unique<Condition>(queue, Condition::Until{no});
    auto inner = std::make_unique<Condition>(queue, Condition::Until{yes});
    add(1);  // skipped by the inner one
    outer.reset();
    add(10);  // still
    inner.reset();
    add(100);
    a.settle(Access::read, "test");
    EXPECT_EQ(*a.as<double>(), 100) << queue.kind();
  }
  EXPECT_THROW(Condition(Queue::host(), Scalar(std::vector<Scalar::Value>{1.0, 0.0})), asterism::Error);
}

TEST(Team, AFewLargeSharesOfWorkAreRunByAsManyThreads) {
  auto const before = host::team_size();
  for (int const threads : {2, 3, 5}) {
    host::set_team_size(threads);
    for (std::int64_t const n :
         {std::int64_t(threads), std::int64_t(threads) + 1, std::int64_t(40), std::int64_t(1000), std::int64_t(10007)}) {
      std::mutex mutex;
      std::map<std::int64_t, std::int64_t> pieces;
      Executor executor;
      parallel_ranges(
          executor, n,
          [&](std::int64_t b, std::int64_t e) {
            std::lock_guard const lock(mutex);
            pieces[b] = e;
          },
          1);
      ASSERT_EQ(pieces.size(), std::size_t(threads)) << n;
      std::int64_t at = 0;
      for (auto const& [b, e] : pieces) {
        ASSERT_EQ(b, at);
        ASSERT_LE(e - b, n / threads + 16);
        at = e;
      }
      ASSERT_EQ(at, n);
    }
  }
  host::set_team_size(before);
}

/// Blocks begin anywhere in their first page.
std::uintptr_t page_of(Array const& a) { return reinterpret_cast<std::uintptr_t>(a.raw()) / 4096; }

TEST(Memory, BlocksThatFollowEachOtherBeginAtDifferentPlacesOfAPage) {
  for (std::size_t const bytes : {std::size_t(64) << 10, std::size_t(1) << 20, std::size_t(16) << 20, (std::size_t(16) << 20) - 64}) {
    std::vector<Array> arrays;
    std::set<std::uintptr_t> places;
    for (int n = 0; n < 4; ++n) {
      arrays.emplace_back(bytes);
      std::memset(arrays.back().raw(), n, bytes);
      auto const place = reinterpret_cast<std::uintptr_t>(arrays.back().raw()) % 4096;
      EXPECT_EQ(place % 64, 0u);
      places.insert(place);
    }
    for (int n = 0; n < 4; ++n) EXPECT_EQ(arrays[std::size_t(n)].as<char>()[bytes - 1], n);
    // small ones may come from an allocator; the system may give a block that begins just where another one was moved to
    if (bytes > (std::size_t(256) << 10)) EXPECT_GE(places.size(), 3u) << bytes;
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_outside_set_ups = false;

TEST(Memory, TheSanitizerSeesTheFirstByteThatWasNotAskedFor) {
  for (std::size_t const bytes : {1u, 24u, 64u, 65u, 4095u, 70001u, 9u << 20, (9u << 20) + 3}) {
    for (int again = 0; again < 2; ++again) {  // a block that was in use before too
      host::KeepFreed const keep;
      Array const a(bytes);
      auto const* const data = a.as<char>();
      EXPECT_FALSE(__asan_region_is_poisoned(const_cast<char*>(data), bytes)) << bytes;
      EXPECT_TRUE(__asan_address_is_poisoned(data + bytes)) << bytes;
      EXPECT_TRUE(__asan_address_is_poisoned(data - 1)) << bytes;
    }
  }
}
#else
constexpr bool keeps_outside_set_ups = true;
#endif

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * std::size_t(sysconf(_SC_PAGESIZE));
}

TEST(Memory, FreedBlocksComeBackInASetUp) {
  constexpr std::size_t large = std::size_t(64) << 20;
  std::uintptr_t first = 0;
  {
    host::KeepFreed const keep;
    {
      Array const a(large);
      first = page_of(a);
      a.as<char>()[large - 1] = 1;
    }
    {
      Array const smaller(large / 2);  // the rest of the block is given back to the system, its addresses stay
      EXPECT_EQ(page_of(smaller), first);
      Array const another(large);
      EXPECT_NE(page_of(another), first);
    }
    Array const again(large);
    again.as<char>()[large - 1] = 2;
    EXPECT_EQ(again.as<char>()[large - 1], 2);
  }
  Array const small(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.raw()) % 64, 0u);
}

TEST(Memory, FreedBlocksComeBackAtOtherTimesToo) {
  if (!keeps_outside_set_ups) GTEST_SKIP() << "with the address sanitizer nothing is kept";
  std::size_t const large = std::size_t(40) << 20;
  auto const before = host::memory_use().now;
  std::uintptr_t first = 0;
  {
    Array const a(large);
    first = page_of(a);
    a.as<char>()[large - 1] = 1;
    EXPECT_GE(host::memory_use().now, before + large);
  }
  EXPECT_EQ(host::memory_use().now, before);  // what is kept is not in use
  {
    Array const small(large / 4);  // would hold too much
    EXPECT_NE(page_of(small), first);
    Array const again(large);
    EXPECT_EQ(page_of(again), first);
    again.as<char>()[large - 1] = 2;
    EXPECT_EQ(again.as<char>()[large - 1], 2);
  }
  {
    host::KeepFreed const set_up;
    Array const a(large);
    EXPECT_EQ(page_of(a), first);
  }
  Array const again(large);
  EXPECT_EQ(page_of(again), first);
}

TEST(Memory, AnArrayInALongerKeptBlockCountsWithItsOwnSize) {
  if (!keeps_outside_set_ups) GTEST_SKIP() << "with the address sanitizer nothing is kept";
  constexpr std::size_t unit = std::size_t(70) << 20;  // longer than what other tests leave
  auto const before = host::memory_use().now;
  std::uintptr_t first = 0;
  {
    Array const whole(3 * unit);
    first = page_of(whole);
  }
  Array const third(unit);
  EXPECT_EQ(page_of(third), first);
  EXPECT_LT(host::memory_use().now, before + unit + (std::size_t(3) << 20));
  host::set_memory_cap(before + 5 * unit);
  EXPECT_NO_THROW(Array(3 * unit));  // below the cap
  host::set_memory_cap(0);
}

TEST(Memory, RoomThatWasNeverWrittenKeepsNothing) {
  if (!keeps_outside_set_ups) GTEST_SKIP() << "the address sanitizer holds what was freed";
  constexpr std::size_t unit = std::size_t(64) << 20;
  host::KeepFreed const set_up;
  auto const use = host::memory_use();
  Array const most(use.most - use.now + unit);  // more than ever: never written
  Array room(32 * unit);
  room.buffer()->shrink(unit);
  {
    Array const freed(unit);
    std::memset(freed.raw(), 1, unit);
  }
  auto const before = resident_bytes();
  Array const longer(4 * unit);  // does not fit into what is kept, which is no part of the most that was in use
  EXPECT_LT(resident_bytes(), before - unit / 2);
}

TEST(Memory, WhatIsShrunkIsNotInUse) {
  constexpr std::size_t large = std::size_t(64) << 20, kept = std::size_t(9) << 20;
  auto const before = host::memory_use().now;
  {
    Array const a(large);
    std::memset(a.raw(), 1, large);
    auto const resident = resident_bytes();
    a.buffer()->shrink(kept);
    EXPECT_LE(host::memory_use().now, before + kept + 8192);
    EXPECT_GE(host::memory_use().now, before + kept);
    EXPECT_LT(resident_bytes(), resident - large / 2);
    EXPECT_EQ(a.as<char>()[kept - 1], 1);
    Array const small(std::size_t(1) << 20);  // stays as it is
    auto const now = host::memory_use().now;
    small.buffer()->shrink(10);
    EXPECT_EQ(host::memory_use().now, now);
  }
  EXPECT_EQ(host::memory_use().now, before);
}

TEST(Memory, KeptBlocksDoNotAddToTheMostInUse) {
  if (!keeps_outside_set_ups) GTEST_SKIP() << "the address sanitizer holds what was freed";
  constexpr std::size_t large = std::size_t(32) << 20;
  auto const touched = [](std::size_t bytes) {
    Array a(bytes);
    std::memset(a.raw(), 1, bytes);
    return a;
  };
  for (int n = 0; n < 3; ++n) touched(large);
  auto const before = resident_bytes();
  for (std::size_t n = 0; n < 12; ++n) touched(large + n * (std::size_t(2) << 20));  // none fits the next one
  EXPECT_LE(resident_bytes(), before + 3 * large);
}

TEST(Memory, UseIsCountedAndCapped) {
  auto const before = host::memory_use();
  {
    Array const a(1000), b(std::size_t(20) << 20);
    auto const now = host::memory_use();
    EXPECT_GE(now.now, before.now + 1000 + (std::size_t(20) << 20));
    EXPECT_GE(now.most, now.now);
    host::set_memory_cap(now.now + 100'000);
    Array const c(50'000);
    try {
      Array const d(60'000);
      FAIL() << "above the cap";
    } catch (asterism::Error const& e) {
      EXPECT_EQ(e.kind(), asterism::ErrorKind::memory);
      EXPECT_NE(std::string(e.what()).find("-memory_cap"), std::string::npos);
    }
    host::set_memory_cap(0);
  }
  EXPECT_EQ(host::memory_use().now, before.now);
}

TEST(Memory, ComesFromTheUsersAllocator) {
  std::map<void*, std::size_t> given;
  host::set_allocator({[&](std::size_t n, std::size_t alignment) {
                         if (n > 1'000'000) return static_cast<void*>(nullptr);
                         auto* const p = std::aligned_alloc(alignment, n);
                         given[p] = n;
                         return p;
                       },
                       [&](void* p, std::size_t) {
                         given.erase(p);
                         std::free(p);
                       }});
  {
    Array const a(100), b(5000);
    EXPECT_EQ(given.size(), 2u);
    EXPECT_TRUE(given.contains(b.raw()));
    EXPECT_THROW(Array(2'000'000), asterism::Error);
    host::set_allocator({});
    Array const c(100);  // the system's again; a and b go back to whom they came from
    EXPECT_EQ(given.size(), 2u);
  }
  EXPECT_TRUE(given.empty());
  EXPECT_THROW(host::set_allocator({[](std::size_t, std::size_t) { return static_cast<void*>(nullptr); }, {}}), asterism::Error);
}
