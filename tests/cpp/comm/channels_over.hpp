// Channels to all ranks by each transport, for their tests.
#pragma once
#include <gtest/gtest.h>

#include <span>

#include "asterism/comm/channels/channels.hpp"
#include "harness/world.hpp"

namespace asterism::comm {

inline std::vector<int> others() {
  std::vector<int> out;
  for (int r = 0; r < world().size(); ++r)
    if (r != world().rank()) out.push_back(r);
  return out;
}

inline Channels to_all(std::int64_t max_bytes, int labels, TransportChoice transport) {
  std::vector<Channel> out;
  for (int const r : others())
    for (int l = 0; l < labels; ++l) out.push_back({r, max_bytes, l});
  return {world(), out, transport};
}

/// Until all that was lent is back, on all ranks.
inline void finish(Channels& channels) {
  while (!channels.all_returned()) EXPECT_FALSE(channels.poll());
  for (auto const& c : channels.out())
    while (channels.under_way(c.rank, c.label) > 0) EXPECT_FALSE(channels.poll());
  while (channels.poll()) ADD_FAILURE() << "a message too many";  // tells releases too
  world().barrier();
}

template <class T>
std::span<std::byte const> bytes_of(T const& v) {
  return std::as_bytes(std::span(&v, 1));
}

class ChannelsOver : public ::testing::TestWithParam<TransportChoice> {};

}  // namespace asterism::comm
