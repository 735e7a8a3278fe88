// Sums of float64 that are the same bits in whatever order and on however many processes the terms are added.
//
// Every term is cut at fixed places, 32 bits apart, into integers; those of one place add without rounding. The four places from the
// largest term of all downwards are kept, at least 95 bits below it, and rounded once (Demmel and Nguyen, ARITH 2013, with integers).
#pragma once
#include <cstdint>
#include <span>

namespace asterism {

/// Whether sums and products of everything from now on are to be the same bits on any ranks and threads: -reproducible.
bool reproducible();
void set_reproducible(bool on);

/// A sum as numbers that are themselves added (by MPI, say): element by element, in any order. For up to 2^32 terms in all: places
/// have no more room, because a carry out of one that is dropped in the end must not reach one that is kept.
struct ReproducibleSum {
  static constexpr int places = 68;
  /// For each place its integer, then for each the number of blocks whose largest term begins there, then the numbers of NaN, +inf
  /// and -inf.
  static constexpr int words = 2 * places + 3;
  static constexpr int most = 512;

  /// Adds x[0] ... x[n - 1], n <= most, to sum[0] ... sum[words - 1].
  static void add(double const* x, int n, std::int64_t* sum);
  static double value(std::span<std::int64_t const> sum);
};

}  // namespace asterism
