// Products on a GPU. Each thread has one row: the groups' layout lets neighbouring threads read neighbouring values.
#include "asterism/base/dtype.hpp"
#include "asterism/la/formats/sell/sell_format.kernels.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;
using i32 = std::int32_t;

template <Epilogue E, class T, class V>
struct SellRow {
  SellRows<T, V> a;
  i64 k;
  T const* x;
  T* y;
  T const* b;
  T const* w;

  template <class I>
  __device__ void sum(I const* c, V const* v, i32 length, i64 base, i64 row) const {
    constexpr i32 W = group_rows<T>;
    for (i64 j = 0; j < k; ++j) {
      T s(0);
      for (i32 p = 0; p < length; ++p) s += T(v[i64(p) * W]) * x[(base + i64(c[i64(p) * W])) * k + j];
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

}  // namespace

template <class T, class V>
void sell_product(Executor& executor, SellBlock<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  if constexpr (!is_complex_v<T>)
    if (a.grouped.run_count > 0)
      with_epilogue(e, [&](auto known) {
        device::parallel_for(executor, a.grouped.row_count, SellRow<decltype(known)::value, T, V>{a.grouped, k, x, y, b, w});
      });
  csr_product(executor, a.rest, e, k, x, y, b, w);
}

#define INSTANTIATE(T, V) template void sell_product(Executor&, SellBlock<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_STORED(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
