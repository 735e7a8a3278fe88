#include "asterism/la/assembly/assembly.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::la::kernel {

using i64 = std::int64_t;

// Each entry has one thread, and its sources are in a fixed order: no atomic sums, the same bits every time.

template <class I, class T>
void sum_entries(Executor& executor, i64 n, I const* offsets, I const* sources, T const* values, T const* base, T* out) {
  device::parallel_strides(executor, n, [=] ASTERISM_KERNEL(i64 first, i64 last, i64 step) {
    for (i64 e = first; e < last; e += step) {
      I const begin = offsets[e], end = offsets[e + 1];
#if !defined(ASTERISM_ON_GPU)
      // values of neighbouring elements are far from each other, and the hardware sees no stride in them
      for (i64 p = begin; p < end; ++p) __builtin_prefetch(values + sources[p + sources_ahead]);
#endif
      T sum = begin < end ? values[sources[begin]] : T(0);
      for (I p = begin + 1; p < end; ++p) sum += values[sources[p]];
      out[e] = base ? base[e] + sum : sum;
    }
  });
}

template <class I, class T>
void sum_received_entries(Executor& executor, i64 n, I const* places, I const* offsets, I const* sources, i64 own, T const* values,
                          T const* received, T const* base, T* out) {
  device::parallel_for(executor, n, [=] ASTERISM_KERNEL(i64 e) {
    T sum(0);
    for (I p = offsets[e]; p < offsets[e + 1]; ++p) {
      T const v = sources[p] < own ? values[sources[p]] : received[sources[p] - own];
      sum = p == offsets[e] ? v : sum + v;
    }
    I const at = places[e];
    out[at] = base ? base[at] + sum : sum;
  });
}

#define INSTANTIATE_FOR(I, T)                                                            \
  template void sum_entries(Executor&, i64, I const*, I const*, T const*, T const*, T*); \
  template void sum_received_entries(Executor&, i64, I const*, I const*, I const*, i64, T const*, T const*, T const*, T*);
#define INSTANTIATE(T)             \
  INSTANTIATE_FOR(std::int32_t, T) \
  INSTANTIATE_FOR(std::int64_t, T)
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE
#undef INSTANTIATE_FOR

}  // namespace asterism::la::kernel
