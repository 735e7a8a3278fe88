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

constexpr i32 rows_of_chunk = 1024;

/// f(first, last) for shares of the chunks of so many rows, by all threads.
template <class F>
void for_chunks(i32 rows, comm::Cancellation& cancel, F const& f) {
  device::Executor executor;
  device::parallel_ranges(executor, (i64(rows) + rows_of_chunk - 1) / rows_of_chunk, f, 1);
  cancel.throw_if_requested();
}
/// f(a number of so many bytes)
template <class F>
void with_place(int width, F const& f) {
  if (width == 1) return f(std::uint8_t());
  if (width == 2) return f(std::uint16_t());
  f(std::uint32_t());
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
ProductPlaces::ProductPlaces(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) {
  i64 longest = 0;
  for (i32 i = 0; i < C.count; ++i) longest = std::max(longest, C.ptr[i + 1] - C.ptr[i]);
  width_ = longest <= 256 ? 1 : longest <= 65536 ? 2 : 4;
  begin_of_chunk_.push_back(0);
  for (i32 first = 0; first < C.count; first += rows_of_chunk)
    begin_of_chunk_.push_back(begin_of_chunk_.back() + multiplications(A, B, first, std::min(first + rows_of_chunk, C.count)));
  places_ = Buffer<std::uint8_t>(begin_of_chunk_.back() * width_);
  with_place(width_, [&](auto tag) {
    using Place = decltype(tag);
    for_chunks(C.count, cancel, [&](i64 begin, i64 end) {
      Buffer<i32> const place_of(B.map.size());  // of the row's columns alone
      for (auto chunk = begin; chunk < end; ++chunk) {
        auto* to = reinterpret_cast<Place*>(places_.data()) + begin_of_chunk_[std::size_t(chunk)];
        auto const first = i32(chunk * rows_of_chunk), last = std::min(first + rows_of_chunk, C.count);
        for (i32 i = first; i < last; ++i) {
          for (auto p = C.ptr[i]; p < C.ptr[i + 1]; ++p) place_of[C.col[p]] = i32(p - C.ptr[i]);
          for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p)
            for (auto q = B.ptr[A.col[p]]; q < B.ptr[A.col[p] + 1]; ++q) *to++ = Place(place_of[B.col[q]]);
        }
        if (cancel.requested()) return;
      }
    });
  });
}

template <class T>
void ProductPlaces::multiply(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) const {
  with_place(width_, [&](auto tag) {
    using Place = decltype(tag);
    for_chunks(C.count, cancel, [&](i64 begin, i64 end) {
      auto const *const ap = A.ptr.data(), *const bp = B.ptr.data(), *const cp = C.ptr.data();
      auto const* const ac = A.col.data();
      auto const *const av = A.val.data(), *const bv = B.val.data();
      for (auto chunk = begin; chunk < end; ++chunk) {
        auto const* ASTERISM_RESTRICT place = reinterpret_cast<Place const*>(places_.data()) + begin_of_chunk_[std::size_t(chunk)];
        auto const first = i32(chunk * rows_of_chunk), last = std::min(first + rows_of_chunk, C.count);
        for (i32 i = first; i < last; ++i) {
          T* const ASTERISM_RESTRICT sums = C.val.data() + cp[i];
          std::fill_n(sums, cp[i + 1] - cp[i], T(0));
          for (auto p = ap[i], end_of_row = ap[i + 1]; p < end_of_row; ++p) {
            T const a = av[p];
            for (auto q = bp[ac[p]], end_of_terms = bp[ac[p] + 1]; q < end_of_terms; ++q) sums[*place++] += a * bv[q];
          }
        }
        if (cancel.requested()) return;
      }
    });
  });
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

#define INSTANTIATE(T)                                                                                              \
  template Rows<T> sparse_product(Rows<T> const&, Rows<T> const&, comm::Cancellation&);                             \
  template ProductPlaces::ProductPlaces(Rows<T> const&, Rows<T> const&, Rows<T> const&, comm::Cancellation&);       \
  template void ProductPlaces::multiply(Rows<T> const&, Rows<T> const&, Rows<T> const&, comm::Cancellation&) const; \
  template Rows<T> sparse_sum(T, Rows<T> const&, T, Rows<T> const&, Layout const&, comm::Cancellation&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
