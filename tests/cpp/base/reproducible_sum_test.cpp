#include "asterism/base/reproducible_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace asterism;

namespace {

double summed(std::vector<double> const& terms, int parts = 1) {
  std::vector<std::int64_t> words(ReproducibleSum::words, 0);
  for (int p = 0; p < parts; ++p) {  // as ranks and threads do: each a share, then their words are added
    std::vector<double> share;
    for (std::size_t i = std::size_t(p); i < terms.size(); i += std::size_t(parts)) share.push_back(terms[i]);
    for (std::size_t i = 0; i < share.size(); i += ReproducibleSum::most)
      ReproducibleSum::add(share.data() + i, int(std::min<std::size_t>(ReproducibleSum::most, share.size() - i)), words.data());
  }
  return ReproducibleSum::value(words);
}

/// Shewchuk 1997, as Python's math.fsum: non-overlapping partial sums, rounded once.
double oracle(std::vector<double> const& terms) {
  std::vector<double> partials;
  for (double x : terms) {
    std::size_t kept = 0;
    for (double y : partials) {
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      double const high = x + y, low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  double high = 0, low = 0;
  while (!partials.empty()) {
    double const x = high, y = partials.back();
    partials.pop_back();
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  if (!partials.empty() && ((low < 0 && partials.back() < 0) || (low > 0 && partials.back() > 0))) {
    double const y = low * 2, x = high + y;
    if (y == x - high) high = x;
  }
  return high;
}

}  // namespace

TEST(ReproducibleSum, TheSameBitsInAnyOrderAndAnyShares) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    int const spread = 1 << (round % 10);  // up to 2^512 between terms
    std::vector<double> terms;
    for (int i = 0; i < 1500; ++i) {
      double const x = std::ldexp(double(random() >> 11) * 0x1p-53, int(random() % unsigned(spread)) - spread / 2);
      terms.push_back(random() % 2 ? -x : x);
      if (random() % 3 == 0) terms.push_back(-terms[random() % terms.size()]);
    }
    double const wanted = oracle(terms);
    double const sum = summed(terms);
    double largest = 0;
    for (double const t : terms) largest = std::max(largest, std::abs(t));
    // right to 96 bits below the largest term; where that is all of the sum, to the last bit
    ASSERT_LE(std::abs(sum - wanted), 0x1p-84 * largest + 0x1p-53 * std::abs(wanted)) << round;
    if (spread <= 16) {
      ASSERT_EQ(sum, wanted) << round;
    }
    ASSERT_EQ(summed(terms, 7), sum) << round;
    for (int order = 0; order < 3; ++order) {
      std::shuffle(terms.begin(), terms.end(), random);
      ASSERT_EQ(summed(terms, 1 + order), sum) << round;
    }
    std::sort(terms.begin(), terms.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    ASSERT_EQ(summed(terms, 2), sum) << round;
    ASSERT_EQ(summed({terms.rbegin(), terms.rend()}), sum) << round;
  }
}

TEST(ReproducibleSum, Extremes) {
  auto const tiny = std::numeric_limits<double>::denorm_min(), huge = std::numeric_limits<double>::max();
  auto const inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(summed({}), 0.0);
  EXPECT_EQ(summed({0x1p60, 1, -0x1p60}), 1.0);
  EXPECT_EQ(summed({0x1p500, 1, -0x1p500}), 0.0);  // far below
  EXPECT_EQ(summed({0x1p500, 1, -0x1p500}, 3), 0.0);
  EXPECT_EQ(summed({huge, huge, -huge}), huge);
  EXPECT_EQ(summed({huge, huge}), inf);
  EXPECT_EQ(summed({-huge, -huge}), -inf);
  EXPECT_EQ(summed({tiny, tiny, tiny}), 3 * tiny);
  EXPECT_EQ(summed({-tiny, 0x1p-1022, -0x1p-1022}), -tiny);
  EXPECT_EQ(summed({1, 0x1p-53}), 1.0);                   // a tie goes to even
  EXPECT_EQ(summed({1, 0x1p-53, 0x1p-90}), 1 + 0x1p-52);  // and something below breaks it
  EXPECT_EQ(summed({-1, -0x1p-53, -0x1p-90}), -1 - 0x1p-52);
  EXPECT_EQ(summed({inf, 1}), inf);
  EXPECT_EQ(summed({-inf, 1}), -inf);
  EXPECT_TRUE(std::isnan(summed({inf, -inf})));
  EXPECT_TRUE(std::isnan(summed({1, std::nan("")})));
  EXPECT_EQ(summed(std::vector<double>(100'000, 0.1)), 0.1 * 100'000 + 0.0);
}
