#include "asterism/grid/star_operator.kernels.hpp"

#include <algorithm>

#include "asterism/base/dtype.hpp"

namespace asterism::grid::kernel {

using i64 = std::int64_t;

/// Work below this many entries is not worth a second thread.
constexpr i64 serial_entries = 16384;
/// Points of a line that one thread takes: more are shared.
constexpr i64 longest_piece = 4096;

/// A neighbour of a line of points in direction 0 or 1: its values, or zero times any.
template <class T>
struct Neighbour {
  T const* values;
  T coefficient;
};

template <Epilogue E, class T>
struct Star {
  StarBox box;
  StarCoefficients<T> a;
  i64 k;
  T const *x, *ghosts;
  T* y;
  T const *b, *w;

  /// Of the line (i, j): what is beyond it, one step up or down in direction d.
  Neighbour<T> neighbour(i64 i, i64 j, int d, int up) const {
    i64 const at[2] = {i, j}, length = box.n[2] * k;
    i64 const line = (i * box.n[1] + j) * length, step = (d == 0 ? box.n[1] : 1) * length;
    if (up ? at[d] + 1 < box.n[d] : at[d] > 0) return {x + line + (up ? step : -step), a.sides[d]};
    auto const& f = box.faces[d][up];
    if (f.first < 0) return {x + line, T(0)};
    return {ghosts + (f.first + (d == 0 ? j : i) * f.outer) * k, a.sides[d]};
  }
  /// Whether the neighbours of this line in directions 0 and 1 are own points or zero.
  bool inner(i64 i, i64 j) const {
    auto const ghost = [&](int d, i64 at) {
      return (at == 0 && box.faces[d][0].first >= 0) || (at == box.n[d] - 1 && box.faces[d][1].first >= 0);
    };
    return !ghost(0, i) && !ghost(1, j);
  }

  /// Points [begin, end) of a line, which have both neighbours in the line.
  void middle(i64 i, i64 j, i64 begin, i64 end) const {
    auto const p = neighbour(i, j, 0, 0), q = neighbour(i, j, 0, 1), r = neighbour(i, j, 1, 0), s = neighbour(i, j, 1, 1);
    i64 const line = (i * box.n[1] + j) * box.n[2];
    T const centre = a.centre, side = a.sides[2], cp = p.coefficient, cq = q.coefficient, cr = r.coefficient, cs = s.coefficient;
    T const *const v = x + line * k, *const vp = p.values, *const vq = q.values, *const vr = r.values, *const vs = s.values;
    T const *const x0 = x, *const b0 = b, *const w0 = w;
    T* const y0 = y;
    if (k == 1) {
#pragma omp simd
      for (i64 l = begin; l < end; ++l) {
        T const sum = centre * v[l] + (cp * vp[l] + cq * vq[l]) + (cr * vr[l] + cs * vs[l]) + side * (v[l - 1] + v[l + 1]);
        la::kernel::finish<E>(sum, line + l, i64(1), i64(0), x0, y0, b0, w0);
      }
      return;
    }
    i64 const columns = k;
    auto const sum = [=](i64 o) {
      return centre * v[o] + (cp * vp[o] + cq * vq[o]) + (cr * vr[o] + cs * vs[o]) + side * (v[o - columns] + v[o + columns]);
    };
    if constexpr (E == Epilogue::smooth || E == Epilogue::subtract_scaled) {
      for (i64 l = begin; l < end; ++l)
        for (i64 c = 0; c < columns; ++c) la::kernel::finish<E>(sum(l * columns + c), line + l, columns, c, x0, y0, b0, w0);
    } else {  // as many points of one column, whose neighbours are further away
#pragma omp simd
      for (i64 o = begin * columns; o < end * columns; ++o)
        la::kernel::finish<E>(sum(o), line * columns + o, i64(1), i64(0), x0, y0, b0, w0);
    }
  }
  /// The first or last point of a line.
  void end_point(i64 i, i64 j, i64 l) const {
    auto const p = neighbour(i, j, 0, 0), q = neighbour(i, j, 0, 1), r = neighbour(i, j, 1, 0), s = neighbour(i, j, 1, 1);
    i64 const line = (i * box.n[1] + j) * box.n[2];
    T const* const v = x + line * k;
    for (i64 c = 0; c < k; ++c) {
      auto const beside = [&](int up) {
        if (up ? l + 1 < box.n[2] : l > 0) return v[(up ? l + 1 : l - 1) * k + c];
        auto const& f = box.faces[2][up];
        return f.first < 0 ? T(0) : ghosts[(f.first + i * f.outer + j * f.inner) * k + c];
      };
      i64 const o = l * k + c;
      T const sum = a.centre * v[o] + (p.coefficient * p.values[o] + q.coefficient * q.values[o]) +
                    (r.coefficient * r.values[o] + s.coefficient * s.values[o]) + a.sides[2] * (beside(0) + beside(1));
      la::kernel::finish<E>(sum, line + l, k, c, x, y, b, w);
    }
  }

  /// Pieces of lines, each of `piece` points at most.
  void pieces(i64 begin, i64 end, i64 piece, Points points) const {
    i64 const n = box.n[2], in_line = (n + piece - 1) / piece;
    bool const ghost_first = box.faces[2][0].first >= 0, ghost_last = box.faces[2][1].first >= 0;
    for (i64 p = begin; p < end; ++p) {
      i64 const line = p / in_line, first = p % in_line * piece, last = std::min(first + piece, n) - 1;
      i64 const i = line / box.n[1], j = line % box.n[1];
      bool const is_inner = inner(i, j);
      if (points == Points::without_ghosts && !is_inner) continue;
      bool const ends = points == Points::with_ghosts;
      auto const wanted = [&](bool ghost) { return is_inner ? ghost == ends : true; };
      if (first == 0 && wanted(n == 1 ? ghost_first || ghost_last : ghost_first)) end_point(i, j, 0);
      if (!is_inner || !ends) middle(i, j, std::max<i64>(first, 1), std::min(last + 1, n - 1));
      if (n > 1 && last == n - 1 && wanted(ghost_last)) end_point(i, j, n - 1);
    }
  }
};

template <class T>
void star(Executor& executor, StarBox box, Points points, StarCoefficients<T> a, Epilogue e, i64 k, T const* x, T const* ghosts, T* y,
          T const* b, T const* w) {
  i64 const lines = box.n[0] * box.n[1];
  if (lines * box.n[2] == 0) return;
  i64 const piece = std::min(box.n[2], longest_piece), count = lines * ((box.n[2] + piece - 1) / piece);
  la::kernel::with_epilogue(e, [&](auto known) {
    Star<decltype(known)::value, T> const of{box, a, k, x, ghosts, y, b, w};
    device::parallel_ranges(
        executor, count, [of, piece, points](i64 begin, i64 end) { of.pieces(begin, end, piece, points); },
        std::max<i64>(1, serial_entries / (piece * k)));
  });
}

#define INSTANTIATE(T) \
  template void star(Executor&, StarBox, Points, StarCoefficients<T>, Epilogue, i64, T const*, T const*, T*, T const*, T const*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
