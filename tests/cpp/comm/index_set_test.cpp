#include "asterism/comm/layout/index_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

using namespace asterism::comm;
using I64s = std::vector<std::int64_t>;

namespace {

/// pack, unpack and combine against the definition, for sizes with and without a kernel of their own.
void check(I64s const& positions, std::int64_t space) {
  IndexSet const set(positions);
  ASSERT_EQ(set.count(), std::int64_t(positions.size()));
  for (std::size_t i = 0; i < positions.size(); ++i) ASSERT_EQ(set[std::int64_t(i)], positions[i]) << set.describe() << " at " << i;
  std::vector<std::byte> bytes;
  set.write(bytes);
  auto const copy = IndexSet::read(bytes);
  ASSERT_EQ(copy.describe(), set.describe());
  for (std::size_t i = 0; i < positions.size(); ++i) ASSERT_EQ(copy[std::int64_t(i)], positions[i]);
  ASSERT_EQ(set.largest(), positions.empty() ? -1 : *std::max_element(positions.begin(), positions.end()));
  bool const twice = std::set<std::int64_t>(positions.begin(), positions.end()).size() < positions.size();
  if (set.kind() == IndexSet::Kind::strided && twice) {
    ASSERT_TRUE(set.overlaps());
  }
  for (std::int64_t unit : {1, 2, 4, 8, 12, 16, 24}) {
    std::vector<unsigned char> data(std::size_t(space * unit)), buffer(positions.size() * std::size_t(unit)), want = buffer;
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 251);
    for (std::size_t i = 0; i < positions.size(); ++i)
      std::memcpy(want.data() + i * std::size_t(unit), data.data() + positions[i] * unit, std::size_t(unit));
    set.pack(data.data(), buffer.data(), unit);
    ASSERT_EQ(buffer, want) << set.describe() << " unit " << unit;
    std::vector<unsigned char> target(data.size(), 9), expected = target;
    for (std::size_t i = 0; i < positions.size(); ++i)
      std::memcpy(expected.data() + positions[i] * unit, buffer.data() + i * std::size_t(unit), std::size_t(unit));
    set.unpack(buffer.data(), target.data(), unit);
    ASSERT_EQ(target, expected) << set.describe() << " unit " << unit;
  }
  for (std::int64_t k : {1, 3}) {
    std::vector<double> target(std::size_t(space * k), 1.0), expected = target, buffer(positions.size() * std::size_t(k));
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = double(i) + 0.5;
    for (std::size_t i = 0; i < positions.size(); ++i)
      for (std::int64_t j = 0; j < k; ++j) expected[std::size_t(positions[i] * k + j)] += buffer[i * std::size_t(k) + std::size_t(j)];
    set.combine(Combine(ReduceOp::sum, Items::of<double>(k)), buffer.data(), target.data(), 8 * k);
    ASSERT_EQ(target, expected) << set.describe() << " k " << k;
  }
}

}  // namespace

TEST(IndexSet, AllPartsOfABoxesHaloAreRecognised) {
  // ghost layers of a box of 7 x 6 x 5 points with radius 1 and 2: 26 parts, x fastest
  for (std::int64_t const radius : {1, 2}) {
    std::int64_t const n[3] = {7, 6, 5}, full[3] = {n[0] + 2 * radius, n[1] + 2 * radius, n[2] + 2 * radius};
    for (int part = 0; part < 27; ++part) {
      if (part == 13) continue;
      std::int64_t lo[3], hi[3];
      int const side[3] = {part % 3, part / 3 % 3, part / 9};
      for (int d = 0; d < 3; ++d) {
        lo[d] = side[d] == 0 ? 0 : side[d] == 1 ? radius : radius + n[d];
        hi[d] = side[d] == 0 ? radius : side[d] == 1 ? radius + n[d] : full[d];
      }
      I64s p;
      for (auto z = lo[2]; z < hi[2]; ++z)
        for (auto y = lo[1]; y < hi[1]; ++y)
          for (auto x = lo[0]; x < hi[0]; ++x) p.push_back((z * full[1] + y) * full[0] + x);
      IndexSet const set(p);
      EXPECT_NE(set.kind(), IndexSet::Kind::list) << "part " << part;
      EXPECT_EQ(set.memory_bytes(), 0u);
      check(p, full[0] * full[1] * full[2]);
    }
  }
}

TEST(IndexSet, RegularAndIrregularSets) {
  check({}, 4);
  check({3}, 4);
  check({1, 2, 3}, 4);
  check({3, 2, 1}, 4);         // descending
  check({0, 2, 4, 6, 7}, 8);   // almost strided
  check({0, 1, 4, 5, 8}, 12);  // a run is cut short
  check({2, 2, 2}, 4);         // repeated
  check({0, 100, 200, 300}, 301);
  check({0, 1, 2, 1, 2, 3}, 4);  // runs that overlap
  EXPECT_EQ(IndexSet({5, 6, 7}).describe(), "contiguous");
  EXPECT_EQ(IndexSet({0, 2, 4, 6}).describe(), "strided 1 x 4 x 1");
  EXPECT_EQ(IndexSet({0, 1, 10, 11, 100, 101, 110, 111}).describe(), "strided 2 x 2 x 2");
  EXPECT_EQ(IndexSet({0, 1, 10, 11, 100, 101, 110, 112}).describe(), "list");
  EXPECT_EQ(IndexSet({4, 1}).describe(), "list");
  I64s rows;  // long runs
  for (std::int64_t j = 0; j < 5; ++j)
    for (std::int64_t i = 0; i < 100; ++i) rows.push_back(130 * j + i);
  check(rows, 700);
}

TEST(IndexSet, RandomSetsAreNeverTakenForRegularOnes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::int64_t const dx = 1 + random() % 4, dy = 1 + random() % 4, dz = 1 + random() % 3, X = random() % 7, Y = random() % 5;
    I64s p;
    for (std::int64_t k = 0; k < dz; ++k)
      for (std::int64_t j = 0; j < dy; ++j)
        for (std::int64_t i = 0; i < dx; ++i) p.push_back(std::int64_t(random() % 3) + X * Y * k + X * j + i);
    if (round % 2) p[random() % p.size()] = std::int64_t(random() % 20);  // else maybe a true box
    IndexSet const set(p);
    for (std::size_t i = 0; i < p.size(); ++i) ASSERT_EQ(set[std::int64_t(i)], p[i]) << "round " << round;
    if (round % 50 == 0) check(p, 200);
  }
}
