#include "asterism/base/options.hpp"

#include <gtest/gtest.h>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"

using namespace asterism;

namespace {
OptionTable const table = {integer_option("steps", 3, "number of steps", 1, 10), real_option("rtol", 1e-5, "tolerance", 0),
                           flag_option("monitor", false, "print"), choice_option("kind", "red", {"red", "blue"}, "colour")};

std::string error_of(auto const& f) {
  try {
    f();
  } catch (Error const& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST(Options, LaterLayersWinAndOriginsAreKept) {
  Options o;
  o.parse("-steps 4 -rtol -1 -monitor", OptionLayer::command_line, "command line");
  o.set("steps", "5", OptionLayer::call, "call");
  std::vector<EffectiveOption> record;
  OptionReader r(o, "", table, record);
  EXPECT_EQ(r.integer("steps"), 5);
  EXPECT_EQ(record.back().origin, "call");
  EXPECT_TRUE(r.flag("monitor"));
  EXPECT_EQ(r.text("kind"), "red");
  EXPECT_EQ(record.back().origin, "default");
  EXPECT_EQ(o.shadowed().size(), 1u);
  EXPECT_NE(error_of([&] { r.real("rtol"); }).find("-1 is outside"), std::string::npos);
}

TEST(Options, WrongValuesSayWhatIsAllowed) {
  Options o;
  o.parse("-steps many -kind bleu", OptionLayer::dict, "options");
  std::vector<EffectiveOption> record;
  OptionReader r(o, "", table, record);
  EXPECT_NE(error_of([&] { r.integer("steps"); }).find("'many' is not an integer"), std::string::npos);
  EXPECT_NE(error_of([&] { r.text("kind"); }).find("Did you mean 'blue'?"), std::string::npos);
}

TEST(Options, UnknownNamesFindTheNearest) {
  Options o;
  o.parse("-sub_stepz 4", OptionLayer::command_line, "command line");
  auto const text = error_of([&] { check_known(o, {&table}, "", {"sub_"}); });
  EXPECT_NE(text.find("unknown option -sub_stepz (command line)"), std::string::npos);
  EXPECT_NE(text.find("Did you mean -sub_steps?"), std::string::npos);
}

TEST(Options, TwoValuesInOneLayerAreAnError) {
  Options o;
  o.set("steps", "1", OptionLayer::dict, "a");
  EXPECT_NO_THROW(o.set("steps", "1", OptionLayer::dict, "a"));
  EXPECT_THROW(o.set("steps", "2", OptionLayer::dict, "b"), Error);
}

TEST(Errors, SizesThatOverflowSaySo) {
  EXPECT_THROW(checked_product(std::int64_t(1) << 40, std::int64_t(1) << 40, "x"), Error);
  EXPECT_EQ(checked_product(3, 4, "x"), 12);
  EXPECT_THROW(checked_local_index(std::int64_t(1) << 31, "rows"), Error);
}

TEST(Profile, NestedEventsShareTime) {
  profile::reset();
  int const outer = profile::event("test-outer"), inner = profile::event("test-inner");
  {
    profile::Scope const a(outer);
    profile::Scope const b(inner, 100, 10);
    profile::count_message(2, 16);
  }
  for (auto const& s : profile::snapshot()) {
    if (s.name == "test-outer") {
      EXPECT_LE(s.self_seconds, s.seconds);
    }
    if (s.name == "test-inner") {
      EXPECT_EQ(s.calls, 1);
      EXPECT_EQ(s.bytes, 100);
      EXPECT_EQ(s.messages, 2);
    }
  }
}
