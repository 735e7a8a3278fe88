#include "asterism/precond/amg/null_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/la/union_find.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;

/// Whether rows map modes to zero up to rounding.
template <class T>
class RowTest {
 public:
  /// Collective.
  RowTest(Rows<T> const& A, Layout const& rows, std::optional<Buffer<T>> const& modes, i64 columns)
      : A_(A), columns_(columns), constants_(!modes) {
    if (constants_) return;
    modes_ = Buffer<T>(A.map.size() * columns);
    std::copy_n(modes->data(), A.count * columns, modes_.data() + A.map.below * columns);
    la::Halo(rows, A.map).update(modes_.data(), columns);
  }
  bool maps_to_zero(i32 i, i64 column) const {
    T sum(0);
    double terms = 0;
    for (auto p = A_.ptr[i]; p < A_.ptr[i + 1]; ++p) {
      T const b = value(A_.col[p], column);
      sum += A_.val[p] * b;
      terms += double(magnitude(A_.val[p])) * double(magnitude(b));
    }
    constexpr double eps = std::numeric_limits<double>::epsilon();
    return double(magnitude(sum)) <= 2 * eps * double(A_.ptr[i + 1] - A_.ptr[i]) * terms;
  }

 private:
  T value(i32 c, i64 column) const {
    if (!constants_) return modes_[c * columns_ + column];
    return T(columns_ == 1 || A_.map.global(c) % columns_ == column ? 1 : 0);
  }
  Rows<T> const& A_;
  i64 columns_;
  bool constants_;
  Buffer<T> modes_;
};

/// For each global row the first one of its part, of a few thousand rows. Collective.
template <class T>
std::vector<i32> parts_of(Rows<T> const& A, Layout const& rows) {
  auto const n = i32(rows.global_size());
  la::UnionFind sets(n);
  for (i32 i = 0; i < A.count; ++i)
    for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p)
      if (A.val[p] != T(0)) sets.join(i32(A.map.begin + i), i32(A.map.global(A.col[p])));
  std::vector<i32> of(static_cast<std::size_t>(n));
  auto const take = [&] {
    for (i32 i = 0; i < n; ++i) of[std::size_t(i)] = sets.find(i);
  };
  take();
  auto const bytes = rows.comm().all_gather_bytes(std::as_bytes(std::span<i32 const>(of)));
  std::vector<i32> all(bytes.size() / sizeof(i32));
  std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<std::byte*>(all.data()));
  for (std::size_t k = 0; k < all.size(); ++k) sets.join(i32(k % of.size()), all[k]);
  take();
  return of;
}

}  // namespace

template <class T>
KnownNullVectors<T>::KnownNullVectors(Rows<T> const& A, Layout const& rows, std::optional<Buffer<T>> modes, i64 columns)
    : modes_(std::move(modes)), columns_(columns), everywhere_(std::size_t(columns), 1) {
  RowTest<T> const test(A, rows, modes_, columns);
  std::vector<double> fails(std::size_t(columns), 0.0);
  auto left = columns;
  for (i32 i = 0; i < A.count && left > 0; ++i)
    for (i64 k = 0; k < columns; ++k)
      if (fails[std::size_t(k)] == 0 && !test.maps_to_zero(i, k)) fails[std::size_t(k)] = 1, --left;
  rows.comm().max(std::span(fails));
  for (std::size_t k = 0; k < fails.size(); ++k) everywhere_[k] = fails[k] == 0;
}

template <class T>
CoarseOrigin KnownNullVectors<T>::on_last_level(Matrix const& finest, Rows<T> const& coarse, Layout const& rows, Buffer<T> const& modes,
                                                std::vector<GridLevel> const& levels, std::vector<Dtype> const& dtypes,
                                                RoundingRows<T> const& rounding) const {
  CoarseOrigin out;
  out.finest_rows = finest.global_rows();
  auto parts = parts_of(coarse, rows);
  bool const connected = std::all_of(parts.begin(), parts.end(), [](i32 p) { return p == 0; });
  bool const all = std::all_of(everywhere_.begin(), everywhere_.end(), [](char e) { return e != 0; });
  bool const none = std::none_of(everywhere_.begin(), everywhere_.end(), [](char e) { return e != 0; });
  if (connected && none && !rounding.any) return out;
  out.null_columns = columns_;
  Buffer<T> vectors(coarse.count * columns_, T(1));
  if (modes.size() > 0) std::copy_n(modes.data(), vectors.size(), vectors.data());
  // rows whose part has a null vector in a column: 0; none: 1
  std::vector<double> fails(parts.size() * std::size_t(columns_), 0.0);
  if (connected) {
    for (std::size_t e = 0; e < fails.size(); ++e) fails[e] = everywhere_[e % everywhere_.size()] ? 0 : 1;
  } else if (!all) {
    auto const failing = [&](auto tag, Vector& v) {
      using S = typename decltype(tag)::type;
      auto const fine = rows_of<T>(finest.converted(dtype_v<T>));
      RowTest<T> const test(fine, finest.range(), modes_, columns_);
      auto const values = v.host<S>();
      for (i32 i = 0; i < fine.count; ++i)
        for (i64 k = 0; k < columns_; ++k) values[std::size_t(i * columns_ + k)] = test.maps_to_zero(i, k) ? S(0) : S(1);
    };
    Vector v(finest.range(), dtypes.front(), columns_, device::Queue::host());
    with_dtype(dtypes.front(), [&](auto tag) { failing(tag, v); });
    for (std::size_t l = 0; l < levels.size(); ++l) {  // sums of zeros alone stay zero
      Vector next(levels[l].R->range(), dtypes[l + 1], columns_, device::Queue::host());
      levels[l].R->apply(v, next);
      v = std::move(next);
    }
    with_dtype(v.dtype(), [&](auto tag) {
      using S = typename decltype(tag)::type;
      auto const values = v.host<S>();
      for (i32 i = 0; i < coarse.count; ++i)
        for (i64 k = 0; k < columns_; ++k)
          if (values[std::size_t(i * columns_ + k)] != S(0))
            fails[std::size_t(parts[std::size_t(rows.begin() + i)]) * std::size_t(columns_) + std::size_t(k)] = 1;
    });
    rows.comm().max(std::span(fails));
  }
  for (i32 i = 0; i < coarse.count; ++i)
    for (i64 k = 0; k < columns_; ++k)
      if (fails[std::size_t(parts[std::size_t(rows.begin() + i)]) * std::size_t(columns_) + std::size_t(k)] > 0)
        vectors[i * columns_ + k] = T(0);
  for (i32 i = 0; rounding.any && i < coarse.count; ++i)
    for (i64 k = 0; k < columns_; ++k)
      if (rounding.terms[i] > 0) vectors[i * columns_ + k] = T(k == 0 ? 1 : 0);
  out.null_vectors = vectors.array();
  out.parts = std::move(parts);
  return out;
}

template <class T>
RoundingRows<T> RoundingRows<T>::find(Rows<T> const& coarse, Rows<T> const& R, Rows<T> const& fine, Layout const& fine_rows, i64 node,
                                      double tolerance) {
  RoundingRows out;
  out.node = node;
  std::vector<i32> alone;  // rows without a coupling to other nodes
  auto const& own = coarse.map;
  for (i32 i = 0; i < coarse.count; ++i) {
    auto const first = i - i32(i % node), last = i32(std::min<i64>(first + node, coarse.count));
    bool couples = false;
    for (auto p = coarse.ptr[i]; p < coarse.ptr[i + 1] && !couples; ++p)
      couples = coarse.val[p] != T(0) && (coarse.col[p] < own.below + first || coarse.col[p] >= own.below + last);
    if (!couples) alone.push_back(i);
  }
  auto const& comm = fine_rows.comm();
  if (comm.max(i64(alone.size())) == 0) return out;
  Buffer<double> diagonal(R.map.size(), 0.0);
  for (i32 i = 0; i < fine.count; ++i) {
    auto const *const begin = fine.col.data() + fine.ptr[i], *const end = fine.col.data() + fine.ptr[i + 1];
    auto const* const at = std::lower_bound(begin, end, fine.map.below + i);
    if (at != end && *at == fine.map.below + i) diagonal[R.map.below + i] = double(magnitude(fine.val[at - fine.col.data()]));
  }
  la::Halo(fine_rows, R.map).update(diagonal.data());
  Buffer<double> terms(coarse.count, 0.0);
  for (auto const i : alone)
    for (auto p = R.ptr[i]; p < R.ptr[i + 1]; ++p)
      terms[i] += double(magnitude(R.val[p])) * double(magnitude(R.val[p])) * diagonal[R.col[p]];
  out.terms = Buffer<double>(coarse.count, 0.0);
  bool any = false;
  for (auto const i : alone) {
    bool is_rounding = terms[i] > 0;
    for (auto p = coarse.ptr[i]; p < coarse.ptr[i + 1] && is_rounding; ++p)
      if (coarse.val[p] != T(0))
        is_rounding = double(magnitude(coarse.val[p])) <= tolerance * std::sqrt(terms[i] * terms[coarse.col[p] - own.below]);
    if (is_rounding) out.terms[i] = terms[i], any = true;
  }
  out.any = comm.max(i64(any)) > 0;
  return out;
}

template <class T>
void RoundingRows<T>::decouple(Rows<T>& A, bool zero_diagonal) const {
  if (!any) return;
  for (i32 i = 0; i < A.count; ++i) {
    auto const first = i - i32(i % node);
    for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p) {
      auto const j = A.col[p] - A.map.below;
      if (j == i && terms[i] > 0) A.val[p] = T(zero_diagonal ? 0 : terms[i]);
      else if (j != i && (terms[i] > 0 || (j >= first && j < first + node && j < A.count && terms[j] > 0))) A.val[p] = T(0);
    }
  }
}

template struct RoundingRows<double>;
template struct RoundingRows<Complex<double>>;
template class KnownNullVectors<double>;
template class KnownNullVectors<Complex<double>>;

}  // namespace asterism::precond::amg
