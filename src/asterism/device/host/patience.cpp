#include "asterism/device/host/patience.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>

#include "asterism/device/host/team.hpp"

namespace asterism::device::host {
namespace {

constexpr std::int64_t while_wanted = 2'000;      // of looking: what is as good as there
constexpr std::int64_t gap = 300'000;             // no interrupt takes so long
constexpr std::int64_t remembered = 200'000'000;  // after a gap
std::atomic<std::int64_t> busy_until{0}, gaps{0};
std::atomic<int> helpers{0};

}  // namespace

std::int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void add_helper_threads(int more) { helpers += more; }

bool cores_are_wanted() {
  auto const& share = node_share();
  int const mine = team_size() + helpers.load(std::memory_order_relaxed);
  static int const allowed = allowed_cores();
  return mine > allowed || mine * share.ranks > std::max(share.cores, allowed) || busy_until.load(std::memory_order_relaxed) > now();
}

void notice_gap(std::int64_t nanoseconds) {
  if (nanoseconds < gap) return;
  ++gaps;
  busy_until.store(now() + remembered, std::memory_order_relaxed);
}

std::int64_t gaps_noticed() { return gaps.load(); }

bool Patience::look_at_clock() {
  auto const t = now();
  if (start_ == 0) {
    start_ = last_ = t;
    if (cores_are_wanted()) most_ = std::min(most_, while_wanted);
    return false;
  }
  notice_gap(t - last_);
  last_ = t;
  return t - start_ > most_;
}

}  // namespace asterism::device::host
