#include "asterism/la/io/entry_lines.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "asterism/la/io/text_source.hpp"

using namespace asterism::la::io;

namespace {

struct Line {
  std::int64_t i, j;
  double re, im;
};

/// All lines that are read before the first that is refused.
std::vector<Line> lines_of(std::string text, int values, std::int64_t wanted = EntryLines::most) {
  auto const size = text.size();
  text.append(TextSource::readable_behind, '7');  // nothing behind the end may be taken
  static EntryLines found;
  std::vector<Line> out;
  char const* p = text.data();
  while (p < text.data() + size) {
    p = read_entry_lines(p, text.data() + size, values, wanted, found);
    for (std::int64_t e = 0; e < found.count; ++e) out.push_back({found.i[e], found.j[e], found.re[e], found.im[e]});
    if (found.count == 0) break;
  }
  return out;
}

std::string written(std::mt19937_64& random, double v) {
  char b[64];
  char const* const forms[] = {"%.17g", "%.16e", "%.3f", "%g", "%.20g", "%+.6e", "%.0f", "%.20e"};
  std::snprintf(b, sizeof b, forms[random() % 8], v);
  return b;
}

}  // namespace

TEST(EntryLines, NumbersOfAllFormsAreThoseOfStrtod) {
  std::mt19937_64 random(3);
  for (int values : {0, 1, 2}) {
    std::string text;
    std::vector<Line> expected;
    for (int k = 0; k < 20000; ++k) {
      auto const blanks = [&] { return random() % 8 ? std::string(" ") : std::string(1 + random() % 2, random() % 2 ? ' ' : '\t'); };
      auto const index = [&] { return std::int64_t(random() >> (12 + random() % 52)); };
      auto const real = [&] {
        double const v = std::ldexp(double(random()) * (random() % 2 ? 1 : -1), int(random() % 140) - (random() % 4 ? 120 : 1000));
        return written(random, random() % 50 ? random() % 3 ? v : std::round(v) : 0.0);
      };
      Line l{index(), index(), 1, 0};
      text += (random() % 9 ? "" : " ") + std::to_string(l.i) + blanks() + std::to_string(l.j);
      auto const taken = [&](double& v) {
        auto const s = real();
        v = std::strtod(s.c_str(), nullptr);
        text += blanks() + s;
      };
      if (values > 0) taken(l.re);
      if (values > 1) taken(l.im);
      expected.push_back(l);
      text += random() % 7 ? "\n" : random() % 2 ? " \n" : "\r\n";
    }
    for (auto const wanted : {std::int64_t(1), std::int64_t(100), EntryLines::most}) {
      auto const got = lines_of(text, values, wanted);
      ASSERT_EQ(got.size(), expected.size()) << values << " values: refused after line " << got.size();
      for (std::size_t e = 0; e < got.size(); ++e) {
        ASSERT_EQ(got[e].i, expected[e].i);
        ASSERT_EQ(got[e].j, expected[e].j);
        if (values > 0) {
          ASSERT_EQ(got[e].re, expected[e].re) << e;
          ASSERT_EQ(std::signbit(got[e].re), std::signbit(expected[e].re)) << e;
        }
        if (values > 1) {
          ASSERT_EQ(got[e].im, expected[e].im) << e;
        }
      }
    }
  }
}

TEST(EntryLines, AnythingElseEndsTheRun) {
  for (auto const* const line : {"",
                                 "% 1 2 3",
                                 "1 2",
                                 "1 2 x",
                                 "1 2 3 4",
                                 "1 2 3.4.5",
                                 "1 2 --3",
                                 "1 2 3e",
                                 "1 2 3e+",
                                 "1 2 .",
                                 "1 2 -",
                                 "1 2 1d5",
                                 "1 2 nan",
                                 "1 2 inf",
                                 "1.5 2 3",
                                 "-1 2 3",
                                 "1 -2 3",
                                 "1,2,3",
                                 "x 1 2",
                                 "12345678901234567 2 3",
                                 "1 2 1e99999",
                                 "1 2 0x10",
                                 "1 2\v3"}) {
    EXPECT_EQ(lines_of(std::string("1 1 1\n") + line + "\n1 1 1\n", 1).size(), 1u) << line;
  }
  EXPECT_EQ(lines_of("1 1 " + std::string(70, ' ') + "1\n", 1).size(), 0u);
  EXPECT_EQ(lines_of("1 1 1." + std::string(70, '0') + "\n", 1).size(), 0u);
  EXPECT_EQ(lines_of("1 1 1\n1 1 1", 1).size(), 1u) << "a last line without its end was completed from what is behind";
}
