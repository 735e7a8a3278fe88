// One row of a product after the other, for the kernels of products alone (*.kernels.cpp).
#pragma once
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "asterism/la/formats/simd_group.hpp"
#include "asterism/la/products/expanded_rows.hpp"
#include "asterism/la/products/sparse_product.hpp"
#include "asterism/la/products/sparse_sum.hpp"

namespace asterism::la {
namespace {  // each file's own, so that the compiler inlines what has one caller

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;

constexpr i32 most_rows = 8;                                // that are multiplied together
constexpr std::size_t most_places = std::size_t(4) << 20;   // of shapes, where rows need not keep theirs
constexpr std::size_t most_indices = std::size_t(1) << 18;  // bytes of places that are written as indices
constexpr std::size_t most_results = std::size_t(1) << 18;  // values of rows that are found again

/// Up to `width` rows with the same columns, and of each column one value a row.
template <class T>
struct RowGroup {
  i32 const* columns;
  i32 shift;  // of columns
  i64 length;
  T const* values;
  i32 width;  // 1, 2, 4 or 8
};

/// f(the type of a place in a row of so many entries)
template <class F>
void with_place(i64 length, F const& f) {
  if (length <= 255) return f(std::uint8_t());
  if (length <= 65535) return f(std::uint16_t());
  f(std::uint32_t());
}

/// Zeros that are memory only where they are written.
template <class T>
class Zeros {
 public:
  explicit Zeros(i64 n) : data_(static_cast<T*>(std::calloc(std::size_t(n) + 1, sizeof(T))), &std::free) {
    if (!data_) throw std::bad_alloc();
  }
  T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T, decltype(&std::free)> data_;
};

constexpr i64 chunk = 8;  // entries that are copied at a time, also where fewer are left

/// Room that grows; a chunk more may be read.
template <class T>
T* room_in(Buffer<T>& buffer, i64 n) {
  if (buffer.size() < n + chunk) buffer = Buffer<T>(2 * n + chunk);
  return buffer.data();
}

/// Rows on the right with the same columns follow each other where points have several unknowns, and in aggregates; so many at most are
/// added at a time, so that places and sums are read once for all of them.
constexpr i64 most_together = 4;

/// WideRows and the shapes of their rows, as a Multiplier takes them.
template <class T>
class WideRight {
 public:
  WideRight(WideRows<T> const& rows, RowShape const* shapes)
      : rows_(&rows),
        shapes_(shapes),
        begin_(rows.begin.data()),
        far_begin_(rows.far.ptr.data()),
        own_(rows.own.val.data(), rows.own.nnz()),
        far_(rows.far.val.data(), rows.far.nnz()) {}
  auto row(i32 k) const { return rows_->row(k); }
  T const* values(i32 k) const {
    auto const at = begin_[k];
    return at >= 0 ? own_.data() + at : far_.data() + far_begin_[~at];
  }
  /// The same, where more may be read (expanded_rows.hpp).
  T const* roomy_values(i32 k) const {
    auto const at = begin_[k];
    return at >= 0 ? own_.at(at) : far_.at(far_begin_[~at]);
  }
  RowShape shape(i32 k) const { return shapes_[k]; }

  /// Rows of here, where nothing is to be asked.
  struct Near {
    i64 const* begin;
    T const* own;
    T const* roomy_values(i32 k) const { return own + begin[k]; }
  };
  Near near() const { return {begin_, own_.data()}; }
  /// Which rows these are: the first, and one behind the last.
  std::pair<i32, i32> range_of_near() const {
    auto const* const first = begin_ + rows_->below;
    return {rows_->below, i32(std::lower_bound(first, first + rows_->own.count, own_.limit()) - begin_)};
  }

 private:
  WideRows<T> const* rows_;
  RowShape const* shapes_;
  i64 const *begin_, *far_begin_;
  RoomyValues<T> own_, far_;
};

/// to[place[q]] += a0 b0[q] + a1 b1[q] + ..., one after the other, for `together` rows on the right and `width` ones of the product.
template <int width, int together, class T, class Right, class Place>
void add_rows(T const* factors, Right const& right, i32 const* rows, i32 shift, i64 count, Place const* ASTERISM_RESTRICT place,
              T* ASTERISM_RESTRICT to) {
  T const* b[together];
  for (int r = 0; r < together; ++r) b[r] = right.values(rows[r] + shift);
  if constexpr (width == 1 || is_complex_v<T> || width * sizeof(T) < 16) {
    T a[together][width];
    for (int r = 0; r < together; ++r)
      for (int w = 0; w < width; ++w) a[r][w] = factors[r * width + w];
    for (i64 q = 0; q < count; ++q) {
      T* const sums = to + i64(place[q]) * width;
      for (int w = 0; w < width; ++w) {
        T sum = sums[w];
        for (int r = 0; r < together; ++r) sum += a[r][w] * b[r][q];
        sums[w] = sum;
      }
    }
  } else {
    using G = kernel::Group<T, width * sizeof(T)>;
    typename G::type a[together];
    for (int r = 0; r < together; ++r) a[r] = G::load(factors + r * width);
    for (i64 q = 0; q < count; ++q) {
      T* const sums = to + i64(place[q]) * width;
      auto sum = G::load(sums);
      for (int r = 0; r < together; ++r) sum += b[r][q] * a[r];
      G::store(sum, sums);
    }
  }
}

/// The sums of a group of rows from its places (append_places).
template <int width, class T, class Right>
void multiply_group(u8 const* places, RowGroup<T> const& in, Right const& right, T* sums, i64 length) {
  with_place(length, [&](auto tag) {
    auto const* place = reinterpret_cast<decltype(tag) const*>(places);
    std::fill_n(sums, length * width, T(0));
    for (i64 t = 0; t < in.length;) {
      i64 const together = place[0], count = place[1];
      place += 2;
      T const* const factors = in.values + t * width;
      i32 const* const rows = in.columns + t;
      t += together;
      if (count == 0) continue;
      if (together == 1) add_rows<width, 1>(factors, right, rows, in.shift, count, place, sums);
      else if (together == 2) add_rows<width, 2>(factors, right, rows, in.shift, count, place, sums);
      else if (together == 3) add_rows<width, 3>(factors, right, rows, in.shift, count, place, sums);
      else add_rows<width, 4>(factors, right, rows, in.shift, count, place, sums);
      place += count;
    }
  });
}
/// The same of rows whose places are vectors; several at a time are rare.
template <class T, class Right>
void multiply_vectors(u8 const* place, PlaceForm form, RowGroup<T> const& in, Right const& right, T* sums, i64 length) {
  if constexpr (Expansion<T>::exists)
    with_vectors<T>(form, length,
                    [&]<PlaceForm is, int vectors>(std::integral_constant<PlaceForm, is>, std::integral_constant<int, vectors>) {
                      auto const row = [&](i32 w, T* to) {
                        sum_vectors<is, vectors>(place, in.length, in.columns, in.shift, in.values + w, in.width, right, to, length);
                      };
                      if (in.width == 1) return row(0, sums);
                      T values[most_expanded];
                      for (i32 w = 0; w < in.width; ++w) {
                        row(w, values);
                        for (i64 l = 0; l < length; ++l) sums[l * in.width + w] = values[l];
                      }
                    });
}
template <class T, class Right>
void multiply_group(u8 const* all, Places at, RowGroup<T> const& in, Right const& right, T* sums, i64 length) {
  auto const* const places = all + at.begin;
  if (at.form != PlaceForm::each) return multiply_vectors(places, at.form, in, right, sums, length);
  switch (in.width) {
    case 1: return multiply_group<1>(places, in, right, sums, length);
    case 2: return multiply_group<2>(places, in, right, sums, length);
    case 4: return multiply_group<4>(places, in, right, sums, length);
    default: return multiply_group<8>(places, in, right, sums, length);
  }
}

/// One thread's multiplication by one factor. Rows that are like no others are quicker by a SparseSum (add_row), unless places are kept.
/// Where rows on the right with one number have equal values, rows of the product whose factors are equal too are computed once.
template <class T, class Right>
class Multiplier {
 public:
  /// Columns of the result ascend if asked for, and places are kept. equal: so are rows on the right with one number.
  Multiplier(Right const& right, i32 columns, bool ascending, bool keeps, bool equal = false)
      : right_(right),
        columns_(columns),
        ascending_(ascending),
        keeps_(keeps),
        numbers_(equal ? most_rows : 1),
        equal_(equal),
        seen_(columns),
        place_of_(columns),
        list_(columns + chunk) {}

  /// Whether rows are alike so often that it pays to look.
  bool looks() {
    if (equal_ && !shapes_.pays()) look_at_values_no_more();
    return shapes_.pays();
  }
  /// Whether rows of the product with one number have equal values.
  bool gives_equal() const { return equal_; }
  /// Rows on the right with one number need not be equal from now on.
  void look_at_values_no_more() {
    if (!std::exchange(equal_, false)) return;
    results_ = {};
    places_.clear();
    shapes_.start_again();
  }
  /// Valid until the next one.
  RowGroup<T> multiply(RowGroup<T> const& in) {
    bool const looks = this->looks();
    ValueWords<T> const factors = equal_ ? ValueWords<T>(in.values, in.length * in.width) : ValueWords<T>();
    found_ = looks ? shapes_.find(in.length, [&](i64 t) { return right_.shape(in.columns[t] + in.shift); }, factors) : -1;
    alone_ = !looks;
    if (equal_ && found_ >= 0) {
      auto const& shape = shapes_[found_];
      return {shapes_.columns(shape), shapes_.shift(), shape.length, results_.data() + shape.places, in.width};
    }
    i32 const* columns = nullptr;
    if (found_ < 0) {
      if (!keeps_ && (!looks || shapes_.is_full() || places_.size() > most_places || results_.size() > most_results))
        places_.clear(), results_.clear(), shapes_.forget(false);
      else if (shapes_.is_full()) shapes_.forget(true);
      auto const length = unite(in);
      columns = ascending_ ? ordered_.data() : list_.data();
      if (equal_) {
        places_.clear();
        auto const places = append_places(in, columns, length);
        auto const at = results_.size();
        results_.resize(at + std::size_t(length * in.width + chunk));
        multiply_group(places_.data(), places, in, right_, results_.data() + at, length);
        found_ = shapes_.add(columns, length, {i64(at)});
        return {columns, 0, length, results_.data() + at, in.width};
      }
      auto const places = append_places(in, columns, length);
      found_ = looks ? shapes_.add(columns, length, places) : shapes_.add_alone(ascending_ ? nullptr : columns, length, places);
    }
    auto const& shape = shapes_[found_];
    T* const sums = room_in(sums_, shape.length * in.width);
    multiply_group(places_.data(), {shape.places, shape.form}, in, right_, sums, shape.length);
    if (columns && ascending_) return {columns, 0, shape.length, sums, in.width};
    return {shapes_.columns(shape), shapes_.shift(), shape.length, sums, in.width};
  }
  /// The last group's, where places are kept.
  i32 shape() const { return found_; }
  i32 shift() const { return shapes_.shift(); }
  /// That of row r of the last group, as that of row k where it is like no other. Rows of a group have the same columns.
  RowShape shape_as(i32 k, i32 r, i64 length) const {
    if (length == 0) return {RowShape::empty, 0};
    return alone_ ? RowShape{-2 - k, 0} : RowShape{shapes_.identity(found_) * numbers_ + (equal_ ? r : 0), shapes_.shift()};
  }
  void take(ProductShapes& shapes, std::vector<u8>& places) {
    shapes_.forget_keys();
    places_.shrink_to_fit();
    shapes = std::move(shapes_);
    places = std::move(places_);
  }

 private:
  /// The columns of the product's rows.
  i64 unite(RowGroup<T> const& in) {
    auto* const ASTERISM_RESTRICT seen = seen_.data();
    auto* const ASTERISM_RESTRICT list = list_.data();
    i32 const group = ++groups_;
    i32 end = 0;
    for (i64 t = 0; t < in.length; ++t) {
      auto const row = right_.row(in.columns[t] + in.shift);
      for (i64 q = 0; q < row.size; ++q) {
        i32 const c = row.columns[q];
        list[end] = c;
        end += seen[c] != group;
        seen[c] = group;
      }
    }
    if (ascending_) sort_columns(list, end, room_in(ordered_, end));
    return end;
  }

  /// Appends the places of the terms of a group with these columns, and tells where they begin: how many rows on the right with the same
  /// columns follow each other, how many columns, and their places.
  Places append_places(RowGroup<T> const& in, i32 const* columns, i64 length) {
    auto* const place_of = place_of_.data();
    for (i64 l = 0; l < length; ++l) place_of[columns[l]] = i32(l);
    auto const row_of = [&](i64 t) { return right_.row(in.columns[t] + in.shift); };
    i64 begin = 0, terms = 0;
    for (i64 t = 0; t < in.length; ++t) terms += 2 + row_of(t).size;
    if (in.width == 1)
      if (auto const vectors = append_vectors(in, length, terms - 2 * in.length)) return *vectors;
    with_place(length, [&](auto tag) {
      using Place = decltype(tag);
      places_.resize((places_.size() + sizeof(Place) - 1) / sizeof(Place) * sizeof(Place));
      begin = i64(places_.size());
      places_.resize(places_.size() + std::size_t(terms) * sizeof(Place));
      auto* to = reinterpret_cast<Place*>(places_.data() + begin);
      for (i64 t = 0; t < in.length;) {
        auto const row = row_of(t);
        i64 together = 1, most = row.size == 0 ? 255 : most_together;
        for (; together < most && t + together < in.length; ++together) {
          auto const next = row_of(t + together);
          if (next.size != row.size || !std::equal(row.columns, row.columns + row.size, next.columns)) break;
        }
        *to++ = Place(together);
        *to++ = Place(row.size);
        for (i64 q = 0; q < row.size; ++q) *to++ = Place(place_of[row.columns[q]]);
        t += together;
      }
      places_.resize(std::size_t(reinterpret_cast<u8*>(to) - places_.data()));
    });
    return {begin};
  }

  /// Appends the places of a row's terms as vectors, from place_of_, if that is faster.
  std::optional<Places> append_vectors(RowGroup<T> const& in, i64 length, i64 multiplications) {
    if constexpr (!Expansion<T>::exists) return {};
    else {
      i64 const vectors = (length + lanes<T> - 1) / lanes<T>, sums = vectors * in.length;
      if (length == 0 || length > most_expanded || sums > multiplications) return {};
      auto form = PlaceForm::masks;  // smaller than indices, which are faster
      if (!alone_ && places_.size() <= most_indices) {
        auto const fits = [&](i32 k) { return right_.row(k + in.shift).size <= lanes<T>; };
        form = std::all_of(in.columns, in.columns + in.length, fits) ? PlaceForm::indices : PlaceForm::indices_from;
      } else if (vectors > 4 || 3 * sums > 2 * multiplications) {
        return {};
      }
      auto const begin = places_.size();
      places_.resize(begin + std::size_t(sums * bytes_of_vector<T>(form)));
      u8* to = places_.data() + begin;
      TermPlaces<T> places;
      for (i64 t = 0; t < in.length; ++t) {
        auto const row = right_.row(in.columns[t] + in.shift);
        if (!places.set(form, row.size, [&](i64 q) { return place_of_.data()[row.columns[q]]; }))
          return places_.resize(begin), std::nullopt;
        to = places.write(form, vectors, to);
      }
      return Places{i64(begin), form};
    }
  }

  Right const right_;
  i32 const columns_;
  bool const ascending_, keeps_;
  i32 const numbers_;  // that a shape takes: one for each row of a group, if values count
  bool equal_, alone_ = false;
  ProductShapes shapes_;
  std::vector<u8> places_;
  std::vector<T> results_;  // of shapes with their factors, where these are equal
  Zeros<i32> seen_;         // the group that a column occurred in last
  Zeros<i32> place_of_;     // of the group's columns alone
  Zeros<i32> list_;         // as they occurred; one more is written to than there are
  Buffer<i32> ordered_;
  Buffer<T> sums_;
  i32 groups_ = 0, found_ = -1;
};

/// How many rows from i on have the same columns.
template <class T>
i32 rows_alike(Rows<T> const& A, i32 i, i32 last) {
  auto const* const ptr = A.ptr.data();
  auto const* const columns = A.col.data() + ptr[i];
  i64 const n = ptr[i + 1] - ptr[i];
  i32 end = i + 1;
  auto const is_alike = [&](i32 j) {
    auto const* const others = A.col.data() + ptr[j];
    return ptr[j + 1] - ptr[j] == n && (n == 0 || (others[0] == columns[0] && std::equal(columns, columns + n, others)));
  };
  while (end < last && end - i < most_rows && is_alike(end)) ++end;
  return end - i;
}

/// Rows i to i + rows of that part of A, which have the same columns.
template <class T>
RowGroup<T> group_of(Rows<T> const& A, i32 i, i32 rows, Part part, Buffer<T>& room) {
  i64 const begin = A.ptr[i], n = A.ptr[i + 1] - begin;
  RowGroup<T> out{A.col.data() + begin, 0, n, A.val.data() + begin, rows <= 2 ? rows : rows <= 4 ? 4 : most_rows};
  i32 const self = i + A.map.below;
  bool const all = part == Part::all;
  if (!all)
    while (out.length > 0 && out.columns[out.length - 1] >= self + rows) --out.length;
  if (rows == 1 && (all || out.length == 0 || out.columns[out.length - 1] < self)) return out;
  T* const to = room_in(room, out.length * out.width);
  for (i64 t = 0; t < out.length; ++t)
    for (i32 r = 0; r < out.width; ++r) {
      i32 const c = out.columns[t];
      T const v = r < rows && (all || c <= self + r) ? out.values[r * n + t] : T(0);
      to[t * out.width + r] = all || c != self + r ? v : T(real_t<T>(0.5)) * v;
    }
  out.values = to;
  return out;
}

/// The values of row r of a group.
template <class T>
void copy_row(RowGroup<T> const& rows, i32 r, T* to) {
  if (rows.width == 1) return (void)std::copy_n(rows.values, rows.length, to);
  for (i64 l = 0; l < rows.length; ++l) to[l] = rows.values[l * rows.width + r];
}

/// Appends that many rows of a group, and sets their lengths.
template <class T>
void append_rows(Piece<T>& piece, RowGroup<T> const& group, i32 rows, i64* lengths) {
  piece.make_room(rows * group.length);
  for (i32 r = 0; r < rows; ++r) {
    auto* const to = piece.col.data() + piece.size;
    for (i64 l = 0; l < group.length; ++l) to[l] = group.columns[l] + group.shift;
    copy_row(group, r, piece.val.data() + piece.size);
    piece.size += group.length;
    lengths[r] = group.length;
  }
}

/// sum = row i of that part of A, times the rows on the right
template <class T, class Right>
void add_row(SparseSum<T>& sum, Rows<T> const& A, i32 i, Part part, Right const& right) {
  bool const all = part == Part::all;
  i32 const self = i + A.map.below;
  for (auto p = A.ptr[i], end = A.ptr[i + 1]; p < end && (all || A.col[p] <= self); ++p) {
    auto const row = right.row(A.col[p]);
    sum.add(all || A.col[p] < self ? A.val[p] : T(real_t<T>(0.5)) * A.val[p], row.columns, row.values, row.size, row.room);
  }
}

}  // namespace
}  // namespace asterism::la
