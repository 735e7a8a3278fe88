#include "asterism/la/products/sparse_product.hpp"

#include <mutex>

#include "asterism/la/products/row_product.hpp"

namespace asterism::la {
namespace {

/// Pointers of Rows, which stay in registers.
template <class T>
struct RowsView {
  i64 const* ptr;
  i32 const* col;
  T* val;
  explicit RowsView(Rows<T> const& rows) : ptr(rows.ptr.data()), col(rows.col.data()), val(rows.val.data()) {}
};

/// Rows of C from group g to `stop`, up to the first that is more than one row, has places that are not vectors, or takes rows from
/// outside [begin, end) on the right, whose values are not where `right` says. Returns that group.
template <class T, class Group, class Near>
i64 multiply_near(Group const* groups, i64 g, i64 stop, ProductShapes::Shape const* shapes, u8 const* places, RowsView<T> A, Near right,
                  i32 begin, i32 end, RowsView<T> C) {
  if constexpr (Expansion<T>::exists)
    for (; g < stop; ++g) {
      i32 const i = groups[g].row;
      auto const& shape = shapes[groups[g].shape];
      auto const at = A.ptr[i], n = A.ptr[i + 1] - at;
      i32 const* const columns = A.col + at;
      if (groups[g + 1].row != i + 1 || shape.form == PlaceForm::each || columns[0] < begin || columns[n - 1] >= end) return g;
      // what some rows further on read: the processor follows some of these streams, not all
      auto const ask = [](auto const* p) { __builtin_prefetch(reinterpret_cast<void const*>(std::uintptr_t(p) + 2560)); };
      ask(columns);
      ask(A.val + at);
      ask(right.roomy_values(columns[n - 1]));
      with_vectors<T>(shape.form, shape.length, [&](auto form, auto vectors) {
        sum_vectors<form.value, vectors.value>(places + shape.places, n, columns, 0, A.val + at, 1, right, C.val + C.ptr[i], shape.length);
      });
    }
  return g;
}

}  // namespace

template <class T>
Rows<T> sparse_product(Rows<T> const& A, Part part, WideRows<T> const& B, comm::Cancellation& cancel, ProductPlaces* places) {
  Rows<T> C;
  C.count = A.count;
  C.map = B.columns;
  C.ptr = Buffer<i64>(C.count + 1);
  auto const shapes = shapes_of(B);
  double const entries_of_row = double(B.own.nnz()) / std::max(B.own.count, 1);
  std::mutex mutex;
  append_in_shares<T>(A.count, A.ptr.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    if (first == last) return;
    Multiplier<T, WideRight<T>> step({B, shapes.data()}, C.map.size(), true, places != nullptr);
    ProductPlaces::Share share;
    std::optional<SparseSum<T>> sum;  // of rows that are like no others
    Buffer<T> room;
    i64 const entries = A.ptr[last] - A.ptr[first];
    piece.reserve(std::min(i64(1.2 * entries_of_row * double(entries)), 8 * entries) + 1024);
    for (i32 i = first, look = first; i < last;) {
      if (i >= look && (look += 256, cancel.requested())) return;
      i32 const rows = rows_alike(A, i, last);
      if (rows == 1 && !places && !step.looks()) {
        if (!sum) sum.emplace(C.map.size());
        add_row(*sum, A, i, part, B);
        append_row(piece, *sum, C.ptr[i + 1], true);
        ++i;
        continue;
      }
      auto const row = step.multiply(group_of(A, i, rows, part, room));
      if (places) share.groups.push_back({i, step.shape()});
      append_rows(piece, row, rows, C.ptr.data() + i + 1);
      i += rows;
    }
    if (!places) return;
    share.groups.push_back({last, -1});
    step.take(share.shapes, share.places);
    std::lock_guard const lock(mutex);
    places->shares_.push_back(std::move(share));
  });
  if (places)
    std::sort(places->shares_.begin(), places->shares_.end(),
              [](auto const& x, auto const& y) { return x.groups.back().row < y.groups.back().row; });
  return C;
}

template <class T>
void ProductPlaces::multiply(Rows<T> const& A, WideRows<T> const& B, Rows<T> const& C, comm::Cancellation& cancel) const {
  constexpr i64 groups_of_chunk = 256;
  WideRight<T> const right(B, nullptr);
  auto const near = right.near();
  auto const [near_begin, near_end] = right.range_of_near();
  for (auto const& share : shares_) {
    auto const groups = i64(share.groups.size()) - 1;
    device::Executor executor;
    device::parallel_ranges(
        executor, (groups + groups_of_chunk - 1) / groups_of_chunk,
        [&](i64 begin, i64 end) {
          Buffer<T> first, sums;
          auto const* const all = share.places.data();
          i64 const last = std::min(end * groups_of_chunk, groups);
          for (i64 g = begin * groups_of_chunk, stop = g; g < last;) {
            if (g == stop) {
              if (cancel.requested()) return;
              stop = std::min(g + groups_of_chunk, last);
            }
            g = multiply_near(share.groups.data(), g, stop, share.shapes.data(), all, RowsView(A), near, near_begin, near_end, RowsView(C));
            if (g == stop) continue;
            auto const [i, number] = share.groups[std::size_t(g)];
            i32 const rows = share.groups[std::size_t(g + 1)].row - i;
            auto row = group_of(A, i, rows, Part::all, first);
            auto const& shape = share.shapes[number];
            T* const to = rows == 1 ? C.val.data() + C.ptr[i] : room_in(sums, shape.length * row.width);
            multiply_group(all, {shape.places, shape.form}, row, right, to, shape.length);
            row = {nullptr, 0, shape.length, to, row.width};
            if (rows > 1)
              for (i32 r = 0; r < rows; ++r) copy_row(row, r, C.val.data() + C.ptr[i + r]);
            ++g;
          }
        },
        1);
  }
  cancel.throw_if_requested();
}

template <class T>
Rows<T> sparse_sum(T alpha, Rows<T> const& A, T beta, Rows<T> const& B, Layout const& columns, comm::Cancellation& cancel) {
  Rows<T> C;
  C.count = A.count;
  C.map = joined(A.map, B.map.ghosts, columns);
  C.ptr = Buffer<i64>(C.count + 1);
  auto const of_a = renumbering(A.map, C.map), of_b = renumbering(B.map, C.map);
  Buffer<i64> work(A.count + 1);
  device::Executor executor;
  device::parallel_for(executor, A.count + 1,
                       [=, to = work.data(), a = A.ptr.data(), b = B.ptr.data()](i64 i) { to[i] = a[i] + b[i] + i; });
  append_in_shares<T>(A.count, work.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
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

#define INSTANTIATE(T)                                                                                                  \
  template Rows<T> sparse_product(Rows<T> const&, Part, WideRows<T> const&, comm::Cancellation&, ProductPlaces*);       \
  template void ProductPlaces::multiply(Rows<T> const&, WideRows<T> const&, Rows<T> const&, comm::Cancellation&) const; \
  template Rows<T> sparse_sum(T, Rows<T> const&, T, Rows<T> const&, Layout const&, comm::Cancellation&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
