#include "asterism/base/bfloat16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using asterism::Bfloat16;

TEST(Bfloat16, IsRoundedToTheNearest) {
  auto const rounded = [](float x) { return float(Bfloat16(x)); };
  for (float const x : {0.0f, 1.0f, -6.0f, 0.15625f, 1e-30f, 3e38f}) EXPECT_LE(std::abs(rounded(x) - x), std::abs(x) / 256) << x;
  EXPECT_EQ(rounded(1 + 1.0f / 256), 1.0f);  // ties go to the even one
  EXPECT_EQ(rounded(1 + 3.0f / 256), 1 + 1.0f / 64);
  EXPECT_EQ(rounded(1 + 1.01f / 256), 1 + 1.0f / 128);
  EXPECT_TRUE(std::isinf(rounded(3.4e38f)) && std::isinf(rounded(-std::numeric_limits<float>::infinity())));
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
}
