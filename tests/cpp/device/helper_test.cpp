#include "asterism/device/host/helper.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using asterism::device::host::Helper;

TEST(Helper, WorksOnlyWhileThereIsAReason) {
  std::atomic<int> steps{0};
  {
    Helper helper([&] { ++steps; });
    EXPECT_EQ(steps, 0);
    for (int round = 0; round < 200; ++round) {
      int const before = steps;
      helper.begin();
      helper.begin();  // counted
      helper.end();
      while (steps == before) std::this_thread::yield();
      helper.end();
      int last = -1;
      while (last != steps) {  // it comes to rest
        last = steps;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    }
    helper.begin();  // ends with a reason left
  }
  int const after = steps;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(steps, after);
}

TEST(Helper, ManyComeAndGo) {
  for (int i = 0; i < 300; ++i) {
    std::atomic<bool> ran{false};
    Helper helper([&] { ran = true; });
    if (i % 3 == 0) continue;  // never used
    helper.begin();
    if (i % 3 == 1) helper.end();
    else
      while (!ran) std::this_thread::yield();
  }
}
