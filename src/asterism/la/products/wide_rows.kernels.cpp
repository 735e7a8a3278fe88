#include "asterism/la/products/wide_rows.hpp"

#include <algorithm>
#include <utility>

namespace asterism::la {

using i32 = std::int32_t;
using i64 = std::int64_t;

template <class T>
void renumber(Rows<T>& rows, ColumnMap const& map) {
  if (map.ghosts != rows.map.ghosts) {
    auto const number = renumbering(rows.map, map);
    auto const before = rows.col;
    rows.col = Buffer<i32>(rows.nnz());
    device::Executor executor;
    device::parallel_for(executor, rows.nnz(),
                         [to = rows.col.data(), from = before.data(), number = number.data()](i64 p) { to[p] = number[from[p]]; });
  }
  rows.map = map;
}

template <class T>
Rows<T> local_rows(GhostRows<T> const& rows, ColumnMap const& map) {
  Rows<T> out;
  out.count = i32(rows.lengths.size());
  out.map = map;
  out.ptr = Buffer<i64>(out.count + 1);
  out.ptr[0] = 0;
  for (i32 g = 0; g < out.count; ++g) out.ptr[g + 1] = out.ptr[g] + rows.lengths[std::size_t(g)];
  out.col = Buffer<i32>(out.nnz());
  out.val = Buffer<T>(out.nnz());
  for (i64 p = 0; p < out.nnz(); ++p) out.col[p] = map.local(rows.columns[std::size_t(p)]);
  std::copy(rows.values.begin(), rows.values.end(), out.val.data());
  return out;
}

template <class T>
WideRows<T> wide_rows(Rows<T> own, Rows<T> far, ColumnMap const& map) {
  WideRows<T> out{std::move(own), std::move(far), {}, map.below, {}};
  out.columns = out.own.map;
  out.begin = Buffer<i64>(map.size() + 1);
  device::Executor executor;
  device::parallel_for(executor, map.size(),
                       [=, to = out.begin.data(), ptr = out.own.ptr.data(), below = map.below, own_rows = map.own](i64 k) {
                         to[k] = k < below ? ~k : k < below + own_rows ? ptr[k - below] : ~(k - own_rows);
                       });
  return out;
}

template <class T>
WideRows<T> wide_rows(Rows<T> const& B, Layout const& B_rows, Layout const& B_columns, ColumnMap const& map) {
  if (B_rows.comm().size() == 1) return {B, {}, B.ptr, 0, B.map};
  auto const far = ghost_rows(B, B_rows, map);
  auto const columns = joined(B.map, far.columns, B_columns);
  auto own = B;
  renumber(own, columns);
  return wide_rows(std::move(own), local_rows(far, columns), map);
}

#define INSTANTIATE(T)                                                \
  template void renumber(Rows<T>&, ColumnMap const&);                 \
  template Rows<T> local_rows(GhostRows<T> const&, ColumnMap const&); \
  template WideRows<T> wide_rows(Rows<T>, Rows<T>, ColumnMap const&); \
  template WideRows<T> wide_rows(Rows<T> const&, Layout const&, Layout const&, ColumnMap const&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
