// Channels: messages from and into arrays that are lent.
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

TEST_P(ChannelsOver, AnySizeCopiedOrLentIntoPlacesOrArrays) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  std::vector<std::size_t> const sizes{0, 1, 24, 25, 48, 49, 4095, 4096, 100'000, 1 << 20};
  constexpr std::int64_t most = 1 << 20;
  for (bool const lend : {false, true})
    for (bool const shared : {false, true})
      for (bool const land : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "lend " << lend << " shared " << shared << " land " << land);
        auto channels = to_all(most, 1, GetParam());
        std::vector<std::vector<std::byte>> landing(comm.size());
        if (land)
          for (int const r : others()) {
            landing[r].resize(most);
            channels.land_in(r, landing[r]);
          }
        // arrays of the library lie in memory that the ranks share, others do not
        std::vector<std::vector<std::byte>> own;
        std::vector<device::Array> arrays;
        std::vector<std::span<std::byte>> data;
        for (auto const n : sizes) {
          if (shared) {
            arrays.emplace_back(std::max<std::size_t>(n, 1));
            arrays.back().settle(device::Access::write, "test");
            data.emplace_back(arrays.back().as<std::byte>(), n);
          } else {
            data.emplace_back(own.emplace_back(n));
          }
          for (std::size_t i = 0; i < n; ++i) data.back()[i] = std::byte(i * 7 + n + std::size_t(comm.rank()));
        }
        std::vector<Channels::Ticket> tickets;
        for (auto const& d : data)
          for (int const r : others()) {
            if (lend) tickets.push_back(channels.lend(r, d));
            else channels.put(r, d);
          }
        if (!lend)
          for (auto const& d : data) std::ranges::fill(d, std::byte(0));  // they were copied
        std::vector<std::size_t> seen(comm.size(), 0);
        for (std::size_t got = 0; got < sizes.size() * others().size(); ++got) {
          auto const a = channels.wait();
          auto const n = sizes[seen[a.rank]++];
          ASSERT_EQ(a.data.size(), n);
          if (land) {
            ASSERT_EQ(a.data.data(), landing[a.rank].data());
          }
          for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a.data[i], std::byte(i * 7 + n + std::size_t(a.rank))) << n << " at " << i;
          channels.release(a);
        }
        finish(channels);
        for (auto const t : tickets) EXPECT_TRUE(channels.returned(t));
        for (int const r : others()) EXPECT_EQ(channels.under_way(r), 0);
      }
}

TEST_P(ChannelsOver, LentArraysComeBackAfterTheirReleaseAndNotBefore) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  auto channels = to_all(10'000, 1, GetParam());
  std::vector<std::vector<std::byte>> arrays;
  std::vector<Channels::Ticket> tickets;
  int const next = (comm.rank() + 1) % comm.size();
  for (int i = 0; i < 40; ++i) {
    arrays.emplace_back(10'000, std::byte(i));
    tickets.push_back(channels.lend(next, arrays.back()));
  }
  EXPECT_EQ(channels.under_way(next), 40);
  std::vector<Channels::Arrival> held;
  while (held.size() < 40) held.push_back(channels.wait());
  comm.barrier();
  EXPECT_FALSE(channels.all_returned());
  for (auto const t : tickets) EXPECT_FALSE(channels.returned(t));
  comm.barrier();
  for (int i = 39; i >= 20; --i) channels.release(held[i]);  // the later half, backwards
  while (!channels.returned(tickets[20])) channels.poll();
  for (int i = 0; i < 40; ++i) EXPECT_EQ(channels.returned(tickets[i]), i >= 20) << i;
  EXPECT_EQ(channels.under_way(next), 20);
  comm.barrier();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(held[i].data[9'999], std::byte(i));
    channels.release(held[i]);
  }
  finish(channels);
  EXPECT_EQ(channels.under_way(next), 0);
  EXPECT_THROW(channels.returned(1000), asterism::Error);
}

TEST_P(ChannelsOver, AMessageWhoseArrayIsInUseIsSetAsideAndOthersGoOn) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  for (std::size_t const n : {8, 5000}) {
    int const next = (comm.rank() + 1) % comm.size(), before = (comm.rank() + comm.size() - 1) % comm.size();
    Channels channels(comm, std::array<Channel, 2>{{{next, 5000, 1}, {next, 5000, 2}}}, GetParam());
    std::vector<std::byte> array(5000), other(5000), data(n);
    channels.land_in(before, array, 1);
    for (int i = 0; i < 6; ++i) {
      data.assign(n, std::byte(i));
      channels.put(next, data, 1);
      if (i % 2) channels.put(next, data, 2);
    }
    auto const first = channels.wait();
    EXPECT_EQ(first.label, 1);
    for (int i : {1, 3, 5}) {  // while the first is held, those of the other channel come
      auto const a = channels.wait();
      EXPECT_EQ(a.label, 2);
      EXPECT_EQ(a.data[n - 1], std::byte(i));
      channels.release(a);
    }
    EXPECT_FALSE(channels.poll());
    EXPECT_EQ(array[n - 1], std::byte(0));
    channels.release(first);
    auto const second = channels.wait();
    EXPECT_EQ(second.data[n - 1], std::byte(1));
    EXPECT_FALSE(channels.poll());
    channels.land_in(before, other, 1);  // another array: the one in use stays until its release
    EXPECT_FALSE(channels.poll());
    channels.release(second);
    auto const third = channels.wait();
    EXPECT_EQ(third.data.data(), other.data());
    EXPECT_EQ(third.data[0], std::byte(2));
    channels.land_in(before, {}, 1);  // none: all that was set aside comes, in its order
    for (int i = 3; i < 6; ++i) {
      auto const a = channels.wait();
      EXPECT_EQ(a.label, 1);
      EXPECT_EQ(a.data[0], std::byte(i));
      channels.release(a);
    }
    EXPECT_EQ(third.data[0], std::byte(2));
    channels.release(third);
    EXPECT_FALSE(channels.poll());
    finish(channels);
  }
}

// An array is given and taken away at random while messages come: each arrives whole and in its order.
TEST_P(ChannelsOver, ArraysThatChangeWhileMessagesCome) {
  auto const& comm = world();
  if (comm.size() == 1) GTEST_SKIP() << "between ranks";
  constexpr int messages = 600;
  auto channels = to_all(3000, 2, GetParam());
  std::mt19937 random(comm.rank() + 5);
  auto const length = [](int i) { return std::size_t(8 + i * 37 % 2900); };
  std::vector<std::array<std::vector<std::byte>, 2>> arrays(comm.size() * 2);
  for (auto& pair : arrays)
    for (auto& a : pair) a.resize(3000);
  std::map<std::pair<int, int>, int> seen;
  std::vector<Channels::Arrival> held;
  int sent = 0, got = 0;
  std::vector<std::byte> data;
  while (sent < messages || got < messages * int(others().size())) {
    if (sent < messages) {
      data.assign(length(sent / 2), std::byte(sent / 2));
      for (int const r : others()) channels.put(r, data, sent % 2);
      ++sent;
    }
    if (random() % 4 == 0) {
      auto const r = others()[random() % others().size()];
      int const label = int(random() % 2);
      // of two arrays the one that no message lies in
      auto& pair = arrays[r * 2 + label];
      int which = -1;
      for (int i = 0; i < 2; ++i)
        if (std::ranges::none_of(held, [&](auto const& a) { return a.data.data() == pair[i].data(); })) which = i;
      if (random() % 3 == 0 || which < 0) channels.land_in(r, {}, label);
      else channels.land_in(r, pair[which], label);
    }
    if (auto const a = channels.poll()) {
      int const i = seen[{a->rank, a->label}]++;
      ASSERT_EQ(a->data.size(), length(i));
      ASSERT_EQ(a->data.front(), std::byte(i));
      held.push_back(*a);
      ++got;
    }
    if (held.size() > 3 || (!held.empty() && random() % 2)) {
      auto const at = held.begin() + std::ptrdiff_t(random() % held.size());
      ASSERT_TRUE(std::ranges::all_of(at->data, [&](auto b) { return b == at->data.front(); }));
      channels.release(*at);
      held.erase(at);
    }
  }
  for (auto const& a : held) channels.release(a);
  finish(channels);
}
