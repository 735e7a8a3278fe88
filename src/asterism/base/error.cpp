#include "asterism/base/error.hpp"
#include "asterism/base/limits.hpp"

#include <limits>

namespace asterism {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::shape: return "ShapeError";
    case ErrorKind::dtype: return "DtypeError";
    case ErrorKind::value: return "InputError";
    case ErrorKind::option: return "OptionError";
    case ErrorKind::file: return "FileError";
    case ErrorKind::format: return "FormatError";
    case ErrorKind::comm: return "CommError";
    case ErrorKind::breakdown: return "BreakdownError";
    case ErrorKind::unsupported: return "UnsupportedError";
    case ErrorKind::memory: return "OutOfMemoryError";
    case ErrorKind::interrupted: return "Interrupted";
    case ErrorKind::time_limit: return "TimeLimitError";
    default: return "InternalError";
  }
}

std::int64_t checked_product(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t r;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r)) fail(ErrorKind::memory, "{}: {} x {} overflows a 64-bit size.", what, a, b);
  return r;
}

std::int32_t checked_local_index(std::int64_t n, std::string_view what) {
  ASTERISM_REQUIRE(n >= 0 && n <= limits().local_index, memory,
                   "{}: {} local indices do not fit in 32 bits (at most {} per rank). Use more ranks.", what, n, limits().local_index);
  return std::int32_t(n);
}

}  // namespace asterism
