#include "asterism/precond/amg/coarsening/strength.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/profile.hpp"
#include "asterism/precond/amg/coarsening/splitting.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;

int strength_event() {
  static int const event = profile::event("AMGStrength");
  return event;
}

/// Entries of A of which keep(i, p) is true, in rows of which prepare(i) was called before.
template <class T, class Prepare, class Keep>
Couplings couplings_of(Rows<T> const& A, comm::Cancellation& cancel, Prepare const& prepare, Keep const& keep) {
  Couplings out;
  out.count = A.count;
  out.map = A.map;
  out.ptr = Buffer<i64>(A.count + 1);
  append_in_shares<float>(A.count, A.ptr.data(), out, cancel, [&](i32 first, i32 last, Piece<float>& piece) {
    piece.reserve(A.ptr[last] - A.ptr[first] + 1);
    auto state = prepare();
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      auto const before = piece.size;
      state.begin(i);
      for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p) {
        piece.col[piece.size] = A.col[p];
        piece.val[piece.size] = 1;
        piece.size += keep(state, i, p);
      }
      out.ptr[i + 1] = piece.size - before;
    }
  });
  return out;
}

/// Which columns are other unknowns of the same component.
struct Neighbours {
  ColumnMap const& map;
  i64 block_size;
  bool operator()(i32 i, i32 column) const {
    return column != i + map.below && (block_size == 1 || (map.global(column) - map.begin - i) % block_size == 0);
  }
};

/// The measures of a row's couplings; of weak ones -1.
template <class T>
class Evolution {
 public:
  Evolution(Rows<T> const& A, Rows<T> const& M, Rows<T> const& columns, Neighbours const& is_neighbour)
      : A_(A),
        M_(M),
        columns_(columns),
        is_neighbour_(is_neighbour),
        z0_(std::max(M.map.size(), 1), T(0)),
        place_(la::renumbering(columns.map, M.map)) {}

  void begin(i32 i) {
    first_ = A_.ptr[i];
    auto const n = A_.ptr[i + 1] - first_;
    support_.clear();
    for (auto p = columns_.ptr[i]; p < columns_.ptr[i + 1]; ++p) {
      support_.push_back(place_[std::size_t(columns_.col[p])]);
      z0_[support_.back()] = columns_.val[p];
    }
    T const self = z(i + A_.map.below);
    measures_.assign(std::size_t(n), -1);
    least = -1;
    for (i64 e = 0; e < n; ++e) {
      i32 const c = A_.col[first_ + e];
      if (!is_neighbour_(i, c) || A_.val[first_ + e] == T(0)) continue;
      T const other = z(c);
      if (other == T(0) || double(real(conj(self) * other)) < 0) continue;
      T const ratio = self / other;
      if (double(magnitude(ratio)) < 1e-4) continue;
      double const error = double(magnitude(T(1) - ratio));
      auto& m = measures_[std::size_t(e)] = error < 1.5e-8 ? 1e-4 : error;
      least = least < 0 ? m : std::min(least, m);
    }
    for (auto const c : support_) z0_[c] = T(0);
  }
  double measure(i64 p) const { return measures_[std::size_t(p - first_)]; }
  double least = -1;

 private:
  /// Of the second step, at a column of A. In a long row what the first step has is looked for: each of many rows may ask for it.
  T z(i32 c) const {
    T sum(0);
    auto const first = M_.ptr[c], last = M_.ptr[c + 1];
    if (last - first > 64 * (i64(support_.size()) + 1)) {
      auto const *from = M_.col.data() + first, *const end = M_.col.data() + last;
      for (auto const s : support_) {
        from = std::lower_bound(from, end, s);
        if (from == end) break;
        if (*from == s) sum += M_.val[from - M_.col.data()] * z0_[s];
      }
      return sum;
    }
    for (auto q = first; q < last; ++q) sum += M_.val[q] * z0_[M_.col[q]];
    return sum;
  }
  Rows<T> const &A_, &M_, &columns_;
  Neighbours const& is_neighbour_;
  Buffer<T> z0_;                      // the first step, at columns of M
  std::vector<i32> place_, support_;  // of z0, ascending
  std::vector<double> measures_;
  i64 first_ = 0;
};

/// Of unknowns, as those of nodes.
Couplings of_nodes(Couplings const& strong, ColumnMap const& nodes, i64 bs, comm::Cancellation& cancel) {
  Couplings out;
  out.count = i32(strong.count / bs);
  out.map = nodes;
  out.ptr = Buffer<i64>(out.count + 1);
  Buffer<i64> work(out.count + 1);
  for (i32 v = 0; v <= out.count; ++v) work[v] = strong.ptr[v * bs];
  append_in_shares<float>(out.count, work.data(), out, cancel, [&](i32 first, i32 last, Piece<float>& piece) {
    std::vector<i32> found;
    for (i32 v = first; v < last; ++v) {
      if (is_look(v) && cancel.requested()) return;
      found.clear();
      for (auto p = work[v]; p < work[v + 1]; ++p) found.push_back(nodes.local(strong.map.global(strong.col[p]) / bs));
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      out.ptr[v + 1] = i64(found.size());
      piece.make_room(out.ptr[v + 1]);
      for (auto const w : found) {
        if (w == v + nodes.below) {
          --out.ptr[v + 1];
          continue;
        }
        piece.col[piece.size] = w;
        piece.val[piece.size++] = 1;
      }
    }
  });
  return out;
}

}  // namespace

template <class T>
Couplings classical_couplings(Rows<T> const& A, i64 bs, double threshold, comm::Cancellation& cancel) {
  profile::Scope const scope(strength_event(), double(A.nnz()) * 16);
  Neighbours const is_neighbour{A.map, bs};
  struct Row {
    Rows<T> const& A;
    Neighbours const& is_neighbour;
    double most = 0;
    void begin(i32 i) {
      most = 0;
      for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p)
        if (is_neighbour(i, A.col[p])) most = std::max(most, double(magnitude(A.val[p])));
    }
  };
  return couplings_of(
      A, cancel, [&] { return Row{A, is_neighbour}; },
      [&](Row const& row, i32 i, i64 p) {
        double const size = double(magnitude(A.val[p]));
        return size > 0 && size >= threshold * row.most && is_neighbour(i, A.col[p]);
      });
}

template <class T>
Couplings evolution_couplings(Rows<T> const& A, Layout const& layout, i64 bs, double threshold, double radius, comm::Cancellation& cancel) {
  profile::Scope const scope(strength_event(), double(A.nnz()) * 16);
  i32 const below = A.map.below;
  Rows<T> M;  // I - D^-1 A / radius
  M.count = A.count;
  M.map = A.map;
  M.ptr = A.ptr;
  M.col = A.col;
  M.val = Buffer<T>(A.nnz());
  cancellable_for(cancel, A.count, [&](i64 i) {
    T d(0);
    for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p)
      if (A.col[p] == i + below) d = A.val[p];
    T const scale = T(real_t<T>(-1 / radius)) / (d == T(0) ? T(1) : d);
    for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p) M.val[p] = scale * A.val[p] + T(A.col[p] == i + below ? 1 : 0);
  });
  auto const columns = la::transpose(M, layout, layout, false, cancel);
  // those of an unsymmetric pattern may have rows that A's columns do not name: a zero of M there
  auto const whole = with_ghost_rows(M, layout, layout, A.map);
  auto const wide = la::joined(whole.map, columns.map.ghosts, layout);
  auto renumbered = whole;
  renumbered.map = wide;
  renumbered.col = Buffer<i32>(whole.nnz());
  auto const place = la::renumbering(whole.map, wide);
  for (i64 p = 0; p < whole.nnz(); ++p) renumbered.col[p] = place[std::size_t(whole.col[p])];
  Neighbours const is_neighbour{A.map, bs};
  return couplings_of(
      A, cancel, [&] { return Evolution<T>(A, renumbered, columns, is_neighbour); },
      [&](Evolution<T> const& row, i32, i64 p) {
        double const m = row.measure(p);
        return m >= 0 && threshold * m < row.least;
      });
}

template <class T>
double coupling_ratio(Rows<T> const& A, Layout const& layout) {
  double most = 0;
  for (i32 i = 0; i < A.count; ++i) {
    double sum = 0, self = 0;
    for (auto p = A.ptr[i]; p < A.ptr[i + 1]; ++p) (A.col[p] == i + A.map.below ? self : sum) += double(magnitude(A.val[p]));
    if (sum > 0) most = std::max(most, self > 0 ? sum / self : 1e300);
  }
  return layout.comm().max(most);
}

template <class T>
NodeGraph node_graph(Rows<T> const& A, Couplings const& strong, Layout const& layout, i64 bs, comm::Cancellation& cancel) {
  profile::Scope const scope(strength_event());
  auto g = nodes_of(layout, A.map, bs);
  auto const nodes = bs == 1 ? strong : of_nodes(strong, g.map, bs, cancel);
  auto const both = both_ways(nodes, g.layout, cancel);
  // where A has an entry: a column of `both` that g's map lacks, or that the row of A lacks, is of an unsymmetric pattern
  auto const place = la::renumbering(g.map, both.map);
  std::vector<i32> column(std::size_t(both.map.size()), -1);
  for (i32 l = 0; l < g.map.size(); ++l) column[std::size_t(place[std::size_t(l)])] = l;
  Couplings out;
  out.count = g.count;
  out.ptr = Buffer<i64>(g.count + 1);
  append_in_shares<float>(g.count, both.ptr.data(), out, cancel, [&](i32 first, i32 last, Piece<float>& piece) {
    piece.reserve(both.ptr[last] - both.ptr[first] + 1);
    std::vector<i32> named(std::size_t(g.map.size()), -1);  // the last node whose rows have an entry there
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      auto const before = piece.size;
      for (auto q = A.ptr[i * bs]; q < A.ptr[(i + 1) * bs]; ++q)
        named[std::size_t(bs == 1 ? A.col[q] : g.map.local(A.map.global(A.col[q]) / bs))] = i;
      for (auto p = both.ptr[i]; p < both.ptr[i + 1]; ++p) {
        i32 const c = column[std::size_t(both.col[p])];
        if (c < 0 || named[std::size_t(c)] != i) continue;
        piece.col[piece.size] = c;
        piece.val[piece.size++] = 1;
      }
      out.ptr[i + 1] = piece.size - before;
    }
  });
  g.ptr = out.ptr;
  g.col = out.col;
  return g;
}

#define INSTANTIATE(T)                                                                                             \
  template Couplings classical_couplings(Rows<T> const&, i64, double, comm::Cancellation&);                        \
  template Couplings evolution_couplings(Rows<T> const&, Layout const&, i64, double, double, comm::Cancellation&); \
  template double coupling_ratio(Rows<T> const&, Layout const&);                                                   \
  template NodeGraph node_graph(Rows<T> const&, Couplings const&, Layout const&, i64, comm::Cancellation&);
INSTANTIATE(double)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::precond::amg
