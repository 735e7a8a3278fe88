#include "asterism/base/limits.hpp"

#include <cstdlib>
#include <limits>

namespace asterism {
namespace {

std::int64_t limit(char const* variable, std::int64_t usual = std::numeric_limits<std::int32_t>::max()) {
  auto const* const text = std::getenv(variable);
  auto const lowered = text ? std::atoll(text) : 0;
  return lowered > 0 ? lowered : usual;
}

}  // namespace

Limits const& limits() {
  static Limits const l{limit("ASTERISM_TEST_NARROW_INDEX"), limit("ASTERISM_TEST_LOCAL_INDEX"), limit("ASTERISM_TEST_MPI_COUNT"),
                        limit("ASTERISM_TEST_GATHER_RANKS", 64),
                        limit("ASTERISM_TEST_CORE_CACHE", std::numeric_limits<std::int64_t>::max())};
  return l;
}

}  // namespace asterism
