// The upper half of a float: its range, with 8 digits of 2. Stored only; all arithmetic is in float.
#pragma once
#include <cstdint>
#include <cstring>

#include "asterism/base/complex.hpp"

namespace asterism {

struct Bfloat16 {
  std::uint16_t bits;
  Bfloat16() = default;
  /// To the nearest one, ties to even; NaN stays NaN.
  ASTERISM_FN explicit Bfloat16(float x) {
    std::uint32_t b;
    memcpy(&b, &x, sizeof b);
    bool const is_nan = (b & 0x7fffffffu) > 0x7f800000u;
    bits = std::uint16_t(is_nan ? (b >> 16) | 0x40u : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
  }
  ASTERISM_FN operator float() const {
    std::uint32_t const b = std::uint32_t(bits) << 16;
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
  }
};

}  // namespace asterism
