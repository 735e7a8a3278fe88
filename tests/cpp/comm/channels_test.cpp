#include "asterism/comm/channels.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "asterism/base/error.hpp"
#include "harness/world.hpp"

using namespace asterism::comm;

namespace {

std::vector<int> others() {
  std::vector<int> out;
  for (int r = 0; r < world().size(); ++r)
    if (r != world().rank()) out.push_back(r);
  return out;
}

template <class T>
std::span<std::byte const> bytes_of(T const& v) {
  return std::as_bytes(std::span(&v, 1));
}

class ChannelsOver : public ::testing::TestWithParam<TransportChoice> {};

}  // namespace

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

  Channels channels(comm, others(), 24, GetParam());
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
  Channels channels(comm, others(), 3000, GetParam());
  ASSERT_EQ(channels.sources().size(), std::size_t(comm.size() - 1));
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

TEST_P(ChannelsOver, SaysWhatIsWrong) {
  auto const& comm = world();
  std::array<std::byte, 9> const nine{};
  Channels channels(comm, {}, 8, GetParam());
  EXPECT_THROW(channels.put(0, nine), asterism::Error);
  EXPECT_THROW(channels.wait(), asterism::Error);
  EXPECT_THROW(channels.release({0, {}, 5}), asterism::Error);
  EXPECT_FALSE(channels.poll());
  int const me[] = {comm.rank()}, none[] = {comm.size()};
  EXPECT_THROW(Channels(comm, me, 8), asterism::Error);
  EXPECT_THROW(Channels(comm, comm.rank() == 0 ? std::span<int const>(none) : std::span<int const>(), 8), asterism::Error);
  if (comm.size() > 1) {
    EXPECT_THROW(Channels(comm, {}, 8 + comm.rank()), asterism::Error);
    Channels ring(comm, std::array{(comm.rank() + 1) % comm.size()}, 8, GetParam());
    EXPECT_THROW(ring.put((comm.rank() + 1) % comm.size(), nine), asterism::Error);
  }
}
