// Channels: messages with labels between all ranks, and what ends a wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "asterism/base/error.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/device/array.hpp"
#include "comm/channels_over.hpp"

using namespace asterism::comm;
namespace device = asterism::device;

INSTANTIATE_TEST_SUITE_P(Transports, ChannelsOver, ::testing::Values(TransportChoice::automatic, TransportChoice::p2p),
                         [](auto const& info) { return std::string(name_of(info.param)); });

// A graph of tasks spread over the ranks: a task runs when all that it needs has arrived, whatever the order. The values are
// those of the serial loop.
TEST_P(ChannelsOver, ATaskGraphGivesTheSerialValues) {
  auto const& comm = world();
  int const tasks = 2000, rank = comm.rank(), size = comm.size();
  std::mt19937 random(3);
  std::vector<std::vector<int>> needs(tasks), feeds(tasks);
  std::vector<int> owner(tasks);
  for (int t = 0; t < tasks; ++t) {
    owner[t] = int(random() % unsigned(size));
    for (int e = int(random() % 4); t > 0 && e > 0; --e) {
      int const from = t - 1 - int(random() % unsigned(std::min(t, 60)));
      needs[t].push_back(from);
      feeds[from].push_back(t);
    }
  }
  auto const run = [](int t, std::uint64_t sum) { return (sum * 6364136223846793005ull + std::uint64_t(t)) ^ (sum >> 29); };
  std::vector<std::uint64_t> serial(tasks);
  for (int t = 0; t < tasks; ++t) {
    std::uint64_t sum = 1;
    for (int const f : needs[t]) sum += serial[f];
    serial[t] = run(t, sum);
  }

  auto channels = to_all(24, 1, GetParam());
  struct Value {
    std::int64_t task;
    std::uint64_t value;
  };
  std::vector<int> missing(tasks);
  std::vector<std::uint64_t> sum(tasks, 1), value(tasks, 0);
  std::vector<int> ready;
  int left = 0;
  for (int t = 0; t < tasks; ++t) {
    missing[t] = int(needs[t].size());
    if (owner[t] != rank) continue;
    ++left;
    if (missing[t] == 0) ready.push_back(t);
  }
  auto const arrived = [&](int from, std::uint64_t v) {
    for (int const t : feeds[from])
      if (owner[t] == rank) {
        sum[t] += v;
        if (--missing[t] == 0) ready.push_back(t);
      }
  };
  while (left > 0) {
    while (!ready.empty()) {
      int const t = ready.back();
      ready.pop_back();
      --left;
      value[t] = run(t, sum[t]);
      std::vector<char> told(size, 0);
      for (int const to : feeds[t])
        if (owner[to] != rank && !std::exchange(told[owner[to]], 1)) channels.put(owner[to], bytes_of(Value{t, value[t]}));
      arrived(t, value[t]);
    }
    if (left == 0) break;
    auto const a = channels.wait();
    Value v;
    ASSERT_EQ(a.data.size(), sizeof v);
    std::memcpy(&v, a.data.data(), sizeof v);
    channels.release(a);
    arrived(int(v.task), v.value);
  }
  // a rank may have no task left while messages for tasks that it has finished cannot exist: all that came was needed
  EXPECT_FALSE(channels.poll());
  for (int t = 0; t < tasks; ++t)
    if (owner[t] == rank) {
      ASSERT_EQ(value[t], serial[t]) << t;
    }
}

TEST_P(ChannelsOver, ManyMessagesOfAllSizesKeptAndReleasedInAnyOrder) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  constexpr int messages = 400;
  auto channels = to_all(3000, 1, GetParam());
  ASSERT_EQ(channels.in().size(), std::size_t(comm.size() - 1));
  auto const length = [](int from, int i) { return std::size_t((from * 131 + i * i * 17) % 3000); };
  std::mt19937 random(comm.rank());
  std::vector<int> seen(comm.size(), 0);
  std::vector<Channels::Arrival> held;
  int put = 0, got = 0;
  std::vector<std::byte> data(3000);
  while (put < messages || got < messages * (comm.size() - 1)) {
    if (put < messages && random() % 2) {
      auto const n = length(comm.rank(), put);
      for (std::size_t i = 0; i < n; ++i) data[i] = std::byte(i * 7 + std::size_t(put));
      for (int const r : others()) channels.put(r, std::span(data).first(n));
      ++put;
    }
    if (auto const a = channels.poll()) {
      int const i = seen[a->rank]++;  // in the sender's order
      ASSERT_EQ(a->data.size(), length(a->rank, i));
      for (std::size_t b = 0; b < a->data.size(); ++b) ASSERT_EQ(a->data[b], std::byte(b * 7 + std::size_t(i)));
      held.push_back(*a);
      ++got;
    }
    if (held.size() > 6 || (!held.empty() && random() % 3 == 0)) {
      auto const at = held.begin() + std::ptrdiff_t(random() % held.size());
      channels.release(*at);
      held.erase(at);
    }
  }
  for (auto const& a : held) channels.release(a);
  for (auto const& a : held) EXPECT_THROW(channels.release(a), asterism::Error) << "a second time";
  EXPECT_FALSE(channels.poll());
}

TEST_P(ChannelsOver, HundredsOfLabelsInAnyOrderEachWithItsSize) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  constexpr int labels = 300, rounds = 3;
  auto const bytes = [](int label) { return std::int64_t(8 + label % 7 * 20); };
  std::vector<Channel> out;
  std::mt19937 random(comm.rank());
  for (int const r : others())
    for (int l = 0; l < labels; ++l) out.push_back({r, bytes(l), l * 3});  // labels may have gaps
  std::ranges::shuffle(out, random);
  Channels channels(comm, out, GetParam());
  ASSERT_EQ(channels.in().size(), out.size());
  for (std::size_t i = 0; i < channels.in().size(); ++i) {
    EXPECT_EQ(channels.in()[i].rank, others()[i / labels]);
    EXPECT_EQ(channels.in()[i].label, int(i % labels) * 3);
    EXPECT_EQ(channels.in()[i].max_bytes, bytes(int(i % labels)));
    EXPECT_EQ(channels.out()[i].label, int(i % labels) * 3);
  }
  // every fourth has an array, and lent data
  std::vector<std::vector<std::byte>> landing(out.size());
  for (std::size_t i = 0; i < out.size(); i += 4) {
    auto const& c = channels.in()[i];
    landing[i].resize(std::size_t(c.max_bytes));
    channels.land_in(c.rank, landing[i], c.label);
  }
  std::vector<Channel> work;
  for (int k = 0; k < rounds; ++k) {
    std::ranges::shuffle(out, random);
    work.insert(work.end(), out.begin(), out.end());
  }
  std::vector<std::vector<std::byte>> data;
  for (auto const& c : work) data.emplace_back(std::size_t(c.max_bytes), std::byte(c.label + comm.rank()));
  std::map<std::pair<int, int>, int> seen;
  std::vector<Channels::Arrival> held;
  std::size_t sent = 0, got = 0;
  while (sent < work.size() || got < work.size()) {
    if (sent < work.size()) {
      auto const& c = work[sent];
      if (sent % 4 == 0) channels.lend(c.rank, data[sent], c.label);
      else channels.put(c.rank, data[sent], c.label);
      ++sent;
    }
    if (auto const a = channels.poll()) {
      ++got;
      ++seen[{a->rank, a->label}];
      ASSERT_EQ(std::int64_t(a->data.size()), bytes(a->label / 3));
      for (auto const b : a->data) ASSERT_EQ(b, std::byte(a->label + a->rank));
      held.push_back(*a);
    }
    if (held.size() > 20 || (!held.empty() && sent == work.size())) {
      std::swap(held.back(), held[random() % held.size()]);
      channels.release(held.back());
      held.pop_back();
    }
  }
  for (auto const& a : held) channels.release(a);
  EXPECT_EQ(seen.size(), out.size());
  for (auto const& [end, count] : seen) EXPECT_EQ(count, rounds);
  finish(channels);
}

TEST_P(ChannelsOver, InsideQueuedWork) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  int const next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  constexpr std::int64_t n = 5000;
  for (auto const* const name : {"inline", "thread", "strict", "shuffle"}) {
    SCOPED_TRACE(name);
    auto const queue = device::Queue::from_name(name, 7);
    Channels channels(comm, std::array{Channel{next, n * 8}}, GetParam());
    device::Array const x(n * 8), landed(n * 8), sum(8);
    for (int round = 0; round < 5; ++round) {
      device::submit_on_host(
          queue,
          [&, round](device::Executor&, double* to) {
            for (std::int64_t i = 0; i < n; ++i) to[i] = double(i + 1000 * round + comm.rank());
          },
          device::write<double>(x));
      device::submit_on_host(
          queue, [&](device::Executor&, std::byte*, double const* from) { channels.put(next, std::as_bytes(std::span(from, n))); },
          device::update<std::byte>(channels.order_token()), device::read<double>(x));
      device::submit_on_host(
          queue,
          [&](device::Executor&, std::byte*, double* to) {
            channels.land_in(before, std::as_writable_bytes(std::span(to, n)));
            channels.release(channels.wait());
            channels.land_in(before, {});
          },
          device::update<std::byte>(channels.order_token()), device::write<double>(landed));
      device::submit_on_host(
          queue,
          [](device::Executor&, double const* from, double* to) {
            *to = 0;
            for (std::int64_t i = 0; i < n; ++i) *to += from[i];
          },
          device::read<double>(landed), device::write<double>(sum));
      double expected = 0;
      for (std::int64_t i = 0; i < n; ++i) expected += double(i + 1000 * round + before);
      sum.settle(device::Access::read, "test");
      EXPECT_EQ(*sum.as<double>(), expected);
    }
    queue.wait("test");
    finish(channels);
  }
}

TEST_P(ChannelsOver, AWaitEndsWhenAnotherRankFails) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  auto channels = to_all(64, 1, GetParam());
  std::string text;
  try {
    collective(comm, "test", [&] {
      if (comm.rank() == 1) asterism::fail(asterism::ErrorKind::value, "rank one is tired");
      channels.wait();
    });
  } catch (asterism::Error const& e) {
    text = e.what();
  }
  EXPECT_NE(text.find("rank one is tired"), std::string::npos) << text;
  collective(comm, "next", [&] { comm.barrier(); });  // they recover
  std::array<std::byte, 8> const eight{};
  try {
    channels.put(others()[0], eight);
    ADD_FAILURE() << "these channels are over";
  } catch (asterism::Error const& e) {
    EXPECT_NE(std::string(e.what()).find("make new ones"), std::string::npos) << e.what();
  }
  EXPECT_THROW(channels.poll(), asterism::Error);
  EXPECT_THROW(channels.lend(others()[0], eight), asterism::Error);
  auto anew = to_all(64, 1, GetParam());
  for (int const r : others()) anew.put(r, eight);
  for (std::size_t i = 0; i < others().size(); ++i) anew.release(anew.wait());
  finish(anew);
}

TEST_P(ChannelsOver, SaysWhatIsWrong) {
  auto const& comm = world();
  std::array<std::byte, 9> nine{};
  Channels channels(comm, {}, GetParam());
  EXPECT_THROW(channels.put(0, nine), asterism::Error);
  EXPECT_THROW(channels.lend(0, nine), asterism::Error);
  EXPECT_THROW(channels.land_in(0, nine), asterism::Error);
  EXPECT_THROW(channels.under_way(0), asterism::Error);
  EXPECT_THROW(channels.returned(0), asterism::Error);
  EXPECT_THROW(channels.wait(), asterism::Error);
  EXPECT_THROW(channels.release({0, 0, {}, 5, false}), asterism::Error);
  EXPECT_FALSE(channels.poll());
  EXPECT_TRUE(channels.all_returned());
  auto const text = [&](std::vector<Channel> const& out) -> std::string {
    try {
      Channels(comm, out, GetParam());
    } catch (asterism::Error const& e) {
      return e.what();
    }
    return "nothing";
  };
  auto const says = [&](std::vector<Channel> const& out, char const* what) {
    EXPECT_NE(text(out).find(what), std::string::npos) << text(out);
  };
  says({{comm.rank(), 8}}, "cannot send to itself");
  says(comm.rank() == 0 ? std::vector<Channel>{{comm.size(), 8}} : std::vector<Channel>{}, "there is no rank");
  if (comm.size() == 1) return;
  int const next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
  says({{next, 0}}, "at most 0 bytes to rank");
  says({{next, 8, -1}}, "label -1");
  says({{next, 8, 4}, {next, 9, 4}}, "listed twice with label 4");
  EXPECT_THROW(Channels(comm, {}, comm.rank() == 0 ? TransportChoice::p2p : TransportChoice::automatic), asterism::Error);
  Channels ring(comm, std::array{Channel{next, 8, 2}}, GetParam());
  EXPECT_THROW(ring.put(next, nine, 2), asterism::Error);
  EXPECT_THROW(ring.put(next, {}), asterism::Error) << "no such label";
  EXPECT_THROW(ring.land_in(before, std::span(nine).first(7), 2), asterism::Error);
  ring.put(next, std::span(nine).first(8), 2);
  auto const a = ring.wait();
  EXPECT_THROW(ring.release({a.rank, 2, {}, a.key + 1, false}), asterism::Error);
  ring.release(a);
  EXPECT_THROW(ring.release(a), asterism::Error) << "a second time";
}

// The last credits of a slow rank are sent when the other one is in its next collective call already, and does not poll.
TEST_P(ChannelsOver, GoWhileAnotherRankIsInACollectiveCall) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  constexpr int messages = 4000;
  std::vector<std::byte> const data(100);
  {
    auto channels = to_all(100, 1, GetParam());
    if (comm.rank() == 0) {
      for (int i = 0; i < messages; ++i)
        for (int const r : others()) channels.put(r, data);
    } else {
      std::vector<Channels::Arrival> held;
      for (int i = 0; i < messages; ++i) held.push_back(channels.wait());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      for (std::size_t i = 0; i < held.size(); i += 2) channels.release(held[i]);
      for (std::size_t i = 1; i < held.size(); i += 2) channels.release(held[i]);
    }
  }
  comm.barrier();
}
