// Products on a GPU (spmv.kernels.hpp; the host's form is spmv.kernels.cpp).
//
// Where rows stand in groups (row_pattern, sell) each thread has one row: the groups' layout lets neighbouring threads read neighbouring
// values. Rows of csr are shared by as many threads as half of their average length asks for (Bell and Garland 2009).
#include "asterism/base/dtype.hpp"
#include "asterism/la/formats/spmv.kernels.hpp"

namespace asterism::la::kernel {
namespace {

using device::gpu::Guards;
using i64 = std::int64_t;
using i32 = std::int32_t;

template <Epilogue E, class T>
struct PatternRow {
  PatternRows<T> a;
  i64 k;
  T const* x;
  T* y;
  T const* b;
  T const* w;

  __device__ void operator()(i64 row) const {
    constexpr i32 W = group_rows<T>;
    i32 const i = i32(row);
    i32 r = a.run_at[i / tile_rows];
    while (r < a.run_count && a.runs[r].end <= i) ++r;
    if (r == a.run_count || i < a.runs[r].first) return;  // in no run
    auto const run = a.runs[r];
    auto const* const off = a.offsets + run.offset_at;
    auto const* v = a.values + run.value_at;
    i64 step = 1;
    if (!run.uniform) {  // the last group ends with the run
      i32 const group = (i - run.first) / W, at = run.first + group * W, first = at + W <= run.end ? at : run.end - W;
      v += i64(group) * W * run.length + (i - first);
      step = W;
    }
    for (i64 j = 0; j < k; ++j) {
      T s(0);
      for (i32 p = 0; p < run.length; ++p) s += v[p * step] * x[i64(i + off[p]) * k + j];
      finish<E>(s, i, k, j, x, y, b, w);
    }
  }
};

template <Epilogue E, class T>
struct SellRow {
  SellRows<T> a;
  i64 k;
  T const* x;
  T* y;
  T const* b;
  T const* w;

  template <class I>
  __device__ void sum(I const* c, T const* v, i32 length, i64 base, i64 row) const {
    constexpr i32 W = group_rows<T>;
    for (i64 j = 0; j < k; ++j) {
      T s(0);
      for (i32 p = 0; p < length; ++p) s += v[i64(p) * W] * x[(base + i64(c[i64(p) * W])) * k + j];
      finish<E>(s, row, k, j, x, y, b, w);
    }
  }

  __device__ void operator()(i64 place) const {
    constexpr i32 W = group_rows<T>;
    i32 const i = i32(place);
    i32 r = a.run_at[i / tile_rows];
    while (a.runs[r].first + a.runs[r].groups * W <= i) ++r;
    auto const run = a.runs[r];
    i32 const within = i - run.first;
    i64 const at = i64(within / W) * W * run.length + within % W;
    auto const* const c = a.columns + run.column_at;
    auto const* const v = a.values + run.entry_at + at;
    i64 const row = a.row_ids[i];
    if (run.base == SliceRun::wide) sum(reinterpret_cast<std::uint32_t const*>(c) + at, v, run.length, 0, row);
    else sum(reinterpret_cast<std::uint16_t const*>(c) + at, v, run.length, run.base, row);
  }
};

template <class T>
__device__ T from_lane(T v, int lane_step, int width) {
#if defined(__HIPCC__)
  return __shfl_down(v, lane_step, width);
#elif defined(__CUDACC__)
  return __shfl_down_sync(0xffffffffu, v, lane_step, width);
#else
  return (void)lane_step, (void)width, v;  // never asked for: one lane
#endif
}
template <class R>
__device__ Complex<R> from_lane(Complex<R> v, int lane_step, int width) {
  return {from_lane(v.re, lane_step, width), from_lane(v.im, lane_step, width)};
}

/// `lanes` threads for each row.
template <Epilogue E, class T>
__global__ void csr_rows(Guards guards, CsrRows<T> a, int lanes, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (!guards.pass()) return;
  i64 const thread = i64(blockIdx.x) * blockDim.x + threadIdx.x, threads = i64(gridDim.x) * blockDim.x;
  int const lane = int(thread % lanes);
  // all threads of a warp go round equally often: they exchange sums
  for (i64 i0 = 0; i0 < a.row_count; i0 += threads / lanes) {
    i64 const i = i0 + thread / lanes;
    bool const mine = i < a.row_count;
    i64 const begin = mine ? a.offsets[i] : 0, end = mine ? a.offsets[i + 1] : 0;
    for (i64 j = 0; j < k; ++j) {
      T s(0);
      for (i64 p = begin + lane; p < end; p += lanes) s += a.values[p] * x[i64(a.columns[p]) * k + j];
      for (int half = lanes / 2; half > 0; half /= 2) s += from_lane(s, half, lanes);
      if (mine && lane == 0) finish<E>(s, a.row_ids ? a.row_ids[i] : i, k, j, x, y, b, w);
    }
  }
}

template <Epilogue E, class T>
void product_with(Executor& executor, ProductRows<T> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  if constexpr (!is_complex_v<T>) {
    if constexpr (E == Epilogue::assign || E == Epilogue::residual || E == Epilogue::smooth)
      if (a.pattern.run_count > 0) device::parallel_for(executor, a.pattern.row_count, PatternRow<E, T>{a.pattern, k, x, y, b, w});
    if (a.sell.run_count > 0) device::parallel_for(executor, a.sell.row_count, SellRow<E, T>{a.sell, k, x, y, b, w});
  }
  if (a.csr.row_count == 0) return;
  int const block = ASTERISM_GPU_BLOCK;
  int lanes = 1;
  while (block >= 32 && lanes < 32 && 2 * lanes * a.csr.row_count < a.csr.entries) lanes *= 2;
  i64 const blocks = (i64(a.csr.row_count) * lanes + block - 1) / block;
  device::gpu::launch(executor, csr_rows<E, T>, blocks < device::gpu::most_blocks ? blocks : device::gpu::most_blocks, block, 0,
                      Guards(executor), a.csr, lanes, k, x, y, b, w);
}

}  // namespace

template <class T>
void product(Executor& executor, ProductRows<T> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue(e, [&](auto known) { product_with<decltype(known)::value>(executor, a, k, x, y, b, w); });
}

#define INSTANTIATE(T) template void product(Executor&, ProductRows<T>, Epilogue, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
