#include "asterism/base/progress.hpp"

#include <time.h>

#include <algorithm>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/base/interrupt.hpp"

namespace asterism {
namespace {

constexpr std::int64_t milliseconds = 1'000'000;

std::function<void(ProgressReport const&)>& sink() {
  static auto* const s = new std::function<void(ProgressReport const&)>;
  return *s;
}

std::int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Progress::Progress(std::string what, double total)
    : what_(std::move(what)), total_(total), start_(now()), looked_(start_), asked_(start_) {}

Progress::~Progress() {
  if (told_ == 0) return;
  try {
    report(total_, true);
  } catch (...) {  // showing it is not worth an error
  }
}

void Progress::look(double done) {
  auto const t = now();
  // a look every millisecond or so
  if (t - looked_ < milliseconds / 2) stride_ = std::min(2 * stride_, 1 << 16);
  else if (t - looked_ > 4 * milliseconds) stride_ = std::max(stride_ / 8, 1);
  looked_ = t;
  calls_left_ = stride_;
  if (double(t - asked_) >= 1e9 * interrupt_interval()) {
    asked_ = t;
    if (auto const why = interrupt_requested(); why != Interrupt::none) {
      bool const by_user = why == Interrupt::user;
      fail(by_user ? ErrorKind::interrupted : ErrorKind::time_limit, "{}: {}{}", by_user ? "interrupted" : "the time is over", what_,
           total_ > 0 ? format(", {} % done", int(100 * std::min(done / total_, 1.0))) : std::string());
    }
  }
  if (t - start_ > 1000 * milliseconds && t - told_ > 200 * milliseconds) {
    told_ = t;
    report(done, false);
  }
}

void Progress::report(double done, bool ended) const {
  if (sink()) sink()({what_, total_ > 0 ? std::min(done / total_, 1.0) : -1, 1e-9 * double(now() - start_), ended});
}

void set_progress_sink(std::function<void(ProgressReport const&)> s) { sink() = std::move(s); }

std::string megabytes(double bytes) {
  return bytes < 1e6 ? format("{} kB", std::int64_t(bytes / 1e3)) : format("{} MB", std::int64_t(bytes / 1e6));
}

}  // namespace asterism
