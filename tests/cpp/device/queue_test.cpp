// Queues: the order of tasks, waits, errors, and what a strict queue finds.
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
