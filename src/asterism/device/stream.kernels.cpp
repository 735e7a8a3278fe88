#include "asterism/device/stream.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "asterism/base/profile.hpp"
#include "asterism/device/array.hpp"

namespace asterism::device {

namespace {

void triad(double* x, double const* y, double const* z, double s, std::int64_t begin, std::int64_t end) {
  for (auto i = begin; i < end; ++i) x[i] = y[i] + s * z[i];
}

void triad_past_caches(double* x, double const* y, double const* z, double s, std::int64_t begin, std::int64_t end) {
#if defined(__SSE2__)
  if (begin % 2 == 1 && begin < end) triad(x, y, z, s, begin, begin + 1), ++begin;
  auto const factor = _mm_set1_pd(s);
  for (; begin + 1 < end; begin += 2)
    _mm_stream_pd(x + begin, _mm_add_pd(_mm_loadu_pd(y + begin), _mm_mul_pd(factor, _mm_loadu_pd(z + begin))));
  _mm_sfence();
#endif
  triad(x, y, z, s, begin, end);
}

}  // namespace

std::vector<double> stream_triad(std::int64_t n, int repeats, bool past_caches) {
  Array const a(std::size_t(n) * 8), b(std::size_t(n) * 8), c(std::size_t(n) * 8);
  Executor executor;
  auto *x = a.as<double>(), *y = b.as<double>(), *z = c.as<double>();
  parallel_for(executor, n, [=](std::int64_t i) { x[i] = 0, y[i] = 1, z[i] = 2; });
  std::vector<double> seconds;
  for (int r = 0; r < repeats; ++r) {
    double const start = profile::now(), s = 3.0 + r;
    parallel_ranges(executor, n, [=](std::int64_t begin, std::int64_t end) {
      past_caches ? triad_past_caches(x, y, z, s, begin, end) : triad(x, y, z, s, begin, end);
    });
    seconds.push_back(profile::now() - start);
  }
  return seconds;
}

}  // namespace asterism::device
