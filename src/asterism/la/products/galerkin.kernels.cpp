#include "asterism/la/products/galerkin.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "asterism/device/parallel.hpp"
#include "asterism/la/formats/column_groups.hpp"
#include "asterism/la/products/group_sum.hpp"
#include "asterism/la/products/sparse_product.hpp"
#include "asterism/la/products/sparse_sum.hpp"

namespace asterism::la {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;

template <class T>
struct Row {
  i32 const* columns;
  T const* values;
  i64 size, room;  // entries that may be read
};

/// Rows made one after the other, in a ring that has those still wanted. Positions are counted without end.
template <class T>
class Window {
 public:
  /// The first row; most rows wanted at a time; how many entries they may have, which is a guess.
  Window(i32 first, i64 rows, i64 entries) : next_(first), places_(i64(std::bit_ceil(std::uint64_t(rows + 1)))) { grow(entries); }

  i32 next() const { return next_; }
  Row<T> operator[](i32 i) const {
    auto const& place = at(i);
    auto const p = place.begin & (capacity_ - 1);
    return {columns_.data() + p, values_.data() + p, place.size, capacity_ + slack - p};
  }
  // what is read soon; i may be no row of here, or not there yet
  void ask_for_place(i32 i) const { __builtin_prefetch(&at(i)); }
  void ask_for(i32 i) const {
    auto const p = at(i).begin & (capacity_ - 1);
    __builtin_prefetch(columns_.data() + p, 0, 2);
    __builtin_prefetch(columns_.data() + p + 8, 0, 2);
    __builtin_prefetch(values_.data() + p, 0, 2);
    __builtin_prefetch(values_.data() + p + 8, 0, 2);
  }

  /// Row next(). Those before `wanted` are no longer.
  template <class Sum>
  void append(Sum& sum, i32 wanted) {
    i64 const most = sum.most();
    auto const begin_for = [&] {
      auto const p = head_ & (capacity_ - 1);
      return p + most > capacity_ ? head_ + capacity_ - p : head_;
    };
    auto const oldest = wanted < next_ ? at(wanted).begin : head_;
    while (begin_for() + most - oldest > capacity_) grow(2 * capacity_);
    auto const begin = begin_for(), p = begin & (capacity_ - 1);
    i64 const size = sum.take(columns_.data() + p, values_.data() + p, false);
    at(next_++) = {begin, size};
    head_ = begin + size;
  }

 private:
  static constexpr i64 slack = 32;  // read behind the last row
  struct Place {
    i64 begin, size;
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

/// What of the inner matrix is multiplied.
enum class Part : std::uint8_t { all, lower_and_half_diagonal };

/// sum = row i of that part of A, times B
template <Part part, class T, class Sum>
void add_part_of_row(Sum& sum, Rows<T> const& A, i32 i, Rows<T> const& B) {
  if constexpr (part == Part::all) return add_row(sum, A, i, B);
  auto const* const bp = B.ptr.data();
  auto const* const ac = A.col.data();
  i32 const self = i + A.map.below;
  for (auto p = A.ptr[i], last = A.ptr[i + 1]; p < last && ac[p] <= self; ++p) {
    auto const k = ac[p];
    sum.add(k == self ? T(real_t<T>(0.5)) * A.val[p] : A.val[p], B.col.data() + bp[k], B.val.data() + bp[k], bp[k + 1] - bp[k],
            B.nnz() - bp[k]);
  }
}

/// Rows of A P that R takes from other ranks.
template <class T>
struct FarRows {
  std::vector<i64> ptr{0};
  std::vector<i32> columns;
  std::vector<T> values;
};

/// f(n) makes a sum of rows with n columns, which are those of P, by their groups if they have some.
template <class T, class F>
auto with_sum(i64 group, F const& f) {
  if (group <= 1) return f([](i32 n) { return SparseSum<T>(n); });
  return f([group](i32 n) { return GroupSum<T>(n, i32(group)); });
}

/// Collective. The columns of P and of `far` become those of the map that is returned.
template <Part part, class T>
ColumnMap fetch_far_rows(Rows<T> const& R, Rows<T> const& A, Rows<T>& P, Layout const& fine, Layout const& coarse, FarRows<T>& far,
                         comm::Cancellation& cancel) {
  auto got = with_sum<T>(group_width(P.ptr.data(), P.col.data(), P.count), [&](auto const& new_sum) {
    auto sum = new_sum(P.map.size());
    return ghost_rows<T>(fine, R.map, [&](i32 i, std::vector<i64>& columns, std::vector<T>& values) {
      if (is_look(i)) cancel.throw_if_requested();
      add_part_of_row<part>(sum, A, i, P);
      std::vector<i32> local(std::size_t(sum.most()));
      auto const before = values.size();
      values.resize(before + local.size());
      local.resize(std::size_t(sum.take(local.data(), values.data() + before, false)));
      values.resize(before + local.size());
      for (auto const c : local) columns.push_back(P.map.global(c));
    });
  });
  auto map = joined(P.map, got.columns, coarse);
  auto const renumber = renumbering(P.map, map);
  for (i64 p = 0; p < P.nnz(); ++p) P.col[p] = renumber[std::size_t(P.col[p])];  // on several ranks P is a copy
  for (auto const l : got.lengths) far.ptr.push_back(far.ptr.back() + l);
  for (auto const c : got.columns) far.columns.push_back(map.local(c));
  far.values = std::move(got.values);
  return map;
}

/// C = R (A P), with `far` for the rows of A P that are not here.
template <Part part, class T, class F>
void multiply(Rows<T> const& R, Rows<T> const& A, Rows<T> const& P, FarRows<T> const& far, F const& new_sum, Rows<T>& C,
              comm::Cancellation& cancel) {
  constexpr double share = part == Part::all ? 1 : 0.6;  // of A's entries
  // a row of A P is made when a row of R first asks for it, with all before it, and kept until none does any more
  auto const shares = device::host::team_size();
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
  // a third of the products stand in different places
  auto const entries_of_row = share * double(A.nnz()) / std::max(A.count, 1) * double(P.nnz()) / std::max(P.count, 1) / 3 + 1;
  // an unordered matrix: threads would compute the same rows, and each hold most of them
  Rows<T> AP;
  bool const formed = shares > 1 && wanted_rows * shares > A.count;
  if (formed) {
    AP.count = A.count;
    AP.ptr = Buffer<i64>(A.count + 1);
    append_in_shares<T>(A.count, A.ptr.data(), AP, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
      auto sum = new_sum(C.map.size());
      piece.reserve(i64(entries_of_row * (last - first)));
      for (i32 i = first; i < last; ++i) {
        if (is_look(i) && cancel.requested()) return;
        add_part_of_row<part>(sum, A, i, P);
        append_row(piece, sum, AP.ptr[i + 1], false);
      }
    });
  }
  append_in_shares<T>(R.count, R.ptr.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    auto sum = new_sum(C.map.size()), inner = new_sum(formed ? 0 : C.map.size());
    std::optional<Window<T>> window;
    if (!formed) window.emplace(first_wanted[first], wanted_rows, std::max(i64(1) << 14, i64(double(wanted_rows) * entries_of_row)));
    piece.reserve(i64(share * double(A.nnz()) / shares));
    auto const entries = R.nnz();
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      while (!formed && window->next() <= last_wanted[i]) {
        if (is_look(window->next()) && cancel.requested()) return;
        add_part_of_row<part>(inner, A, window->next(), P);
        window->append(inner, first_wanted[i]);
      }
      for (auto p = R.ptr[i], end = R.ptr[i + 1]; p < end; ++p) {
        i32 const k = R.col[p];
        Row<T> row;
        if (!R.map.is_own(k)) {
          auto const g = std::size_t(k < R.map.below ? k : k - R.map.own);
          row = {far.columns.data() + far.ptr[g], far.values.data() + far.ptr[g], far.ptr[g + 1] - far.ptr[g], far.ptr.back() - far.ptr[g]};
        } else if (i32 const f = k - R.map.below; formed) {
          row = {AP.col.data() + AP.ptr[f], AP.val.data() + AP.ptr[f], AP.ptr[f + 1] - AP.ptr[f], AP.nnz() - AP.ptr[f]};
        } else {
          row = (*window)[f];
          if (p + 80 < entries) window->ask_for_place(R.col[p + 80] - R.map.below);
          if (p + 40 < entries) window->ask_for(R.col[p + 40] - R.map.below);
        }
        sum.add(R.val[p], row.columns, row.values, row.size, row.room);
      }
      append_row(piece, sum, C.ptr[i + 1], true);
    }
  });
}

template <Part part, class T>
Rows<T> triple_product(Rows<T> const& R, Rows<T> const& A, Rows<T> P, Layout const& fine, Layout const& coarse,
                       comm::Cancellation& cancel) {
  Rows<T> C;
  C.count = R.count;
  C.map = P.map;
  C.ptr = Buffer<i64>(C.count + 1);
  FarRows<T> far;
  if (fine.comm().size() > 1) C.map = fetch_far_rows<part>(R, A, P, fine, coarse, far, cancel);
  auto const group =
      group_width(far.ptr.data(), far.columns.data(), i64(far.ptr.size()) - 1, group_width(P.ptr.data(), P.col.data(), P.count));
  with_sum<T>(group, [&](auto const& new_sum) { multiply<part>(R, A, P, far, new_sum, C, cancel); });
  return C;
}

}  // namespace

template <class T>
Rows<T> galerkin_product(Rows<T> const& R, Rows<T> const& A, Rows<T> P, Layout const& fine, Layout const& coarse,
                         comm::Cancellation& cancel) {
  return triple_product<Part::all>(R, A, std::move(P), fine, coarse, cancel);
}

template <class T>
Rows<T> hermitian_galerkin_product(Rows<T> const& R, Rows<T> const& A, Rows<T> P, Layout const& fine, Layout const& coarse,
                                   comm::Cancellation& cancel) {
  auto const half = triple_product<Part::lower_and_half_diagonal>(R, A, std::move(P), fine, coarse, cancel);
  return sparse_sum(T(1), half, T(1), transpose(half, coarse, coarse, true, cancel), coarse, cancel);
}

#define INSTANTIATE(T)                                                                                                           \
  template Rows<T> galerkin_product(Rows<T> const&, Rows<T> const&, Rows<T>, Layout const&, Layout const&, comm::Cancellation&); \
  template Rows<T> hermitian_galerkin_product(Rows<T> const&, Rows<T> const&, Rows<T>, Layout const&, Layout const&, comm::Cancellation&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
