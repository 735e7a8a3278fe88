// Products on a GPU. Each thread has one row: the groups' layout lets neighbouring threads read neighbouring values.
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
      for (i32 p = 0; p < run.length; ++p) s += T(v[p * step]) * x[i64(i + off[p]) * k + j];
      finish<E>(s, i, k, j, x, y, b, w);
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
  with_epilogue_of_all_rows(e, [&](auto known) { pattern_rows<decltype(known)::value>(executor, a.runs, k, x, y, b, w); });
  csr_product(executor, a.rest, e, k, x, y, b, w);
}

#define INSTANTIATE(T, V) template void row_pattern_product(Executor&, PatternBlock<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
INSTANTIATE(float, float)
INSTANTIATE(float, Bfloat16)
INSTANTIATE(double, double)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
