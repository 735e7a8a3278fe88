// Parallel loops over indices, for kernels.
//
// Host: the process's thread team (host/team.hpp); loops below `serial_below` run plain, because
// entering a parallel region costs some microseconds. Sums are formed over blocks of fixed length
// and combined in order, so the result does not depend on the number of threads.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/device/executor.hpp"

#if defined(ASTERISM_ON_GPU)
#include "asterism/device/gpu/parallel_gpu.hpp"
#else
#include "asterism/device/host/team.hpp"

namespace asterism::device {

inline constexpr std::int64_t serial_below = 4096;
inline constexpr std::int64_t sum_block = 4096;

/// f(begin, end) over disjoint pieces of [0, n): for kernels that keep state along a piece.
template <class F>
void parallel_ranges(Executor&, std::int64_t n, F const& f, std::int64_t serial = serial_below) {
  host::run_pieces(
      n, serial,
      [](void const* c, std::int64_t begin, std::int64_t end) {
        F const own = *static_cast<F const*>(c);  // what it captured can stay in registers: nobody else has its address
        own(begin, end);
      },
      &f);
}

/// f(begin, end, step) over all of [0, n): what a loop needs once it has before it. The step is 1 on the host; neighbouring threads of a
/// GPU take neighbouring indices.
template <class F>
void parallel_strides(Executor& executor, std::int64_t n, F const& f) {
  parallel_ranges(executor, n, [&](std::int64_t b, std::int64_t e) { f(b, e, std::int64_t(1)); });
}

/// f(i) for i in [0, n).
template <class F>
void parallel_for(Executor& executor, std::int64_t n, F const& f) {
  parallel_ranges(executor, n, [&](std::int64_t b, std::int64_t e) {
    for (std::int64_t i = b; i < e; ++i) f(i);
  });
}

/// Sums of k quantities: f(begin, end, step, acc) adds the contribution of a block to acc[0..k), with steps as above.
/// The blocks are the same for any number of threads, so the bits of the result are too. K: k where it is known, for a GPU's registers.
template <int K = 0, class T, class F>
void parallel_sum_blocks(Executor& executor, std::int64_t n, std::int64_t k, T* result, F const& f) {
  for (std::int64_t j = 0; j < k; ++j) result[j] = T(0);
  auto const blocks = (n + sum_block - 1) / sum_block;
  std::vector<T> partial(blocks > 1 ? std::size_t(blocks * k) : 0, T(0));
  parallel_ranges(
      executor, blocks,
      [f, n, k, blocks, sums = blocks > 1 ? partial.data() : result](std::int64_t b, std::int64_t e) {
        for (auto i = b; i < e; ++i) f(i * sum_block, i + 1 == blocks ? n : (i + 1) * sum_block, std::int64_t(1), sums + i * k);
      },
      1);
  if (blocks > 1)
    for (std::int64_t i = 0; i < blocks; ++i)
      for (std::int64_t j = 0; j < k; ++j) result[j] += partial[std::size_t(i * k + j)];
}

/// out[i] = sum of in[0..i), out[n] = total; returns the total. in and out may be the same array.
template <class T>
T exclusive_scan(Executor&, std::int64_t n, T const* in, T* out) {
  T sum = 0;  // memory-bound and short beside the loops around it: serial
  for (std::int64_t i = 0; i < n; ++i) {
    T const v = in[i];
    out[i] = sum;
    sum += v;
  }
  out[n] = sum;
  return sum;
}

}  // namespace asterism::device
#endif
