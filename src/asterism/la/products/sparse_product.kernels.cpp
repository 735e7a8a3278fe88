#include "asterism/la/products/sparse_product.hpp"

#include <algorithm>

#include "asterism/la/products/sparse_sum.hpp"

namespace asterism::la {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;

/// Multiplications of rows [first, last).
template <class T>
i64 multiplications(Rows<T> const& A, Rows<T> const& B, i32 first, i32 last) {
  i64 n = 0;
  for (auto p = A.ptr[first]; p < A.ptr[last]; ++p) n += B.ptr[A.col[p] + 1] - B.ptr[A.col[p]];
  return n;
}

}  // namespace

template <class T>
Rows<T> sparse_product(Rows<T> const& A, Rows<T> const& B, comm::Cancellation& cancel) {
  Rows<T> C;
  C.count = A.count;
  C.map = B.map;
  C.ptr = Buffer<i64>(C.count + 1);
  append_in_shares<T>(A.count, A.ptr.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    SparseSum<T> sum(B.map.size());
    piece.reserve(std::min(multiplications(A, B, first, last), 8 * (A.ptr[last] - A.ptr[first]) + 1024));
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      add_row(sum, A, i, B);
      append_row(piece, sum, C.ptr[i + 1], true);
    }
  });
  return C;
}

template <class T>
void sparse_product_values(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) {
  in_shares(C.count, C.ptr.data(), [&](i32 first, i32 last) {
    Buffer<T> const sums(B.map.size(), T(0));
    T* const ASTERISM_RESTRICT s = sums.data();
    auto const *const bp = B.ptr.data(), *const cp = C.ptr.data();
    auto const *const bc = B.col.data(), *const cc = C.col.data();
    auto const* const bv = B.val.data();
    auto* const cv = C.val.data();
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      for (auto p = A.ptr[i], end = A.ptr[i + 1]; p < end; ++p) {
        auto const k = A.col[p];
        T const a = A.val[p];
        for (auto q = bp[k]; q < bp[k + 1]; ++q) s[bc[q]] += a * bv[q];
      }
      for (auto p = cp[i]; p < cp[i + 1]; ++p) cv[p] = s[cc[p]], s[cc[p]] = T(0);
    }
  });
  cancel.throw_if_requested();
}

template <class T>
Rows<T> sparse_sum(T alpha, Rows<T> const& A, T beta, Rows<T> const& B, Layout const& columns, comm::Cancellation& cancel) {
  Rows<T> C;
  C.count = A.count;
  C.map = joined(A.map, B.map.ghosts, columns);
  C.ptr = Buffer<i64>(C.count + 1);
  auto const of_a = renumbering(A.map, C.map), of_b = renumbering(B.map, C.map);
  append_in_shares<T>(A.count, A.ptr.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    piece.reserve(A.ptr[last] - A.ptr[first] + B.ptr[last] - B.ptr[first]);
    auto at = piece.size;
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      auto const start = at;
      auto p = A.ptr[i], q = B.ptr[i];
      auto const p_end = A.ptr[i + 1], q_end = B.ptr[i + 1];
      while (p < p_end || q < q_end) {
        auto const a = p < p_end ? of_a[std::size_t(A.col[p])] : C.map.size();
        auto const b = q < q_end ? of_b[std::size_t(B.col[q])] : C.map.size();
        piece.col[at] = std::min(a, b);
        piece.val[at++] = a < b ? alpha * A.val[p] : b < a ? beta * B.val[q] : alpha * A.val[p] + beta * B.val[q];
        p += a <= b;
        q += b <= a;
      }
      C.ptr[i + 1] = at - start;
    }
    piece.size = at;
  });
  return C;
}

#define INSTANTIATE(T)                                                                                      \
  template Rows<T> sparse_product(Rows<T> const&, Rows<T> const&, comm::Cancellation&);                     \
  template void sparse_product_values(Rows<T> const&, Rows<T> const&, Rows<T> const&, comm::Cancellation&); \
  template Rows<T> sparse_sum(T, Rows<T> const&, T, Rows<T> const&, Layout const&, comm::Cancellation&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
