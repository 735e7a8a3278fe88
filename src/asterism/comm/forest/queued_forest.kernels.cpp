#include "asterism/comm/forest/queued_forest.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::comm::kernel {

using i32 = std::int32_t;
using i64 = std::int64_t;

namespace {

/// As items.kernels.cpp has it. The order of complex numbers is never asked for.
template <class T>
ASTERISM_FN T combined(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum: return a + b;
    case ReduceOp::prod: return a * b;
    case ReduceOp::min:
      if constexpr (!is_complex_v<T>) return b < a ? b : a;
      break;
    case ReduceOp::max:
      if constexpr (!is_complex_v<T>) return a < b ? b : a;
      break;
    default: break;
  }
  return b;
}

}  // namespace

template <class T>
void gather(Executor& executor, i64 n, i64 k, i32 const* rows, T const* x, T* out) {
  device::parallel_strides(executor, n * k, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) {
    for (i64 i = begin; i < end; i += step) out[i] = x[k == 1 ? rows[i] : i64(rows[i / k]) * k + i % k];
  });
}

template <class T>
void take_in(Executor& executor, i64 places, i64 k, ReduceOp op, i32 const* at, i32 const* offsets, i32 const* sources, i64 own_first,
             i64 own_end, i64 own_shift, T const* packed, T const* received, T* out, T* before) {
  device::parallel_for(executor, places * k, [=] ASTERISM_KERNEL(i64 i) {
    i64 const p = i / k, j = i % k;
    T* const to = out + at[p] * k + j;
    // of what replaces only the last counts
    i32 const end = offsets[p + 1], begin = op == ReduceOp::replace && !before ? end - 1 : offsets[p];
    T v = *to;
    for (i32 s = begin; s < end; ++s) {
      i64 const e = sources[s];
      if (before) before[e * k + j] = v;
      v = combined(op, v, e >= own_first && e < own_end ? packed[(e + own_shift) * k + j] : received[e * k + j]);
    }
    *to = v;
  });
}

#define INSTANTIATE(T)                                                 \
  template void gather(Executor&, i64, i64, i32 const*, T const*, T*); \
  template void take_in(Executor&, i64, i64, ReduceOp, i32 const*, i32 const*, i32 const*, i64, i64, i64, T const*, T const*, T*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::comm::kernel
