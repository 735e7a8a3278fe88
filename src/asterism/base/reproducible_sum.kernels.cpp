#include "asterism/base/reproducible_sum.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

namespace asterism {
namespace {

std::atomic<bool> is_reproducible{false};

constexpr int kept = 4, places = ReproducibleSum::places;
constexpr int lowest = -1088;  // place p counts multiples of 2^(32 p + lowest)
__extension__ using UnsignedWide = unsigned __int128;

/// Adding and subtracting it rounds to a multiple of 2^(-32 k).
constexpr double cutter(int k) {
  double c = 0x1.8p52;
  for (int i = 0; i < k; ++i) c *= 0x1p-32;
  return c;
}

}  // namespace

bool reproducible() { return is_reproducible.load(std::memory_order_relaxed); }
void set_reproducible(bool on) { is_reproducible = on; }

void ReproducibleSum::add(double const* x, int n, std::int64_t* sum) {
  double largest = 0, nothing = 0;
#pragma omp simd reduction(max : largest) reduction(+ : nothing)
  for (int i = 0; i < n; ++i) {
    double const a = std::abs(x[i]);
    largest = a > largest ? a : largest;
    nothing += x[i] * 0;  // of an infinity or NaN a NaN
  }
  bool const finite = nothing == 0;
  if (!finite) [[unlikely]] {
    std::array<double, most> rest;
    int m = 0;
    for (int i = 0; i < n; ++i) {
      if (std::isfinite(x[i])) rest[std::size_t(m++)] = x[i];
      else ++sum[2 * places + (std::isnan(x[i]) ? 0 : x[i] > 0 ? 1 : 2)];
    }
    return add(rest.data(), m, sum);
  }
  if (largest == 0) return;
  // all terms are below half the place above `top`, so nothing of them is cut there
  int const top = (std::ilogb(largest) - (lowest - 1)) / 32;
  int const shift = -(32 * top + lowest);  // to integers at the top place; one factor alone might overflow
  double const half = std::ldexp(1.0, shift / 2), other = std::ldexp(1.0, shift - shift / 2);
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (int i = 0; i < n; ++i) {
    double rest = x[i] * half * other;
    double const c0 = (rest + cutter(0)) - cutter(0);
    rest -= c0;
    double const c1 = (rest + cutter(1)) - cutter(1);
    rest -= c1;
    double const c2 = (rest + cutter(2)) - cutter(2);
    rest -= c2;
    s0 += c0;
    s1 += c1;
    s2 += c2;
    s3 += (rest + cutter(3)) - cutter(3);
  }
  ++sum[places + top];
  double const sums[kept] = {s0, s1 * 0x1p32, s2 * 0x1p64, s3 * 0x1p96};
  for (int k = 0; k < kept && k <= top; ++k) sum[top - k] += std::int64_t(sums[k]);
}

double ReproducibleSum::value(std::span<std::int64_t const> sum) {
  auto const nan = sum[2 * places], up = sum[2 * places + 1], down = sum[2 * places + 2];
  if (nan > 0 || (up > 0 && down > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (up > 0 || down > 0) return up > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  int top = places - 1;
  while (top >= 0 && sum[std::size_t(places + top)] == 0) --top;
  // what blocks of smaller terms have below depends on which terms stood together
  std::array<std::int64_t, places + 2> d{};
  for (int p = std::max(0, top - kept + 1); p <= top; ++p) d[std::size_t(p)] = sum[std::size_t(p)];
  auto const carry = [&] {  // all digits but the last to [0, 2^32)
    std::int64_t c = 0;
    for (std::size_t i = 0; i + 1 < d.size(); ++i) {
      auto const v = d[i] + c;
      d[i] = v & 0xffffffff;
      c = v >> 32;
    }
    d.back() += c;
  };
  carry();
  bool const negative = d.back() < 0;
  if (negative) {
    for (auto& v : d) v = -v;
    carry();
  }
  int first = int(d.size()) - 1;
  while (first > 0 && d[std::size_t(first)] == 0) --first;
  // four digits hold at least 97 bits; what is below only breaks ties
  UnsignedWide lead = 0;
  int const last = first - 3;
  for (int i = first; i >= last; --i) lead = lead << 32 | (i >= 0 ? std::uint64_t(d[std::size_t(i)]) : 0);
  for (int i = last - 1; i >= 0; --i) lead |= d[std::size_t(i)] != 0;
  double const v = std::ldexp(double(lead), 32 * last + lowest);
  return negative ? -v : v;
}

}  // namespace asterism
