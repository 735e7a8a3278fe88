#include "asterism/precond/amg/classical.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/base/profile.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;

/// Marks of entries: the row depends on the column; it stands against the row's diagonal; the column is coarse.
constexpr u8 strong = 1, opposite = 2, coarse_column = 4;

/// |d| times the part of v that stands against the diagonal d.
template <class T>
double against(T v, T d) {
  return -double(real(v * conj(d)));
}

/// A without couplings between components.
template <class T>
Rows<T> of_equal_components(Rows<T> const& A, Layout const& layout, i64 components, Buffer<i32> const& component,
                            comm::Cancellation& cancel) {
  if (components == 1) return A;
  Buffer<i32> of(A.map.size());
  std::copy(component.begin(), component.end(), of.begin() + A.map.below);
  Halo(layout, A.map).update(of.data());
  Rows<T> out;
  out.count = A.count;
  out.map = A.map;
  out.ptr = Buffer<i64>(A.count + 1);
  append_in_shares<T>(A.count, A.ptr.data(), out, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    piece.reserve(A.ptr[last] - A.ptr[first]);
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      auto const before = piece.size;
      for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p) {
        if (of[A.col[p]] != of[i + A.map.below]) continue;
        piece.col[piece.size] = A.col[p];
        piece.val[piece.size++] = A.val[p];
      }
      out.ptr[i + 1] = piece.size - before;
    }
  });
  return out;
}

/// The columns of P that its rows name.
template <class T>
void leave_out_unused_ghosts(Rows<T>& P, Layout const& coarse) {
  if (coarse.comm().size() == 1) return;
  std::vector<u8> used(std::size_t(P.map.size()), 0);
  for (i64 p = 0; p < P.nnz(); ++p) used[std::size_t(P.col[p])] = 1;
  std::vector<i64> ghosts;
  for (i32 l = 0; l < P.map.size(); ++l)
    if (used[std::size_t(l)] && !P.map.is_own(l)) ghosts.push_back(P.map.global(l));
  auto const map = ColumnMap::make(coarse, std::move(ghosts));
  for (i64 p = 0; p < P.nnz(); ++p) P.col[p] = map.local(P.map.global(P.col[p]));
  P.map = map;
}

/// One row of P after the other.
template <class T>
class Weights {
 public:
  Weights(Splitting<T> const& s, ClassicalOptions const& options, i64 unknowns)
      : s_(s),
        options_(options),
        place_(s.A.map.size() + 1, i32(-1)),
        ptr_(s.A.ptr.data()),
        col_(s.A.col.data()),
        row_of_(s.row_of.data()),
        val_(s.A.val.data()),
        marks_(s.marks.data()),
        long_row_(i64(std::max(100.0, 10 * std::sqrt(double(unknowns))))) {}

  /// Of the fine unknown of my row i. Returns how many entries it looked at, about: few, or most of the matrix's beside rows with many.
  i64 find(i32 i) {
    looked_at_ = 0;
    row_ = i + s_.first;
    self_ = i + s_.A.map.below;
    if (options_.interpolation == InterpolationType::direct || !extended()) direct();
    return looked_at_;
  }

  /// As options say, ascending by column.
  template <class F>
  void take(F const& put) {
    std::size_t const n = columns_.size();
    T all(0);
    double most = 0;
    for (std::size_t t = 1; t < n; ++t) {
      all += weights_[t];
      if (options_.truncation > 0) most = std::max(most, double(magnitude(weights_[t])));
    }
    chosen_.clear();
    auto const before = [](Term const& x, Term const& y) { return x.size != y.size ? x.size > y.size : x.column < y.column; };
    auto const room = options_.most_entries > 0 ? std::size_t(options_.most_entries) : n;
    for (std::size_t t = 1; t < n; ++t) {
      double const size = double(magnitude(weights_[t]));
      if (size == 0 || size < options_.truncation * most) continue;
      // float: weights that are equal but for rounding are taken in their order
      Term const x{float(size), columns_[t], weights_[t]};
      if (chosen_.size() < room) {
        chosen_.push_back(x);
        if (chosen_.size() == room) std::make_heap(chosen_.begin(), chosen_.end(), before);
      } else if (before(x, chosen_.front())) {  // the least of them
        std::pop_heap(chosen_.begin(), chosen_.end(), before);
        chosen_.back() = x;
        std::push_heap(chosen_.begin(), chosen_.end(), before);
      }
    }
    std::sort(chosen_.begin(), chosen_.end(), [](Term const& x, Term const& y) { return x.column < y.column; });
    T left(0);
    double sizes = 0;
    for (auto const& t : chosen_) left += t.weight, sizes += double(magnitude(t.weight));
    // weights of both signs may cancel: their sum says nothing then
    T const factor = double(magnitude(left)) > 0.1 * sizes ? all / left : T(1);
    for (auto const& t : chosen_) put(t.column, t.weight * factor);
  }

 private:
  struct Term {
    float size;
    i32 column;
    T weight;
  };
  /// Each of many rows may ask for it.
  bool is_long(i32 k) const { return ptr_[k + 1] - ptr_[k] > long_row_; }
  /// The row's own unknown has the first place: what comes back to it is the diagonal.
  void begin() {
    columns_.assign(1, self_);
    place_[self_] = 0;
  }
  void want(i32 c) {
    if (place_[c] >= 0) return;
    place_[c] = i32(columns_.size());
    columns_.push_back(c);
  }
  void end() {
    for (auto const c : columns_) place_[c] = -1;
  }

  /// False if the formula divides by zero.
  bool extended() {
    begin();
    auto const first = ptr_[row_], last = ptr_[row_ + 1];
    for (auto p = first; p < last; ++p) {
      if (!(marks_[p] & strong)) continue;
      if (marks_[p] & coarse_column) {
        want(col_[p]);
        continue;
      }
      auto const k = row_of_[col_[p]];
      if (is_long(k)) continue;
      for (auto q = ptr_[k]; q < ptr_[k + 1]; ++q)
        if ((marks_[q] & (strong | coarse_column)) == (strong | coarse_column)) want(col_[q]);
    }
    weights_.assign(columns_.size(), T(0));
    sorted_.clear();
    for (auto p = first; p < last; ++p) {
      if (i32 const at = place_[col_[p]]; at >= 0) weights_[std::size_t(at)] += val_[p];
      else if (marks_[p] & strong) distribute(row_of_[col_[p]], val_[p]);
      else weights_[0] += val_[p];
    }
    end();
    if (weights_[0] == T(0)) return false;
    T const factor = T(-1) / weights_[0];
    for (auto& w : weights_) w *= factor;
    return true;
  }
  /// A strong coupling to the fine unknown of row k is replaced by those of that unknown to what is wanted and to the row's own, in
  /// proportion; if there are none, it joins the diagonal.
  void distribute(i32 k, T coupling) {
    auto const length = is_long(k) ? columns_.size() : std::size_t(ptr_[k + 1] - ptr_[k]);
    if (shares_.size() < length) shares_.resize(length);
    looked_at_ += i64(length);
    std::size_t n = 0;
    T total(0);
    auto const take = [&](i64 q) {  // without branches: which of them count is a coin toss
      i32 const at = place_[col_[q]];
      shares_[n] = {at, val_[q]};
      bool const counts = at >= 0 && (marks_[q] & opposite);
      n += counts;
      total += counts ? val_[q] : T(0);
    };
    if (!is_long(k)) {
      for (auto q = ptr_[k]; q < ptr_[k + 1]; ++q) take(q);
    } else {  // what is wanted is looked for
      if (sorted_.empty()) {
        sorted_ = columns_;
        std::sort(sorted_.begin(), sorted_.end());
      }
      auto const *from = col_ + ptr_[k], *const end = col_ + ptr_[k + 1];
      for (auto const c : sorted_) {
        from = std::lower_bound(from, end, c);
        if (from == end) break;
        if (*from == c) take(from - col_);
      }
    }
    if (total == T(0)) {
      weights_[0] += coupling;
      return;
    }
    T const factor = coupling / total;
    for (std::size_t e = 0; e < n; ++e) weights_[std::size_t(shares_[e].first)] += factor * shares_[e].second;
  }
  void direct() {
    columns_.assign(1, self_);
    weights_.assign(1, T(0));
    T all(0), coarse(0), d(0), diagonal(0);
    for (auto p = ptr_[row_]; p < ptr_[row_ + 1]; ++p) {
      if (col_[p] == self_) diagonal = val_[p];
      (marks_[p] & opposite ? all : d) += val_[p];
      if ((marks_[p] & (strong | coarse_column)) != (strong | coarse_column)) continue;
      coarse += val_[p];
      columns_.push_back(col_[p]);
      weights_.push_back(val_[p]);
    }
    T const factor = -all / (coarse * (d == T(0) ? diagonal : d));
    for (std::size_t t = 1; t < weights_.size(); ++t) weights_[t] *= factor;
  }

  Splitting<T> const& s_;
  ClassicalOptions const& options_;
  Buffer<i32> place_;  // of a column in columns_
  i64 const* const ptr_;
  i32 const* const col_;
  i32 const* const row_of_;
  T const* const val_;
  u8 const* const marks_;
  i64 const long_row_;
  i32 row_ = 0, self_ = 0;
  i64 looked_at_ = 0;
  std::vector<i32> columns_, sorted_;  // what is wanted; the same, ascending, once it was asked for
  std::vector<T> weights_;
  std::vector<std::pair<i32, T>> shares_;
  std::vector<Term> chosen_;
};

}  // namespace

template <class T>
Splitting<T> split(Rows<T> const& A, Layout const& layout, i64 components, Buffer<i32> const& component, double threshold,
                   ClassicalOptions const& options, comm::Cancellation& cancel) {
  Splitting<T> s;
  s.first = A.map.below;
  s.work = A.ptr;
  {
    static int const event = profile::event("AMGStrength");
    profile::Scope const scope(event, double(A.nnz()) * 12);
    auto const map = A.map;
    s.A = with_ghost_rows(of_equal_components(A, layout, components, component, cancel), layout, layout, map);
    auto const column_of = la::renumbering(map, s.A.map);
    s.row_of = Buffer<i32>(s.A.map.size(), i32(-1));
    for (i32 r = 0; r < map.size(); ++r) s.row_of[column_of[std::size_t(r)]] = r;
    s.marks = Buffer<u8>(s.A.nnz());
    i64 const none = std::numeric_limits<i64>::max();
    Buffer<u8> zero(std::max(s.A.count, 1), u8(0));
    cancellable_for(cancel, s.A.count, [&](i64 r) {
      i32 const self = column_of[std::size_t(r)];
      T d(0), sum(0);
      for (auto p = s.A.ptr[r]; p < s.A.ptr[r + 1]; ++p) {
        sum += s.A.val[p];
        if (s.A.col[p] == self) d = s.A.val[p];
      }
      double most = 0;
      for (auto p = s.A.ptr[r]; p < s.A.ptr[r + 1]; ++p)
        if (s.A.col[p] != self) most = std::max(most, against(s.A.val[p], d));
      bool const any = most > 0 && !(options.max_row_sum < 1 && double(magnitude(sum)) > options.max_row_sum * double(magnitude(d)));
      for (auto p = s.A.ptr[r]; p < s.A.ptr[r + 1]; ++p) {
        auto const m = s.A.col[p] == self ? 0 : against(s.A.val[p], d);
        s.marks[p] = u8((any && m > 0 && m >= threshold * most ? strong : 0) | (m > 0 ? opposite : 0));
      }
      zero[r] = d == T(0);
    });
    i64 first_zero = none;
    for (i32 i = 0; i < A.count && first_zero == none; ++i)
      if (zero[i + s.first]) first_zero = layout.begin() + i;
    first_zero = -layout.comm().max(-first_zero);
    ASTERISM_REQUIRE(first_zero == none, value,
                     "classical multigrid: row {} of {} has a zero on the diagonal, so strong couplings have no meaning there. Try ilu, or "
                     "order and scale the equations so that the diagonal is not zero.",
                     first_zero, layout.global_size());
  }
  Rows<float> depends;
  depends.count = A.count;
  depends.map = s.A.map;
  depends.ptr = Buffer<i64>(A.count + 1);
  append_in_shares<float>(A.count, s.work.data(), depends, cancel, [&](i32 first, i32 last, Piece<float>& piece) {
    piece.reserve(s.A.ptr[last + s.first] - s.A.ptr[first + s.first]);
    for (i32 i = first; i < last; ++i) {
      auto const before = piece.size;
      for (auto p = s.A.ptr[i + s.first]; p < s.A.ptr[i + s.first + 1]; ++p) {
        piece.col[piece.size] = s.A.col[p];
        piece.val[piece.size] = 1;
        piece.size += s.marks[p] & strong;
      }
      depends.ptr[i + 1] = piece.size - before;
    }
  });
  auto const coarse = coarse_points(both_ways(depends, layout, cancel), layout, options.coarsening, cancel);
  i64 mine = 0;
  for (auto const c : coarse) mine += c;
  s.coarse = Layout(layout.comm(), mine);
  s.number = Buffer<i64>(s.A.map.size(), i64(-1));
  i64 next = s.coarse.begin();
  for (i32 i = 0; i < A.count; ++i)
    if (coarse[i]) s.number[i + s.A.map.below] = next++;
  Halo(layout, s.A.map).update(s.number.data());
  cancellable_for(cancel, s.A.count, [&](i64 r) {
    for (auto p = s.A.ptr[r]; p < s.A.ptr[r + 1]; ++p) s.marks[p] |= s.number[s.A.col[p]] >= 0 ? coarse_column : u8(0);
  });
  return s;
}

template <class T>
Rows<T> classical_interpolation(Splitting<T> const& s, ClassicalOptions const& options, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGInterpolate");
  profile::Scope const scope(event);
  Rows<T> P;
  P.count = s.A.map.own;
  std::vector<i64> ghosts;
  for (i32 l = 0; l < s.A.map.size(); ++l)
    if (s.number[l] >= 0 && !s.A.map.is_own(l)) ghosts.push_back(s.number[l]);
  P.map = ColumnMap::make(s.coarse, std::move(ghosts));
  Buffer<i32> column(std::max(s.A.map.size(), 1));
  for (i32 l = 0, at = 0; l < s.A.map.size(); ++l) column[l] = s.number[l] >= 0 ? at++ : -1;  // both ascend
  P.ptr = Buffer<i64>(P.count + 1);
  auto const unknowns = s.coarse.comm().sum(i64(P.count));
  append_in_shares<T>(P.count, s.work.data(), P, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    Weights<T> weights(s, options, unknowns);
    piece.reserve(4 * i64(last - first));
    i64 looked_at = 0;
    for (i32 i = first; i < last; ++i) {
      if ((is_look(i) || looked_at > 20'000) && (looked_at = 0, cancel.requested())) return;
      auto const before = piece.size;
      auto const put = [&](i32 c, T w) {
        piece.make_room(1);
        piece.col[piece.size] = column[c];
        piece.val[piece.size++] = w;
      };
      if (i32 const self = i + s.A.map.below; s.number[self] >= 0) {
        put(self, T(1));
      } else {
        looked_at += weights.find(i);
        weights.take(put);
      }
      P.ptr[i + 1] = piece.size - before;
    }
  });
  leave_out_unused_ghosts(P, s.coarse);
  return P;
}

#define INSTANTIATE(T)                                                                                                                   \
  template Splitting<T> split(Rows<T> const&, Layout const&, std::int64_t, Buffer<std::int32_t> const&, double, ClassicalOptions const&, \
                              comm::Cancellation&);                                                                                      \
  template Rows<T> classical_interpolation(Splitting<T> const&, ClassicalOptions const&, comm::Cancellation&);
INSTANTIATE(double)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::precond::amg
