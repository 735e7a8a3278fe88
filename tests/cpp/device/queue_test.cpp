#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/condition.hpp"
#include "asterism/device/race_check.hpp"

using namespace asterism::device;

TEST(Queue, InlineRunsAtOnce) {
  Array a(8);
  submit(Queue::host(), [](Executor&, double* x) { *x = 3; }, write<double>(a));
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
    auto const queue = Queue::shuffle(seed);
    for (int t = 0; t < tasks; ++t) {
      int const from = int(random() % arrays), other = int(random() % arrays), to = int(random() % arrays);
      submit(
          queue,
          [](Executor&, std::uint64_t const* x, std::uint64_t const* y, std::uint64_t* z) {
            *z = *z * 6364136223846793005ull + *x * 3 + *y;
          },
          read<std::uint64_t>(a[std::size_t(from)]), read<std::uint64_t>(a[std::size_t(other)]), update<std::uint64_t>(a[std::size_t(to)]));
      auto& z = expected[std::size_t(to)];
      z = z * 6364136223846793005ull + expected[std::size_t(from)] * 3 + expected[std::size_t(other)];
    }
    queue.wait("test");
    for (std::size_t i = 0; i < arrays; ++i) ASSERT_EQ(*a[i].as<std::uint64_t>(), expected[i]) << "seed " << seed;
  }
}

TEST(Queue, ATaskMayHoldTheLastHandleToItsOwnQueue) {
  // as an exchange under way does, when its user has dropped the queue
  for (int k = 0; k < 5; ++k) {
    Array a(8);
    {
      auto const queue = Queue::thread();
      submit(
          queue,
          [queue](Executor&, double* x) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the host waits for it, and then frees what it held
            *x = 1;
          },
          write<double>(a));
    }
    a.settle(Access::update, "test");
    EXPECT_EQ(*a.as<double>(), 1);
  }
}

TEST(Queue, AMissingIntentIsSeen) {
  // the planted bug: the reader does not declare what it reads; some order must give another answer
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 50 && !seen; ++seed) {
    Array a(8), b(8);
    *a.as<double>() = 0;
    auto const queue = Queue::shuffle(seed);
    submit(queue, [](Executor&, double* x) { *x = 1; }, write<double>(a));
    submit(queue, [p = a.as<double>()](Executor&, double* y) { *y = *p; }, write<double>(b));
    queue.wait("test");
    seen = *b.as<double>() != 1;
  }
  EXPECT_TRUE(seen);
}

TEST(Queue, ErrorsOfQueuedWorkComeAtTheWait) {
  for (auto const& queue : {Queue::shuffle(1), Queue::thread(), Queue::strict()}) {
    Array a(8), b(8);
    submit(queue, [](Executor&, double* v) { *v = 1; }, write<double>(b));
    submit(queue, [](Executor&, double*) { throw std::runtime_error("inside"); }, write<double>(a));
    submit(queue, [](Executor&, double const*, double* v) { *v = 2; }, read<double>(a), update<double>(b));  // not run any more
    EXPECT_THROW(queue.wait("test"), std::runtime_error);
    EXPECT_NO_THROW(queue.wait("test"));
    b.settle(Access::read, "test");
    EXPECT_EQ(*b.as<double>(), 1);
    submit(queue, [](Executor&, double*) { throw std::runtime_error("again"); }, write<double>(a));
    EXPECT_THROW(a.settle(Access::read, "test"), std::runtime_error);  // also who reads the result hears of it
  }
}

TEST(Queue, ATaskThatWaitsForItsOwnQueueIsAnError) {
  for (auto const& queue : {Queue::shuffle(1), Queue::thread()}) {
    Array a(8);
    submit(queue, [&queue](Executor&, double*) { queue.wait("itself"); }, write<double>(a));
    EXPECT_THROW(queue.wait("test"), asterism::Error);
  }
}

TEST(Queue, SubmittingDoesNotWait) {
  std::atomic<bool> go{false};
  auto const queue = Queue::thread(), other = Queue::thread();
  Array a(8), b(8);
  submit(
      queue,
      [&go](Executor&, double* x) {
        while (!go) std::this_thread::yield();
        *x = 4;
      },
      write<double>(a));
  submit(other, [](Executor&, double const* x, double* y) { *y = *x + 1; }, read<double>(a), write<double>(b));  // after the first
  auto const early = other.record();
  EXPECT_FALSE(early.done());
  go = true;
  early.wait();
  EXPECT_TRUE(early.done());
  EXPECT_EQ(*b.as<double>(), 5);
  auto const waits = other.waits();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].reason, "event");
  EXPECT_EQ(waits[0].count, 1);
}

TEST(Queue, WaitsAreCountedWhereTheHostWaits) {
  // an independent count, where the thread is put to sleep or spins: no more than what is counted with a reason
  auto const queue = Queue::thread();
  Array a(8);
  auto const before = host::blocking_reaches();
  for (int i = 0; i < 50; ++i) {
    submit(
        queue,
        [](Executor&, double* x) {
          std::this_thread::sleep_for(std::chrono::microseconds(200));
          *x = 1;
        },
        write<double>(a));
    a.settle(Access::read, "result");
  }
  auto const waits = queue.waits();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].count, host::blocking_reaches() - before);
  EXPECT_GT(waits[0].count, 0);  // 50 where nobody else wants the core; else a task may be done before the host asks
  EXPECT_LE(waits[0].count, 50);
}

TEST(Queue, KindsOfStreams) {
  auto const one = Queue::thread(StreamKind::shared), two = Queue::thread(StreamKind::shared), own = Queue::thread();
  Array order(3 * sizeof(int)), a(4), b(4), c(4);
  std::fill_n(order.as<int>(), 3, 0);
  std::atomic<bool> go{false};
  auto* const o = order.as<int>();
  // no intents in common: only what shares a queue is ordered
  submit(
      one,
      [&go, o](Executor&, int*) {
        while (!go) std::this_thread::yield();
        o[0] = 1;
      },
      write<int>(a));
  submit(two, [o](Executor&, int*) { o[1] = o[0] + 1; }, write<int>(b));
  submit(own, [o](Executor&, int*) { o[2] = 7; }, write<int>(c));
  own.wait("test");  // does not need the others
  EXPECT_EQ(o[2], 7);
  go = true;
  two.wait("test");
  EXPECT_EQ(o[1], 2);
  auto const careful = Queue::thread(StreamKind::own_with_barrier);
  submit(careful, [o](Executor&, int*) { o[2] = 8; }, write<int>(c));
  EXPECT_EQ(o[2], 8);  // done already
  EXPECT_EQ(careful.waits().at(0).reason, "barrier");
  EXPECT_THROW(Queue::from_name("tread"), asterism::Error);
}

TEST(Queue, StrictSpoilsWhatMustNotBeRead) {
  auto const queue = Queue::strict();
  Array a(8), b(8);
  *a.as<double>() = 3;
  *b.as<double>() = 5;
  bool fresh_is_nan = false;
  reset_copy_counts();
  {
    asterism::profile::Scope const scope(asterism::profile::event("StrictTest"));
    submit(
        queue,
        [&](Executor&, double const* x, double* y) {
          fresh_is_nan = std::isnan(*y);
          *y = 2 * *x;
        },
        read<double>(a), write<double>(b));
  }
  submit(queue, [](Executor&, double const* x, double* y) { *y += *x; }, read<double>(a), update<double>(b));  // nothing to copy
  queue.wait("test");
  EXPECT_TRUE(fresh_is_nan);                 // `write` does not bring the old value
  EXPECT_TRUE(std::isnan(*b.as<double>()));  // the host has not asked for the new one
  b.settle(Access::read, "test");
  EXPECT_EQ(*b.as<double>(), 9);
  // work without a form for this memory gets its data back, and is named
  {
    asterism::profile::Scope const scope(asterism::profile::event("StrictTestHost"));
    submit_on_host(queue, [](Executor&, double const* x, double* y) { *y = *x + 1; }, read<double>(b), write<double>(a));
    submit(queue, [](Executor&, double const* x, double* y) { *y = *x; }, read<double>(a), write<double>(b));
  }
  b.settle(Access::read, "test");
  EXPECT_EQ(*b.as<double>(), 10);
  std::map<std::string, CopyCount> counts;
  for (auto const& c : copy_counts()) counts[c.event] = c;
  EXPECT_EQ(counts["StrictTest"].to_apart, 1);
  EXPECT_EQ(counts["StrictTest"].to_apart_bytes, 8);
  EXPECT_EQ(counts["StrictTest"].to_host, 0);
  EXPECT_EQ(counts["StrictTestHost"].to_apart, 1);  // a, made on the host; b was valid on both sides
  EXPECT_EQ(counts["host access"].to_host, 2);
  set_forbid_copies(true);
  Array c(8);
  EXPECT_THROW(submit(queue, [](Executor&, double*) {}, update<double>(c)), asterism::Error);
  EXPECT_NO_THROW(submit(queue, [](Executor&, double*) {}, write<double>(c)));
  set_forbid_copies(false);
}

TEST(Queue, TwoArraysOverOneMemoryRace) {
  race_check::enable(true);
  double memory[2] = {1, 2};
  auto const a = Array::wrap(memory, 16, nullptr), b = Array::wrap(memory + 1, 8, nullptr);
  auto const one = Queue::thread(), two = Queue::thread();
  auto const submit_as = [](char const* name, Queue const& queue, Array const& x) {
    asterism::profile::Scope const scope(asterism::profile::event(name));
    submit(queue, [](Executor&, double* v) { *v = 1; }, update<double>(x));
  };
  submit_as("First", one, a);
  try {
    submit_as("Second", two, b);
    FAIL() << "nothing orders them";
  } catch (asterism::Error const& e) {
    EXPECT_NE(std::string(e.what()).find("First"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("Second"), std::string::npos) << e.what();
  }
  two.join(one);
  EXPECT_NO_THROW(submit_as("Second", two, b));
  two.wait("test");
  race_check::enable(false);
}

TEST(Queue, WorkOutlivesItsHandles) {
  std::atomic<int> ran{0};
  {
    auto const queue = Queue::thread();
    for (int i = 0; i < 100; ++i) {
      Array a(64);
      submit(
          queue,
          [&ran](Executor&, char* x) {
            x[63] = 1;
            ++ran;
          },
          write<char>(a));
    }
  }  // the last handle waits for the work
  EXPECT_EQ(ran, 100);
}

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

TEST(Memory, OfASolveComesBackInTheNextOne) {
  std::size_t const large = std::size_t(40) << 20;
  auto const before = host::memory_use().now;
  {
    host::FreedBlocks kept;
    void* first = nullptr;
    {
      host::KeepFreed const solve(kept);
      Array const a(large);
      first = a.raw();
      a.as<char>()[large - 1] = 1;
    }
    EXPECT_EQ(host::memory_use().now, before + large);  // what is kept is in use
    Array const between(large);                         // of somebody else
    EXPECT_NE(between.raw(), first);
    {
      host::KeepFreed const solve(kept);
      EXPECT_EQ(host::memory_use().now, before + large);
      Array const a(large);
      EXPECT_EQ(a.raw(), first);
    }
    EXPECT_EQ(host::memory_use().now, before + 2 * large);
    {
      host::KeepFreed const solve(kept);
      {
        host::KeepFreed const set_up;
      }  // what it leaves goes back to the system, and this with it
    }
    EXPECT_EQ(host::memory_use().now, before + large);
  }
  EXPECT_EQ(host::memory_use().now, before);
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

TEST(Queue, EndedQueuesLeaveTheirTimesInOneSum) {
  namespace profile = asterism::profile;
  auto const e = profile::event("work of ended queues");
  profile::reset();
  for (int i = 0; i < 20; ++i) std::thread([&] { profile::Scope const scope(e, 8, 1); }).join();
  auto const all = profile::snapshot();
  auto const at = std::find_if(all.begin(), all.end(), [](auto const& s) { return s.name == "work of ended queues"; });
  ASSERT_NE(at, all.end());
  EXPECT_EQ(at->calls, 20);
  EXPECT_EQ(at->bytes, 160);
  profile::reset();
  EXPECT_TRUE(profile::snapshot().empty());
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
