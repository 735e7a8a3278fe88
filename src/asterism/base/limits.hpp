// Sizes from which on the library works in another way. Tests lower them.
#pragma once
#include <cstdint>

namespace asterism {

/// 2^31 - 1 each, but for the last two. Tests lower them by the environment, so that small data get to what is done beyond.
struct Limits {
  std::int64_t narrow_index;  ///< up to here 32-bit indices are used, beyond it 64-bit ones: ASTERISM_TEST_NARROW_INDEX
  std::int64_t local_index;   ///< rows and columns of one rank; more are refused: ASTERISM_TEST_LOCAL_INDEX
  std::int64_t mpi_count;     ///< what an int of MPI's counts: ASTERISM_TEST_MPI_COUNT, which the plug-in for MPI reads too
  std::int64_t gather_ranks;  ///< 64: up to so many ranks each adds the parts of all, in their order: ASTERISM_TEST_GATHER_RANKS
  std::int64_t core_cache;    ///< bytes of cache that a core is taken to have, at most: ASTERISM_TEST_CORE_CACHE
};
Limits const& limits();

}  // namespace asterism
