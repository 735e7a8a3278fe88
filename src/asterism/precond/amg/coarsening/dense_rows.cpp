#include "asterism/precond/amg/coarsening/dense_rows.hpp"

#include <algorithm>
#include <cmath>

namespace asterism::precond::amg {

using i32 = std::int32_t;
using i64 = std::int64_t;

i64 longest_sparse_row(i64 rows, i64 bs) { return bs * i64(std::max(16.0, 10 * std::sqrt(double(rows / bs)))); }

template <class T>
void set_dense_rows_apart(NodeGraph& g, Rows<T> const& A, Layout const& layout, i64 bs, comm::Cancellation& cancel) {
  i32 const below = g.map.below;
  auto const most = longest_sparse_row(layout.global_size(), bs);
  Buffer<i32> dense(std::max(g.map.size(), 1), 0);
  for (i64 i = 0; i < A.count; ++i)
    if (A.ptr[i + 1] - A.ptr[i] > most) dense[below + i / bs] = 1;
  for (i32 v = 0; v < g.count; ++v)
    if (dense[below + v] != 0) g.alone.push_back(v);
  g.halo.update(dense.data());
  Rows<float> kept;
  kept.count = g.count;
  kept.ptr = Buffer<i64>(g.count + 1);
  append_in_shares<float>(g.count, g.ptr.data(), kept, cancel, [&](i32 first, i32 last, Piece<float>& piece) {
    piece.reserve(g.ptr[last] - g.ptr[first] + 1);
    for (i32 v = first; v < last; ++v) {
      if (is_look(v) && cancel.requested()) return;
      auto const before = piece.size;
      for (auto p = g.ptr[v]; p < g.ptr[v + 1]; ++p) {
        piece.col[piece.size] = g.col[p];
        piece.val[piece.size] = 1;
        piece.size += g.col[p] != v + below && dense[below + v] == 0 && dense[g.col[p]] == 0;
      }
      kept.ptr[v + 1] = piece.size - before;
    }
  });
  g.ptr = kept.ptr;
  g.col = kept.col;
  g.with_self = g.complete = false;
}

template void set_dense_rows_apart(NodeGraph&, Rows<double> const&, Layout const&, i64, comm::Cancellation&);
template void set_dense_rows_apart(NodeGraph&, Rows<Complex<double>> const&, Layout const&, i64, comm::Cancellation&);

}  // namespace asterism::precond::amg
