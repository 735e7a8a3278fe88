#include "asterism/device/stream.hpp"

#include "asterism/base/profile.hpp"
#include "asterism/device/array.hpp"

namespace asterism::device {

std::vector<double> stream_triad(std::int64_t n, int repeats) {
  Array const a(std::size_t(n) * 8), b(std::size_t(n) * 8), c(std::size_t(n) * 8);
  Executor executor;
  auto *x = a.as<double>(), *y = b.as<double>(), *z = c.as<double>();
  parallel_for(executor, n, [=](std::int64_t i) { x[i] = 0, y[i] = 1, z[i] = 2; });
  std::vector<double> seconds;
  for (int r = 0; r < repeats; ++r) {
    double const start = profile::now(), s = 3.0 + r;
    parallel_ranges(executor, n, [=](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) x[i] = y[i] + s * z[i];
    });
    seconds.push_back(profile::now() - start);
  }
  return seconds;
}

}  // namespace asterism::device
