#include "asterism/la/products/galerkin.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "asterism/device/parallel.hpp"
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
  i64 size;
};

/// The rows computed last, in a ring. Positions are counted without end; those further back than the ring is long are overwritten.
template <class T>
class RecentRows {
 public:
  /// Of rows [first, end).
  RecentRows(i32 first, i32 end, i64 entries) : first_(first), at_(end - first, i64(-1)) { grow(entries); }

  bool has(i32 i) {
    auto const at = at_[i - first_];
    if (at >= 0 && at >= head_ - capacity_) return true;
    again_ += at >= 0;
    return false;
  }
  Row<T> operator[](i32 i) const {
    auto const p = at_[i - first_] & (capacity_ - 1);
    return {columns_.data() + p + 1, values_.data() + p + 1, columns_[p]};
  }
  // what is read soon; i may be no row of here, or not there yet
  void ask_for_place(i32 i) const {
    if (i64 const at = i64(i) - first_; at >= 0 && at < at_.size()) __builtin_prefetch(at_.data() + at);
  }
  void ask_for(i32 i) const {
    i64 const at = i64(i) - first_;
    if (at < 0 || at >= at_.size()) return;
    auto const p = at_[at] & (capacity_ - 1);
    __builtin_prefetch(columns_.data() + p);
    __builtin_prefetch(values_.data() + p + 1);
    __builtin_prefetch(values_.data() + p + 9);
  }

  void keep(i32 i, SparseSum<T>& sum) {
    i64 const n = sum.size();
    ++computed_;
    // where rows come back later than expected, it grows until that is rare
    if (n + 1 > capacity_ || 4 * again_ > computed_ + 4096) grow(2 * std::max(capacity_, n + 1));
    auto p = head_ & (capacity_ - 1);
    if (p + n + 1 > capacity_) head_ += capacity_ - p, p = 0;
    at_[i - first_] = head_;
    head_ += n + 1;
    columns_[p] = i32(n);
    sum.take(columns_.data() + p + 1, values_.data() + p + 1, false);
  }

 private:
  void grow(i64 entries) {
    auto const before = capacity_;
    auto const old_columns = std::exchange(columns_, {});
    auto const old_values = std::exchange(values_, {});
    capacity_ = i64(std::bit_ceil(std::uint64_t(entries)));
    columns_ = Buffer<i32>(capacity_);
    values_ = Buffer<T>(capacity_);
    for (auto v = std::max(i64(0), head_ - before); v < head_; ++v) {
      columns_[v & (capacity_ - 1)] = old_columns[v & (before - 1)];
      values_[v & (capacity_ - 1)] = old_values[v & (before - 1)];
    }
    // all of it is valid up to where the smaller ring had begun to overwrite
    std::replace_if(at_.begin(), at_.end(), [&](i64 v) { return v < head_ - before; }, i64(-1));
    again_ = computed_ = 0;
  }
  i32 first_;
  Buffer<i64> at_;
  Buffer<i32> columns_;
  Buffer<T> values_;
  i64 capacity_ = 0, head_ = 0, again_ = 0, computed_ = 0;
};

/// What of the inner matrix is multiplied.
enum class Part : std::uint8_t { all, lower_and_half_diagonal };

/// sum = row i of that part of A, times B
template <Part part, class T>
void add_part_of_row(SparseSum<T>& sum, Rows<T> const& A, i32 i, Rows<T> const& B) {
  if constexpr (part == Part::all) return add_row(sum, A, i, B);
  auto const* const bp = B.ptr.data();
  auto const* const ac = A.col.data();
  i32 const self = i + A.map.below;
  for (auto p = A.ptr[i], last = A.ptr[i + 1]; p < last && ac[p] <= self; ++p) {
    auto const k = ac[p];
    sum.add(k == self ? T(real_t<T>(0.5)) * A.val[p] : A.val[p], B.col.data() + bp[k], B.val.data() + bp[k], bp[k + 1] - bp[k]);
  }
}

template <Part part, class T>
Rows<T> triple_product(Rows<T> const& R, Rows<T> const& A, Rows<T> P, Layout const& fine, Layout const& coarse,
                       comm::Cancellation& cancel) {
  constexpr double share = part == Part::all ? 1 : 0.6;  // of A's entries
  Rows<T> C;
  C.count = R.count;
  C.map = P.map;
  C.ptr = Buffer<i64>(C.count + 1);
  // rows of A P that R takes from other ranks
  std::vector<i64> far_ptr{0};
  std::vector<i32> far_columns;
  std::vector<T> far_values;
  if (fine.comm().size() > 1) {
    SparseSum<T> sum(P.map.size());
    auto far = ghost_rows<T>(fine, R.map, [&](i32 i, std::vector<i64>& columns, std::vector<T>& values) {
      if (is_look(i)) cancel.throw_if_requested();
      add_part_of_row<part>(sum, A, i, P);
      std::vector<i32> local(std::size_t(sum.size()));
      values.resize(values.size() + local.size());
      sum.take(local.data(), values.data() + values.size() - local.size(), false);
      for (auto const c : local) columns.push_back(P.map.global(c));
    });
    C.map = joined(P.map, far.columns, coarse);
    auto const renumber = renumbering(P.map, C.map);
    for (i64 p = 0; p < P.nnz(); ++p) P.col[p] = renumber[std::size_t(P.col[p])];  // on several ranks P is a copy
    for (auto const l : far.lengths) far_ptr.push_back(far_ptr.back() + l);
    for (auto const c : far.columns) far_columns.push_back(C.map.local(c));
    far_values = std::move(far.values);
  }
  // rows of A P are wanted again by the next coarse rows: within twice their mean reach; a third of the products stand in different places
  double reach = 0;
  for (i32 i = 0; i < R.count; ++i)
    if (R.ptr[i] < R.ptr[i + 1]) reach += R.col[R.ptr[i + 1] - 1] - R.col[R.ptr[i]];
  auto const products_of_row = share * double(A.nnz()) / std::max(A.count, 1) * double(P.nnz()) / std::max(P.count, 1);
  auto const recent_rows = std::min(2 * reach / std::max(R.count, 1), double(A.count));
  auto const shares = device::host::team_size();
  // an unordered matrix: threads would compute the same rows, and each hold most of them
  Rows<T> AP;
  bool const formed = shares > 1 && recent_rows * shares > A.count;
  if (formed) {
    AP.count = A.count;
    AP.ptr = Buffer<i64>(A.count + 1);
    append_in_shares<T>(A.count, A.ptr.data(), AP, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
      SparseSum<T> sum(C.map.size());
      piece.reserve(i64(products_of_row / 3 * (last - first)));
      for (i32 i = first; i < last; ++i) {
        if (is_look(i) && cancel.requested()) return;
        add_part_of_row<part>(sum, A, i, P);
        append_row(piece, sum, AP.ptr[i + 1], false);
      }
    });
  }
  append_in_shares<T>(R.count, R.ptr.data(), C, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    i32 low = A.count, high = 0;  // my rows that these take
    for (auto p = R.ptr[first]; p < R.ptr[last] && !formed; ++p)
      if (R.map.is_own(R.col[p])) low = std::min(low, R.col[p] - R.map.below), high = std::max(high, R.col[p] - R.map.below + 1);
    SparseSum<T> sum(C.map.size()), inner(formed ? 0 : C.map.size());
    std::optional<RecentRows<T>> recent;
    if (!formed) recent.emplace(low, std::max(low, high), std::max(i64(1) << 14, i64(recent_rows * (products_of_row / 3 + 1))));
    auto const compute = [&](i32 f) {
      add_part_of_row<part>(inner, A, f, P);
      recent->keep(f, inner);
    };
    // rows come in ascending order while the coarse rows ask for later and later ones: all up to the one that is asked for, as streams.
    // Where the order is another, the neighbours of that one.
    i32 next = low;
    auto const ahead = std::max(i64(4096), i64(2 * recent_rows));
    auto const compute_up_to = [&](i32 f) {
      bool const in_order = f >= next && f - next <= ahead;
      i32 const begin = in_order ? next : std::max(f & ~31, low), end = in_order ? f + 1 : std::min(high, (f & ~31) + 32);
      for (i32 n = begin; n < end; ++n)
        if (n != f && (in_order || !recent->has(n))) compute(n);
      compute(f);
      next = std::max(next, end);
    };
    piece.reserve(i64(share * double(A.nnz()) / (2 * shares)));
    auto const entries = R.nnz();
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      for (auto p = R.ptr[i], end = R.ptr[i + 1]; p < end; ++p) {
        i32 const k = R.col[p];
        Row<T> row;
        if (!R.map.is_own(k)) {
          auto const g = std::size_t(k < R.map.below ? k : k - R.map.own);
          row = {far_columns.data() + far_ptr[g], far_values.data() + far_ptr[g], far_ptr[g + 1] - far_ptr[g]};
        } else if (i32 const f = k - R.map.below; formed) {
          row = {AP.col.data() + AP.ptr[f], AP.val.data() + AP.ptr[f], AP.ptr[f + 1] - AP.ptr[f]};
        } else {
          if (!recent->has(f)) compute_up_to(f);
          row = (*recent)[f];
          if (p + 80 < entries) recent->ask_for_place(R.col[p + 80] - R.map.below);
          if (p + 40 < entries) recent->ask_for(R.col[p + 40] - R.map.below);
        }
        sum.add(R.val[p], row.columns, row.values, row.size);
      }
      append_row(piece, sum, C.ptr[i + 1], true);
    }
  });
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
