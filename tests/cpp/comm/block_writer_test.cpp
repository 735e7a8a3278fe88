#include "asterism/comm/node/block_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace asterism::comm::node {
namespace {

/// At every alignment and length, through and around the caches: what belongs to others stays as it is.
TEST(BlockWriter, CopiesEveryByteAndNoOther) {
  BlockWriter writer;
  std::vector<unsigned char> from(9000), to(9200);
  std::iota(from.begin(), from.end(), 1);
  // enough that each way is taken for each case: one block of 64 goes the other way, and which way is usual is measured
  for (int turn = 0; turn < 70; ++turn)
    for (std::size_t bytes : {0, 1, 63, 64, 65, 2047, 2048, 2049, 4096, 4159, 8191})
      for (std::size_t at : {64, 65, 72, 127}) {
        std::fill(to.begin(), to.end(), static_cast<unsigned char>(turn));
        auto const skip = std::size_t(turn) % 17;
        writer.copy(reinterpret_cast<std::byte*>(to.data() + at), reinterpret_cast<std::byte const*>(from.data() + skip),
                    std::int64_t(bytes));
        ASSERT_EQ(std::memcmp(to.data() + at, from.data() + skip, bytes), 0) << bytes << " at " << at;
        auto const untouched = [turn](unsigned char c) { return c == static_cast<unsigned char>(turn); };
        auto const first = to.begin() + std::ptrdiff_t(at);
        ASSERT_TRUE(std::all_of(to.begin(), first, untouched)) << bytes << " at " << at;
        ASSERT_TRUE(std::all_of(first + std::ptrdiff_t(bytes), to.end(), untouched)) << bytes << " at " << at;
      }
  EXPECT_FALSE(writer.describe().empty());
}

TEST(BlockWriter, KnowsNothingAtFirst) {
  BlockWriter writer;
  EXPECT_TRUE(writer.describe().empty());
  EXPECT_FALSE(writer.around());
#if defined(__x86_64__)
  EXPECT_FALSE(writer.better_lent());
#endif
}

/// A caller that writes its blocks itself leaves some to the writer, which could measure nothing else.
TEST(BlockWriter, MeasuresAlsoWhereCallersWrite) {
  BlockWriter writer;
  std::vector<std::byte> from(4096), to(4096);
  for (int i = 0; i < 1000; ++i)
    if (!writer.leaves_to_caller()) writer.copy(to.data(), from.data(), 4096);
  EXPECT_FALSE(writer.describe().empty());
}

}  // namespace
}  // namespace asterism::comm::node
