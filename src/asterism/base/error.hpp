// Errors whose type says whose fault it is and whose text carries the values and a hint.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "asterism/base/format.hpp"

namespace asterism {

enum class ErrorKind : std::uint8_t {
  shape,        ///< sizes or layouts do not fit together
  dtype,        ///< a scalar type that cannot be used here
  value,        ///< numbers in the input: NaN, index out of range, singular where it must not be
  option,       ///< an option's name, type or value
  file,         ///< cannot be opened, read, written
  format,       ///< a file's contents
  comm,         ///< communicators, MPI
  breakdown,    ///< a numerical method cannot go on
  unsupported,  ///< a combination that is not there
  memory,       ///< out of memory, or a size that overflows
  interrupted,  ///< Ctrl-C
  time_limit,   ///< of set_time_limit() (base/interrupt.hpp)
  internal,     ///< our fault
};

std::string_view name_of(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string const& text, bool shared = false) : std::runtime_error(text), kind_(kind), shared_(shared) {}
  ErrorKind kind() const { return kind_; }
  /// All ranks throw it, in the same call.
  bool shared() const { return shared_; }

 private:
  ErrorKind kind_;
  bool shared_;
};

template <class... A>
[[noreturn]] void fail(ErrorKind kind, std::string_view text, A const&... args) {
  throw Error(kind, format(text, args...));
}

/// Always-on check for users, O(1): problem with its values, then a hint.
#define ASTERISM_REQUIRE(condition, kind, ...)                                    \
  do {                                                                            \
    if (!(condition)) ::asterism::fail(::asterism::ErrorKind::kind, __VA_ARGS__); \
  } while (0)
/// The same of what all ranks of a collective call know alike, so that all throw and none has to be told.
#define ASTERISM_REQUIRE_ALIKE(condition, kind, ...)                                                               \
  do {                                                                                                             \
    if (!(condition)) throw ::asterism::Error(::asterism::ErrorKind::kind, ::asterism::format(__VA_ARGS__), true); \
  } while (0)

/// Our own invariants.
#define ASTERISM_ASSERT(condition)                                  \
  do {                                                              \
    if (!(condition))                                               \
      ::asterism::fail(::asterism::ErrorKind::internal,             \
                       "internal error: {} does not hold ({}:{}). " \
                       "Please report it with the input.",          \
                       #condition, __FILE__, __LINE__);             \
  } while (0)

/// a * b as a size; an error that says "overflow", not "out of memory".
std::int64_t checked_product(std::int64_t a, std::int64_t b, std::string_view what);
/// Narrows a local count to the 32-bit index type of columns.
std::int32_t checked_local_index(std::int64_t n, std::string_view what);

}  // namespace asterism
