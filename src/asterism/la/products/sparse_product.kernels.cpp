#include "asterism/la/products/sparse_product.hpp"

#include <algorithm>
#include <mutex>
#include <span>

#include "asterism/la/products/row_shapes.hpp"
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
constexpr std::size_t most_places = std::size_t(4) << 20;  // of shapes, where rows need not keep theirs

/// f(first, last) for shares of the chunks of so many rows, by all threads.
template <class F>
void for_chunks(i32 rows, comm::Cancellation& cancel, F const& f) {
  device::Executor executor;
  device::parallel_ranges(executor, (i64(rows) + rows_of_chunk - 1) / rows_of_chunk, f, 1);
  cancel.throw_if_requested();
}
/// f(the type of a place in a row of so many entries)
template <class F>
void with_place(i64 length, F const& f) {
  if (length <= 256) return f(std::uint8_t());
  if (length <= 65536) return f(std::uint16_t());
  f(std::uint32_t());
}

/// Rows of the right factor with the same columns follow each other where points have several unknowns, and in aggregates; so many at most
/// are added at a time, so that places and sums are read once for all of them.
constexpr i64 most_together = 4;

/// to[place[q]] += factors[0] b0[q] + factors[1] b1[q] + ..., one after the other, for g rows that begin at begins.
template <int g, class T, class Place>
void add_rows(T const* factors, T const* const* begins, i64 count, Place const* ASTERISM_RESTRICT place, T* ASTERISM_RESTRICT to) {
  T a[g];
  T const* b[g];
  for (int r = 0; r < g; ++r) a[r] = factors[r], b[r] = begins[r];
  for (i64 q = 0; q < count; ++q) {
    T sum = to[place[q]];
    for (int r = 0; r < g; ++r) sum += a[r] * b[r][q];
    to[place[q]] = sum;
  }
}

/// The sums of a row from its places (append_places).
template <class T>
void multiply_row(std::uint8_t const* places, i32 const* rows, T const* factors, i64 n, i64 const* bp, T const* bv, T* sums, i64 length) {
  with_place(length, [&](auto tag) {
    auto const* place = reinterpret_cast<decltype(tag) const*>(places);
    std::fill_n(sums, length, T(0));
    for (i64 t = 0; t < n;) {
      i64 const together = *place++;
      i64 const count = bp[rows[t] + 1] - bp[rows[t]];
      T const* begins[most_together];
      for (i64 r = 0; r < together; ++r) begins[r] = bv + bp[rows[t + r]];
      if (together == 1) add_rows<1>(factors + t, begins, count, place, sums);
      else if (together == 2) add_rows<2>(factors + t, begins, count, place, sums);
      else if (together == 3) add_rows<3>(factors + t, begins, count, place, sums);
      else add_rows<4>(factors + t, begins, count, place, sums);
      place += count;
      t += together;
    }
  });
}

/// Appends the places of the terms of row i of A B, which has these columns, and tells where they begin: how many rows of B with the same
/// columns follow each other, and the places of these columns.
template <class T>
i64 append_places(std::vector<std::uint8_t>& places, Rows<T> const& A, Rows<T> const& B, i32 i, i32 const* columns, i64 length,
                  Buffer<i32> const& place_of) {
  for (i64 l = 0; l < length; ++l) place_of[columns[l]] = i32(l);
  auto const columns_of = [&](i64 p) {
    i32 const k = A.col[p];
    return std::span(B.col.data() + B.ptr[k], std::size_t(B.ptr[k + 1] - B.ptr[k]));
  };
  i64 begin = 0;
  with_place(length, [&](auto tag) {
    using Place = decltype(tag);
    places.resize((places.size() + sizeof(Place) - 1) / sizeof(Place) * sizeof(Place));
    begin = i64(places.size());
    i64 const end = A.ptr[i + 1];
    places.resize(places.size() + std::size_t(multiplications(A, B, i, i + 1) + end - A.ptr[i]) * sizeof(Place));
    auto* to = reinterpret_cast<Place*>(places.data() + begin);
    for (auto p = A.ptr[i]; p < end;) {
      auto const row = columns_of(p);
      i64 together = 1;
      while (together < most_together && p + together < end && std::ranges::equal(columns_of(p + together), row)) ++together;
      *to++ = Place(together);
      for (auto const c : row) *to++ = Place(place_of[c]);
      p += together;
    }
    places.resize(std::size_t(reinterpret_cast<std::uint8_t*>(to) - places.data()));
  });
  return begin;
}

}  // namespace

template <class T>
Rows<T> sparse_product(Rows<T> const& A, Rows<T> const& B, comm::Cancellation& cancel, ProductPlaces* places) {
  Rows<T> C;
  C.count = A.count;
  C.map = B.map;
  C.ptr = Buffer<i64>(C.count + 1);
  auto const right = shapes_of(B);
  std::mutex mutex;
  if (places) places->begin_ = Buffer<i64>(A.count);
  append_in_shares<T>(A.count, A.ptr.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    SparseSum<T> sum(B.map.size());
    ProductShapes shapes;
    ProductPlaces::Part part{first, last, {}};
    Buffer<i32> const place_of(B.map.size());  // of the row's columns alone
    piece.reserve(std::min(multiplications(A, B, first, last), 8 * (A.ptr[last] - A.ptr[first]) + 1024));
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      auto const* const rows = A.col.data() + A.ptr[i];
      i64 const n = A.ptr[i + 1] - A.ptr[i];
      bool const looks = shapes.pays();
      if (auto const* const shape = looks ? shapes.find(rows, n, right.data()) : nullptr) {
        i64 const length = shape->length;
        piece.make_room(length);
        auto const* const columns = shapes.columns(*shape);
        auto* const to = piece.col.data() + piece.size;
        for (i64 l = 0; l < length; ++l) to[l] = columns[l] + shapes.shift();
        multiply_row(part.places.data() + shape->places, rows, A.val.data() + A.ptr[i], n, B.ptr.data(), B.val.data(),
                     piece.val.data() + piece.size, length);
        piece.size += length;
        C.ptr[i + 1] = length;
        if (places) places->begin_[i] = shape->places;
        continue;
      }
      add_row(sum, A, i, B);
      append_row(piece, sum, C.ptr[i + 1], true);
      if (!looks && !places) continue;
      if (looks && (shapes.is_full() || (!places && part.places.size() > most_places))) {
        shapes.clear();
        if (!places) part.places.clear();
      }
      i64 const length = C.ptr[i + 1];
      auto const* const columns = piece.col.data() + piece.size - length;
      auto const begin = append_places(part.places, A, B, i, columns, length, place_of);
      if (looks) shapes.add(columns, length, begin);
      if (places) places->begin_[i] = begin;
    }
    if (!places || first == last) return;
    part.places.shrink_to_fit();
    std::lock_guard const lock(mutex);
    places->parts_.push_back(std::move(part));
  });
  if (places) std::sort(places->parts_.begin(), places->parts_.end(), [](auto const& x, auto const& y) { return x.first < y.first; });
  return C;
}

template <class T>
void ProductPlaces::multiply(Rows<T> const& A, Rows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) const {
  for_chunks(C.count, cancel, [&](i64 begin, i64 end) {
    auto const *const ap = A.ptr.data(), *const bp = B.ptr.data(), *const cp = C.ptr.data();
    auto const* const ac = A.col.data();
    auto const *const av = A.val.data(), *const bv = B.val.data();
    auto* const cv = C.val.data();
    auto part = parts_.begin();
    for (auto chunk = begin; chunk < end; ++chunk) {
      auto const first = i32(chunk * rows_of_chunk), last = std::min(first + rows_of_chunk, C.count);
      for (i32 i = first; i < last; ++i) {
        while (i >= part->last) ++part;
        multiply_row(part->places.data() + begin_[i], ac + ap[i], av + ap[i], ap[i + 1] - ap[i], bp, bv, cv + cp[i], cp[i + 1] - cp[i]);
      }
      if (cancel.requested()) return;
    }
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
  template Rows<T> sparse_product(Rows<T> const&, Rows<T> const&, comm::Cancellation&, ProductPlaces*);             \
  template void ProductPlaces::multiply(Rows<T> const&, Rows<T> const&, Rows<T> const&, comm::Cancellation&) const; \
  template Rows<T> sparse_sum(T, Rows<T> const&, T, Rows<T> const&, Layout const&, comm::Cancellation&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
