#include "asterism/la/products/galerkin.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "asterism/la/products/row_product.hpp"

namespace asterism::la {
namespace {

/// Rows made one after the other, in a ring that has those still wanted. Positions are counted without end.
template <class T>
class Window {
 public:
  /// The first row; most rows wanted at a time; how many entries they may have, which is a guess.
  Window(i32 first, i64 rows, i64 entries) : next_(first), places_(i64(std::bit_ceil(std::uint64_t(rows + most_rows)))) { grow(entries); }

  i32 next() const { return next_; }
  auto row(i32 i) const {
    auto const& place = at(i);
    auto const p = place.begin & (capacity_ - 1);
    return typename WideRows<T>::Row{columns_.data() + p, values_.data() + p, place.size, capacity_ + slack - p};
  }
  T const* values(i32 i) const { return values_.data() + (at(i).begin & (capacity_ - 1)); }
  RowShape shape(i32 i) const { return at(i).shape; }

  // what is read soon; i may be no row of here, or not there yet
  void ask_for_place(i32 i) const { __builtin_prefetch(&at(i)); }
  void ask_for(i32 i) const {
    auto const p = at(i).begin & (capacity_ - 1);
    __builtin_prefetch(columns_.data() + p, 0, 2);
    __builtin_prefetch(values_.data() + p, 0, 2);
    __builtin_prefetch(values_.data() + p + 8, 0, 2);
  }

  /// Row r of the group as row next(). Those before `wanted` are no longer.
  void append(RowGroup<T> const& group, i32 r, RowShape shape, i32 wanted) {
    auto const begin = begin_for(group.length + chunk, wanted), p = begin & (capacity_ - 1);
    auto* const columns = columns_.data() + p;
    auto* const values = values_.data() + p;
    for (i64 l = 0; l < group.length; l += chunk)  // whole vectors: few loops end where a predictor does not know it
      for (i64 k = l; k < l + chunk; ++k) columns[k] = group.columns[k] + group.shift;
    if (group.width > 1) {
      copy_row(group, r, values);
    } else {
      for (i64 l = 0; l < group.length; l += chunk)
        for (i64 k = l; k < l + chunk; ++k) values[k] = group.values[k];
    }
    at(next_++) = {begin, i32(group.length), shape};
    head_ = begin + group.length;
  }

  /// The sum, which is like no other row.
  void append(SparseSum<T>& sum, i32 number, i32 wanted) {
    auto const begin = begin_for(sum.most(), wanted), p = begin & (capacity_ - 1);
    auto const size = sum.take(columns_.data() + p, values_.data() + p, false);
    at(next_++) = {begin, size, {size > 0 ? -2 - number : RowShape::empty, 0}};
    head_ = begin + size;
  }

 private:
  static constexpr i64 slack = 32;  // read behind the last row
  i64 begin_for(i64 most, i32 wanted) {
    auto const begin = [&] {
      auto const p = head_ & (capacity_ - 1);
      return p + most > capacity_ ? head_ + capacity_ - p : head_;
    };
    auto const oldest = wanted < next_ ? at(wanted).begin : head_;
    while (begin() + most - oldest > capacity_) grow(2 * capacity_);
    return begin();
  }
  struct Place {
    i64 begin;
    i32 size;
    RowShape shape;
  };
  Place& at(i32 i) const { return places_[i & (places_.size() - 1)]; }
  void grow(i64 entries) {
    auto const before = capacity_;
    auto const old_columns = std::exchange(columns_, {});
    auto const old_values = std::exchange(values_, {});
    capacity_ = i64(std::bit_ceil(std::uint64_t(entries)));
    columns_ = Buffer<i32>(capacity_ + slack);
    values_ = Buffer<T>(capacity_ + slack);
    for (auto v = std::max(i64(0), head_ - before); v < head_; ++v) {
      columns_[v & (capacity_ - 1)] = old_columns[v & (before - 1)];
      values_[v & (capacity_ - 1)] = old_values[v & (before - 1)];
    }
  }
  i32 next_;
  Buffer<Place> places_;
  Buffer<i32> columns_;
  Buffer<T> values_;
  i64 capacity_ = 0, head_ = 0;
};

/// A window's rows, and those of other ranks, as a Multiplier takes them.
template <class T>
class WindowRight {
 public:
  WindowRight(Window<T> const& window, Rows<T> const& far, ColumnMap const& map)
      : window_(&window), far_(&far), map_(&map), far_values_(far.val.data(), far.nnz()) {}
  typename WideRows<T>::Row row(i32 k) const {
    if (map_->is_own(k)) return window_->row(k - map_->below);
    auto const first = far_->ptr[far(k)];
    return {far_->col.data() + first, far_->val.data() + first, far_->ptr[far(k) + 1] - first, far_->nnz() - first};
  }
  T const* values(i32 k) const { return map_->is_own(k) ? window_->values(k - map_->below) : far_->val.data() + far_->ptr[far(k)]; }
  T const* roomy_values(i32 k) const { return map_->is_own(k) ? values(k) : far_values_.at(far_->ptr[far(k)]); }
  RowShape shape(i32 k) const {
    if (map_->is_own(k)) return window_->shape(k - map_->below);
    return {far_->ptr[far(k)] < far_->ptr[far(k) + 1] ? -2 - k : RowShape::empty, 0};
  }

 private:
  i32 far(i32 k) const { return k < map_->below ? k : k - map_->own; }
  Window<T> const* window_;
  Rows<T> const* far_;
  ColumnMap const* map_;
  RoomyValues<T> far_values_;
};

/// Rows of that part of A, times P, that R takes from other ranks. Collective.
template <class T>
GhostRows<T> far_rows(Rows<T> const& R, Rows<T> const& A, Part part, WideRows<T> const& P, Layout const& A_rows,
                      comm::Cancellation& cancel) {
  SparseSum<T> sum(P.columns.size());
  std::vector<i32> columns;
  return ghost_rows<T>(A_rows, R.map, [&](i32 i, std::vector<i64>& to, std::vector<T>& values) {
    if (is_look(i)) cancel.throw_if_requested();
    add_row(sum, A, i, part, P);
    columns.resize(std::size_t(sum.most()));
    auto const before = values.size();
    values.resize(before + columns.size());
    columns.resize(std::size_t(sum.take(columns.data(), values.data() + before, true)));
    values.resize(before + columns.size());
    for (auto const c : columns) to.push_back(P.columns.global(c));
  });
}

/// R (A P) with rows of A P in a window, and `far` for those that are not here.
template <class T>
void multiply_in_windows(Rows<T> const& R, Rows<T> const& A, Part part, WideRows<T> const& P, Rows<T> const& far,
                         Buffer<i32> const& first_wanted, Buffer<i32> const& last_wanted, i64 wanted_rows, Rows<T>& C,
                         comm::Cancellation& cancel) {
  double const share = part == Part::all ? 1 : 0.6;  // of A's entries
  // a third of the products stand in different places
  auto const entries_of_row = share * double(A.nnz()) / std::max(A.count, 1) * double(P.own.nnz()) / std::max(P.own.count, 1) / 3 + 1;
  constexpr i32 most_numbered = std::numeric_limits<i32>::max() / most_rows;
  auto shapes = A.count < most_numbered ? equal_rows_of(P) : Buffer<RowShape>();
  bool const equal = shapes.size() > 0;
  if (!equal) shapes = shapes_of(P);
  append_in_shares<T>(R.count, R.ptr.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    if (first == last) return;
    Window<T> window(first_wanted[first], wanted_rows, std::max(i64(1) << 14, i64(double(wanted_rows) * entries_of_row)));
    Multiplier<T, WideRight<T>> inner({P, shapes.data()}, C.map.size(), false, false, equal);
    WindowRight<T> const right(window, far, R.map);
    Multiplier<T, WindowRight<T>> outer(right, C.map.size(), true, false, equal);
    std::optional<SparseSum<T>> sum;  // of rows that are like no others
    Buffer<T> room;
    auto const entries = R.nnz();
    piece.reserve(i64(share * double(A.nnz()) / device::host::team_size()));
    for (i32 i = first, look = first; i < last;) {
      if (i >= look && (look += 256, cancel.requested())) return;
      i32 const rows = rows_alike(R, i, last);
      while (window.next() <= last_wanted[i + rows - 1]) {
        i32 const k = window.next(), alike = rows_alike(A, k, A.count);
        if (is_look(k) && cancel.requested()) return;
        if (alike == 1 && !inner.looks()) {
          if (!sum) sum.emplace(C.map.size());
          add_row(*sum, A, k, part, P);
          window.append(*sum, k + R.map.below, first_wanted[i]);
          continue;
        }
        auto const made = inner.multiply(group_of(A, k, alike, part, room));
        for (i32 r = 0; r < alike; ++r) window.append(made, r, inner.shape_as(k + r + R.map.below, r, made.length), first_wanted[i]);
      }
      if (!inner.gives_equal()) outer.look_at_values_no_more();
      if (!outer.gives_equal())
        for (auto p = R.ptr[i], end = R.ptr[i + 1]; p < end; ++p) {  // of later rows
          if (p + 96 < entries) window.ask_for_place(R.col[p + 96] - R.map.below);
          if (p + 48 < entries) window.ask_for(R.col[p + 48] - R.map.below);
        }
      if (rows == 1 && !outer.looks()) {
        if (!sum) sum.emplace(C.map.size());
        add_row(*sum, R, i, Part::all, right);
        append_row(piece, *sum, C.ptr[i + 1], true);
      } else {
        append_rows(piece, outer.multiply(group_of(R, i, rows, Part::all, room)), rows, C.ptr.data() + i + 1);
      }
      i += rows;
    }
  });
}

template <class T>
Rows<T> triple_product(Rows<T> const& R, Rows<T> const& A, Part part, Rows<T> const& P, Layout const& A_rows, Layout const& A_columns,
                       Layout const& P_columns, comm::Cancellation& cancel) {
  auto right = wide_rows(P, A_columns, P_columns, A.map);
  Rows<T> far;
  if (A_rows.comm().size() > 1) {
    auto const got = far_rows(R, A, part, right, A_rows, cancel);
    right.columns = joined(right.columns, got.columns, P_columns);
    renumber(right.own, right.columns);
    renumber(right.far, right.columns);
    far = local_rows(got, right.columns);
  }
  // a row of A P is made when a row of R first asks for it, with all before it, and kept until none does any more
  Buffer<i32> first_wanted(R.count + 1), last_wanted(R.count);  // by that row or a later one; by that one
  first_wanted[R.count] = A.count;
  i64 wanted_rows = 0;
  for (i32 i = R.count; i-- > 0;) {
    auto p = R.ptr[i], end = R.ptr[i + 1];
    while (p < end && R.col[p] < R.map.below) ++p;
    while (p < end && R.col[end - 1] >= R.map.below + R.map.own) --end;
    first_wanted[i] = p < end ? std::min(first_wanted[i + 1], R.col[p] - R.map.below) : first_wanted[i + 1];
    last_wanted[i] = p < end ? R.col[end - 1] - R.map.below : -1;
  }
  for (i32 i = 0, most = -1; i < R.count; ++i) {
    most = std::max(most, last_wanted[i]);
    wanted_rows = std::max(wanted_rows, i64(most) + 1 - first_wanted[i]);
  }
  // an unordered matrix: threads would compute the same rows, and each hold most of them
  auto const threads = device::host::team_size();
  if (threads > 1 && wanted_rows * threads > A.count) {
    auto made = sparse_product(A, part, right, cancel);
    return sparse_product(R, Part::all, wide_rows(std::move(made), std::move(far), R.map), cancel);
  }
  Rows<T> C;
  C.count = R.count;
  C.map = right.columns;
  C.ptr = Buffer<i64>(C.count + 1);
  multiply_in_windows(R, A, part, right, far, first_wanted, last_wanted, wanted_rows, C, cancel);
  return C;
}

}  // namespace

template <class T>
Rows<T> triple_product(Rows<T> const& R, Rows<T> const& A, Rows<T> const& P, Layout const& A_rows, Layout const& A_columns,
                       Layout const& P_columns, comm::Cancellation& cancel) {
  return triple_product(R, A, Part::all, P, A_rows, A_columns, P_columns, cancel);
}

template <class T>
Rows<T> hermitian_triple_product(Rows<T> const& R, Rows<T> const& A, Rows<T> const& P, Layout const& fine, Layout const& coarse,
                                 comm::Cancellation& cancel) {
  auto const half = triple_product(R, A, Part::lower_and_half_diagonal, P, fine, fine, coarse, cancel);
  return sparse_sum(T(1), half, T(1), transpose(half, coarse, coarse, true, cancel), coarse, cancel);
}

#define INSTANTIATE(T)                                                                                                         \
  template Rows<T> triple_product(Rows<T> const&, Rows<T> const&, Rows<T> const&, Layout const&, Layout const&, Layout const&, \
                                  comm::Cancellation&);                                                                        \
  template Rows<T> hermitian_triple_product(Rows<T> const&, Rows<T> const&, Rows<T> const&, Layout const&, Layout const&,      \
                                            comm::Cancellation&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
