// How often tests repeat what is random, or of many sizes.
#pragma once

namespace asterism::test {

/// Whether each step takes several times as long. The tests of the optimised library try everything.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// n, or a quarter of it under a sanitizer.
constexpr int repeats(int n) { return sanitized ? (n + 3) / 4 : n; }

/// Of the cases of loops within loops: under a sanitizer one in seven. Loops whose lengths are no multiples of seven still
/// meet each pair of their values.
class Thinned {
 public:
  bool skips() { return sanitized && turn_++ % 7 != 0; }

 private:
  unsigned turn_ = 0;
};

}  // namespace asterism::test
