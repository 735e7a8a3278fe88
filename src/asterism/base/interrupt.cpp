#include "asterism/base/interrupt.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "asterism/base/error.hpp"

namespace asterism {
namespace {

std::function<bool()>& poll() {
  static std::function<bool()> p;
  return p;
}

double interval = 0.05;

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

thread_local double time_ends = std::numeric_limits<double>::infinity();

}  // namespace

void set_interrupt_poll(std::function<bool()> p, double seconds) {
  poll() = std::move(p);
  interval = seconds;
}
double interrupt_interval() { return interval; }

void set_time_limit(double seconds) { time_ends = seconds_now() + seconds; }

double time_limit() { return time_ends; }
bool is_over(double time_limit) { return seconds_now() > time_limit; }

Interrupt interrupt_requested() {
  if (poll() && poll()()) return Interrupt::user;
  return seconds_now() > time_ends ? Interrupt::time_limit : Interrupt::none;
}

void require_time(double seconds, std::string const& what) {
  double const left = time_ends - seconds_now();
  if (seconds > left)
    fail(ErrorKind::time_limit, "the time is over: {} takes about {} s, and {} s are left", what, seconds, std::max(left, 0.0));
}

}  // namespace asterism
