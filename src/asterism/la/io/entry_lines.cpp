#include "asterism/la/io/entry_lines.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "asterism/la/io/text_source.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace asterism::la::io {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr std::uint64_t integer_powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// fields begin at most at the line's end, and 64 characters from there, and words of 8 at these, are looked at
static_assert(64 + 8 <= TextSource::readable_behind);

/// Which of the 64 characters at p are no digits.
[[gnu::always_inline]] inline std::uint64_t other_than_digits(char const* p) {
  std::uint64_t out = 0;
#if defined(__SSE2__)
  auto const sixteen = [p](int k) {
    auto const c = _mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p + 16 * k)), _mm_set1_epi8('0'));
    return std::uint64_t(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(9)), c))) << (16 * k);
  };
  out = sixteen(0) | sixteen(1) | sixteen(2) | sixteen(3);
#else
  for (int k = 0; k < 8; ++k) {
    std::uint64_t c;
    std::memcpy(&c, p + 8 * k, 8);
    // a digit is 0x30 to 0x39: its upper half is 3, and still is with 6 added
    auto const off =
        ((c & 0xf0f0f0f0f0f0f0f0) | (((c & 0x7f7f7f7f7f7f7f7f) + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4) ^ 0x3333333333333333;
    auto const any = ((off & 0x7f7f7f7f7f7f7f7f) + 0x7f7f7f7f7f7f7f7f) | off;  // the highest bit of each byte that is not 0
    auto const digits = ~any & 0x8080808080808080;
    out |= ((digits >> 7) * 0x0102040810204080) >> 56 << (8 * k);
  }
#endif
  return ~out;
}

/// The number of the first n digits (0 to 8) at p.
std::uint64_t eight_digits(char const* p, int n) {
  std::uint64_t word;
  std::memcpy(&word, p, 8);
  word = n > 0 ? (word - 0x3030303030303030) << (64 - 8 * n) : 0;  // zeros in front
  word = word * 10 + (word >> 8);                                  // pairs, fours, eight
  return (((word & 0x000000ff000000ff) * 0x000f424000000064) + (((word >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >> 32;
}

/// Appends n digits.
[[gnu::always_inline]] inline std::uint64_t digits(char const* p, int n, std::uint64_t before = 0) {
  for (; n > 8; n -= 8, p += 8) before = before * integer_powers[8] + eight_digits(p, 8);
  return before * integer_powers[n] + eight_digits(p, n);
}

/// 10^e is between significand 2^exponent and (significand + 1) 2^exponent; the significand's highest bit is set.
struct Power {
  std::uint64_t significand;
  int exponent;
};
constexpr int most_exponent = 64;

constexpr auto powers = [] {
  std::array<Power, 2 * most_exponent + 1> out{};
  constexpr int limbs = 6;  // 5^e as it is, 2^384 / 5^e rounded down; both have 64 bits to spare
  using Wide = std::array<std::uint64_t, limbs>;
  auto const leading = [](Wide const& w, int exponent) {
    int top = limbs - 1;
    while (w[std::size_t(top)] == 0) --top;
    int const shift = std::countl_zero(w[std::size_t(top)]);
    auto const below = top > 0 ? w[std::size_t(top) - 1] : 0;
    return Power{w[std::size_t(top)] << shift | (shift > 0 ? below >> (64 - shift) : 0), exponent + 64 * top - shift};
  };
  Wide up{1}, down{};
  down[limbs - 1] = std::uint64_t(1) << 63;
  for (int e = 0; e <= most_exponent; ++e) {
    out[std::size_t(most_exponent + e)] = leading(up, e);
    out[std::size_t(most_exponent - e)] = leading(down, -e - (64 * limbs - 1));
    Uint128 carry = 0;
    for (auto& limb : up) {
      carry += static_cast<Uint128>(limb) * 5;
      limb = std::uint64_t(carry);
      carry >>= 64;
    }
    Uint128 rest = 0;
    for (auto limb = down.rbegin(); limb != down.rend(); ++limb) {
      rest = rest << 64 | *limb;
      *limb = std::uint64_t(rest / 5);
      rest %= 5;
    }
  }
  return out;
}();

/// mantissa 10^exponent, rounded once; false where that would need more than a product of 128 bits (Lemire 2021, without its second step).
[[gnu::always_inline]] inline bool scaled(std::uint64_t mantissa, int exponent, double& v) {
  if (exponent < -most_exponent || exponent > most_exponent) return false;
  if (mantissa == 0) {
    v = 0;
    return true;
  }
  auto const& power = powers[std::size_t(most_exponent + exponent)];
  int const shift = std::countl_zero(mantissa);
  // what is missing of the true product is less than 1 in these 64 bits
  auto const product = std::uint64_t(static_cast<Uint128>(mantissa << shift) * power.significand >> 64);
  int const high = int(product >> 63), gone = 10 + high;  // bits below the 53 that stay
  auto const half = std::uint64_t(1) << (gone - 1), low = product & (2 * half - 1);
  if (low - (half - 1) <= 1) return false;  // it may be a half, or on either side of it
  auto const significand = (product >> gone) + (low > half);
  // the significand's highest bit adds 1 to the exponent, and a carry of the rounding another
  auto const biased = std::uint64_t(power.exponent - shift + 64 + gone + 52 + 1022);
  v = std::bit_cast<double>((biased << 52) + significand);
  return true;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// The fields of the line at p. Where it has no more characters within reach, places are 64, at which fields are refused.
class Fields {
 public:
  explicit Fields(char const* p) : p_(p), other_(other_than_digits(p)) {}

  [[gnu::always_inline]] bool integer(std::int64_t& v) {
    blanks();
    auto const end = next();
    auto const n = end - at_;
    v = std::int64_t(digits(p_ + at_, n > 0 && n <= 16 ? n : 0));
    at_ = end;
    return n > 0 && n <= 16 && end < 64;
  }

  [[gnu::always_inline]] bool real(double& v) {
    blanks();
    auto const start = at_;
    bool const minus = p_[at_] == '-';
    if (minus || p_[at_] == '+') skip();
    auto const whole = at_;
    auto end = next();
    int const before = end - whole;
    int after = 0, exponent = 0;
    if (p_[end] == '.') {
      auto const fraction = end + 1;
      drop();
      end = next();
      after = end - fraction;
    }
    auto const mantissa_end = end;
    if (p_[end] == 'e' || p_[end] == 'E') {
      at_ = end;
      skip();
      bool const down = p_[at_] == '-';
      if (down || p_[at_] == '+') skip();
      end = next();
      auto const n = end - at_;
      if (n < 1 || n > 4) return false;
      exponent = int(digits(p_ + at_, n));
      if (down) exponent = -exponent;
    }
    at_ = end;
    auto const count = before + after;
    if (end >= 64 || before < 0 || count < 1) return false;
    if (count <= 19) {
      auto const mantissa = digits(p_ + mantissa_end - after, after, digits(p_ + whole, before));
      if (scaled(mantissa, exponent - after, v)) {
        if (minus) v = -v;
        return true;
      }
    }
    auto const* const first = p_ + (p_[start] == '+' ? start + 1 : start);
    auto const r = std::from_chars(first, p_ + end, v);
    return r.ec == std::errc() && r.ptr == p_ + end;
  }

  /// A blank is here, and fields beyond what was looked at may follow.
  [[gnu::always_inline]] bool further() {
    if (!is_blank(p_[at_])) return false;
    if (at_ > 24) *this = Fields(p_ + at_);
    return true;
  }

  /// The line ends here, and where the next one begins.
  [[gnu::always_inline]] char const* end() {
    while (is_blank(p_[at_]) && at_ < 64) skip();
    if (p_[at_] == '\r') skip();
    return at_ < 64 && p_[at_] == '\n' ? p_ + at_ + 1 : nullptr;
  }

 private:
  int next() const { return std::countr_zero(other_); }
  void drop() { other_ &= other_ - 1; }
  void skip() {  // a character that is no digit
    drop();
    ++at_;
  }
  void blanks() {
    while (is_blank(p_[at_]) && at_ < 64) skip();
  }
  char const* p_;
  std::uint64_t other_;  // those before at_ are 0
  int at_ = 0;
};

template <int values>
char const* read(char const* p, char const* stop, std::int64_t wanted, EntryLines& out) {
  std::int64_t n = 0;
  while (n < wanted && p < stop) {
    Fields line(p);
    bool ok = line.integer(out.i[n]) && line.further() && line.integer(out.j[n]);
    out.re[n] = 1;
    if constexpr (values > 0) ok = ok && line.further() && line.real(out.re[n]);
    if constexpr (values > 1) ok = ok && line.further() && line.real(out.im[n]);
    auto const* const after = ok ? line.end() : nullptr;
    if (!after) break;
    p = after;
    ++n;
  }
  out.count = n;
  return p;
}

}  // namespace

char const* read_entry_lines(char const* p, char const* stop, int values, std::int64_t wanted, EntryLines& out) {
  wanted = wanted < EntryLines::most ? wanted : EntryLines::most;
  if constexpr (std::endian::native != std::endian::little) wanted = 0;  // digits are taken eight at once, the first in the lowest byte
  return values == 0 ? read<0>(p, stop, wanted, out) : values == 1 ? read<1>(p, stop, wanted, out) : read<2>(p, stop, wanted, out);
}

}  // namespace asterism::la::io
