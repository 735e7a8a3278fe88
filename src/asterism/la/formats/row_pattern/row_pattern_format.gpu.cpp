// Products on a GPU. Each thread has one row: groups and streams let neighbouring threads read neighbouring values.
#include "asterism/la/formats/row_pattern/row_pattern_format.kernels.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;
using i32 = std::int32_t;

template <Epilogue E, class T, class V>
struct PatternRow {
  PatternRows<T, V> a;
  i64 k;
  T const* x;
  T* y;
  T const* b;
  T const* w;

  __device__ void operator()(i64 place) const {
    i32 const i = i32(place);
    i32 r = a.run_at[i / tile_rows];
    while (a.runs[r].place + a.runs[r].count <= i) ++r;
    auto const run = a.runs[r];
    i32 const l = i - run.place;
    auto const* const off = a.offsets + run.offset_at;
    constexpr i32 W = group_rows<T>;
    i32 const at = l / W * W, in_group = l - (at + W <= run.count ? at : run.count - W);
    auto const value = [&](i32 p) {
      if (run.held > 0) return T(a.values[a.streams[run.value_at + p] + l]);
      return T(a.values[run.value_at + (run.uniform ? p : i64(at) * run.length + p * W + in_group)]);
    };
    i64 const row = run.first + i64(l) * run.row_step, column = run.first + i64(l) * run.column_step;
    for (i64 j = 0; j < k; ++j) {
      T s(0);
      for (i32 p = 0; p < run.length; ++p) s += value(p) * x[(column + off[p]) * k + j];
      finish<E>(s, row, k, j, x, y, b, w);
    }
  }
};

template <Epilogue E, class T, class V>
void pattern_rows(Executor& executor, PatternRows<T, V> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  device::parallel_for(executor, a.row_count, PatternRow<E, T, V>{a, k, x, y, b, w});
}

}  // namespace

template <class T, class V>
void row_pattern_product(Executor& executor, PatternBlock<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue(e, [&](auto known) { pattern_rows<decltype(known)::value>(executor, a.runs, k, x, y, b, w); });
  csr_product(executor, a.rest, e, k, x, y, b, w);
}

#define INSTANTIATE(T, V) template void row_pattern_product(Executor&, PatternBlock<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
INSTANTIATE(float, float)
INSTANTIATE(float, Bfloat16)
INSTANTIATE(double, double)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
