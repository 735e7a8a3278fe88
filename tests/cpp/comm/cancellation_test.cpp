// Long loops that threads share end early.
#include "asterism/comm/communicator/cancellation.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "asterism/base/error.hpp"
#include "asterism/base/interrupt.hpp"
#include "harness/world.hpp"

using namespace asterism;

TEST(Cancellation, AnyThreadSeesThatTheTimeIsOver) {
  set_time_limit(-1);
  Progress progress("long work", 0);
  comm::Cancellation cancel(comm::Communicator(), progress);
  bool seen = false;
  std::thread([&] { seen = cancel.requested(); }).join();
  EXPECT_TRUE(seen);
  try {
    cancel.throw_if_requested();
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.kind(), ErrorKind::time_limit) << e.what();
  }
  set_time_limit(std::numeric_limits<double>::infinity());
}

TEST(Cancellation, OtherThreadsHaveNoLimitOfTheirOwn) {
  Progress progress("long work", 0);
  comm::Cancellation cancel(comm::Communicator(), progress);
  std::thread([&] {
    set_time_limit(-1);
    EXPECT_FALSE(cancel.requested());
  }).join();
  cancel.throw_if_requested();
}
