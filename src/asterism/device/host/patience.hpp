// How long a thread that waits for another one looks, before it sleeps and leaves its core to others.
//
// Looking is quick: what is waited for is seen within a fraction of a microsecond, where waking up takes some. But who looks keeps a core,
// and where there are more threads than cores that is the core which the other thread needs. So a thread looks for long only where
// all threads of this library have a core for themselves and nobody else seems to want one. It is known that somebody else does
// when a thread that looks finds that it did not run for a while.
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// Nanoseconds of a clock that does not jump.
std::int64_t now();

/// Whether there are more threads of this library on this machine than cores, or others were found to want the cores in the last 0.2 s.
bool cores_are_wanted();
/// This thread did not run for so many nanoseconds while it was ready to: those up to 0.3 ms mean nothing.
void notice_gap(std::int64_t nanoseconds);
/// Times that such a gap was noticed, in this process.
std::int64_t gaps_noticed();

/// Threads that work for queues and other helpers, beside the team.
void add_helper_threads(int more);

/// One wait. Call over() each time what is waited for is not there.
class Patience {
 public:
  /// Looks for up to `nanoseconds` where cores are free, 2 us where they are wanted.
  explicit Patience(std::int64_t nanoseconds = 200'000) : most_(nanoseconds) {}
  /// True when it is time to sleep.
  bool over() { return due() && look_at_clock(); }
  /// The same in two steps, since most times the clock need not be looked at.
  bool due() {
#if defined(__x86_64__)
    if (looks_ > 16) __builtin_ia32_pause();  // without it, what has come is seen later: looks under way have to be undone
#endif
    return ++looks_ % 32 == 0;
  }
  bool look_at_clock();

 private:
  std::int64_t most_, start_ = 0, last_ = 0;
  int looks_ = 0;
};

}  // namespace asterism::device::host
