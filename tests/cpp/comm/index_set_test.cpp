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
void check(IndexSet const& set, I64s const& positions, std::int64_t space) {
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
  std::mt19937 random(5);
  for (int i = 0; i < 20 && !positions.empty(); ++i) {  // parts of it
    auto const first = std::int64_t(random() % positions.size()), n = std::int64_t(random() % (positions.size() - std::size_t(first) + 1));
    std::vector<double> data(static_cast<std::size_t>(space)), got(std::size_t(n), -1.0), want(got);
    for (std::size_t p = 0; p < data.size(); ++p) data[p] = double(p);
    for (std::int64_t e = 0; e < n; ++e) want[std::size_t(e)] = data[std::size_t(positions[std::size_t(first + e)])];
    set.pack(data.data(), got.data(), 8, first, n);
    ASSERT_EQ(got, want) << set.describe();
  }
}
void check(I64s const& positions, std::int64_t space) { check(IndexSet(positions), positions, space); }

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

TEST(IndexSet, BoxesAndTheirUnionsHoldNoIndices) {
  // of a box with rows of 7 and planes of 6 rows; what meet() and repeat() tell is never wrong, and always told of boxes of one array
  std::mt19937 random(2);
  constexpr std::int64_t X = 7, Y = 6, Z = 5;
  for (int round = 0; round < 2000; ++round) {
    std::vector<IndexSet> sets;
    std::vector<I64s> positions;
    I64s all;
    for (std::size_t s = 0, n = 1 + random() % 3; s < n; ++s) {
      std::int64_t const dx = std::int64_t(random() % (X + 1)), dy = std::int64_t(random() % (Y + 1)),
                         dz = std::int64_t(random() % (Z + 1));
      auto const x = std::int64_t(random() % std::uint64_t(X - dx + 1)), y = std::int64_t(random() % std::uint64_t(Y - dy + 1)),
                 z = std::int64_t(random() % std::uint64_t(Z - dz + 1));
      I64s p;
      for (auto k = z; k < z + dz; ++k)
        for (auto j = y; j < y + dy; ++j)
          for (auto i = x; i < x + dx; ++i) p.push_back((k * Y + j) * X + i);
      sets.push_back(IndexSet::box((z * Y + y) * X + x, {dz, dy, dx}, X, Y));
      ASSERT_EQ(sets.back().memory_bytes(), 0u);
      all.insert(all.end(), p.begin(), p.end());
      positions.push_back(std::move(p));
    }
    auto const whole = IndexSet::joined(sets);
    check(whole, all, X * Y * Z);
    ASSERT_LE(whole.memory_bytes(), sets.size() * sizeof(IndexSet));
    for (std::size_t a = 0; a < sets.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        I64s both;
        std::set_intersection(positions[a].begin(), positions[a].end(), positions[b].begin(), positions[b].end(), std::back_inserter(both));
        auto const told = IndexSet::meet(sets[a], sets[b]);
        if (told) {
          ASSERT_EQ(*told, !both.empty()) << sets[a].describe() << " and " << sets[b].describe();
        }
        if (sets[a].kind() == IndexSet::Kind::strided && sets[b].kind() == IndexSet::Kind::strided && sets[a].row_length() > 0) {
          ASSERT_TRUE(told.has_value());
        }
      }
    std::vector<IndexSet const*> pointers;
    for (auto const& s : sets) pointers.push_back(&s);
    bool const twice = std::set<std::int64_t>(all.begin(), all.end()).size() < all.size();
    if (auto const told = IndexSet::repeat(pointers)) {
      ASSERT_EQ(*told, twice);
    }
  }
  EXPECT_FALSE(IndexSet::meet(IndexSet({4, 1}), IndexSet({0, 2, 9})).has_value());  // lists: it takes a look
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
