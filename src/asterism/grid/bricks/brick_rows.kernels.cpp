#include "asterism/grid/bricks/brick_rows.kernels.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "asterism/base/dtype.hpp"
#include "asterism/la/formats/simd_group.hpp"

namespace asterism::grid::kernel {
namespace {

using i64 = std::int64_t;
using la::kernel::Group;
using la::kernel::register_bytes;

constexpr i64 eight = 8;  // points of a row of a brick

/// n real numbers in registers.
template <class R, i64 n>
using Reals = Group<R, std::size_t(n) * sizeof(R)>;

/// Real k of a half of even and odd points in turn, `u` reals each: which of the n even reals and the n odd ones behind them.
template <i64 n, i64 u, bool upper>
constexpr int turn_of(i64 k) {
  i64 const all = k + (upper ? n : 0), point = all / u;
  return int((point % 2 != 0 ? n : 0) + point / 2 * u + all % u);
}

/// Even and odd points in turn: the lower half of them, or the upper one. It has n reals.
template <class R, i64 n, i64 u, bool upper>
typename Reals<R, n>::type in_turn(typename Reals<R, n>::type const& even, typename Reals<R, n>::type const& odd) {
  if constexpr (std::size_t(n) * sizeof(R) > register_bytes) {
    auto const half = [](auto const& e, auto const& o) {
      return typename Reals<R, n>::type{in_turn<R, n / 2, u, false>(e, o), in_turn<R, n / 2, u, true>(e, o)};
    };
    return upper ? half(even.high, odd.high) : half(even.low, odd.low);
  } else if constexpr (n == u) {
    return upper ? odd : even;
  } else {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return typename Reals<R, n>::type(__builtin_shufflevector(even, odd, turn_of<n, u, upper>(i64(i))...));
    }(std::make_index_sequence<std::size_t(n)>());
  }
}

/// Eight points of a row.
template <class T>
struct Row {
  using R = real_t<T>;
  static constexpr i64 groups = numbers_of<T>;  // of eight reals
  typename Reals<R, eight>::type v[groups];
  static Row load(T const* p) {
    Row out;
    for (i64 g = 0; g < groups; ++g) out.v[g] = Reals<R, eight>::load(reinterpret_cast<R const*>(p) + g * eight);
    return out;
  }
  void store(T* p) const {
    for (i64 g = 0; g < groups; ++g) Reals<R, eight>::store(v[g], reinterpret_cast<R*>(p) + g * eight);
  }
  friend Row operator*(R w, Row const& x) {
    Row out;
    for (i64 g = 0; g < groups; ++g) out.v[g] = w * x.v[g];
    return out;
  }
  Row& add(R w, Row const& x) {
    for (i64 g = 0; g < groups; ++g) v[g] += w * x.v[g];
    return *this;
  }
  Row& add(Row const& x) {
    for (i64 g = 0; g < groups; ++g) v[g] += x.v[g];
    return *this;
  }
  /// Four even points and four odd ones in turn.
  static Row of(typename Reals<R, 4 * groups>::type const& even, typename Reals<R, 4 * groups>::type const& odd) {
    if constexpr (groups == 2) {
      return {{in_turn<R, 8, 2, false>(even, odd), in_turn<R, 8, 2, true>(even, odd)}};
    } else if constexpr (eight * sizeof(R) <= register_bytes) {
      return {{typename Reals<R, eight>::type(__builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7))}};
    } else {
      return {{{in_turn<R, 4, 1, false>(even, odd), in_turn<R, 4, 1, true>(even, odd)}}};
    }
  }
};

/// Weights of the four even and four odd points of a row of a brick.
template <class T>
struct Weights {
  static constexpr i64 reals = 4 * numbers_of<T>;
  real_t<T> even[reals], odd[reals], before_even[reals], behind_odd[reals];
};

/// Of four even and four odd points: coarse points t to t + 3 follow `p`; one before and one behind these count too.
template <class T, bool beside>
Row<T> expanded(Weights<T> const& w, T const* p) {
  using R = real_t<T>;
  using Q = Reals<R, Weights<T>::reals>;
  auto const load = [&](i64 from) { return Q::load(reinterpret_cast<R const*>(p + from)); };
  auto const here = load(0);
  auto even = Q::load(w.even) * here, odd = Q::load(w.odd) * here;
  if constexpr (beside) {
    even += Q::load(w.before_even) * load(-1);
    odd += Q::load(w.behind_odd) * load(1);
  }
  return Row<T>::of(even, odd);
}

/// One brick after the other: rows of coarse points are made longer, then two of these make a row of fine points of a coarse plane, and two
/// of those planes a fine one. beside: whether coarse points beside t count.
template <class T, bool beside>
void interpolate(BrickStencils const& s, std::span<int const> bricks, bool adds, T const* around, BrickPlaces<T> const& fine) {
  using R = real_t<T>;
  auto const& [X, Y, Z] = s.axes;
  i64 const b0 = s.brick[0], b1 = s.brick[1], m0 = X.around, m1 = Y.around, m2 = Z.around, points = b1 * eight;
  constexpr i64 line = 64 / i64(sizeof(T));
  auto const of_z = [&](i64 brick) {
    Weights<T> out;
    for (i64 k = 0; k < Weights<T>::reals; ++k) {
      auto const even = std::size_t(brick * eight + k / numbers_of<T> * 2);
      out.even[k] = R(Z.pairs.at[even]), out.odd[k] = R(Z.pairs.at[even + 1]);
      out.before_even[k] = R(Z.pairs.beside[even]), out.behind_odd[k] = R(Z.pairs.beside[even + 1]);
    }
    return out;
  };
  Weights<T> wz{};
  i64 of_brick = -1;
  std::vector<T> planes(std::size_t(3 * points));
  for (std::size_t n = 0; n < bricks.size(); ++n) {
    auto const& at = s.at[std::size_t(bricks[n])];
    i64 const o0 = at[0] * b0, o1 = at[1] * b1;
    i64 const tx = X.pairs.first + o0 / 2, ty = Y.pairs.first + o1 / 2, tz = Z.pairs.first + at[2] * eight / 2;
    if (of_brick != at[2]) wz = of_z(of_brick = at[2]);
    auto const of = [](std::vector<double> const& w, i64 k) { return R(w[std::size_t(k)]); };
    bool const inside = tz >= 1 && tz + 5 <= m2;
    auto const row = [&](i64 i, i64 j) {  // of coarse points; there are none where weights are zero
      T const* const first = around + (std::clamp<i64>(i, 0, m0 - 1) * m1 + std::clamp<i64>(j, 0, m1 - 1)) * m2;
      __builtin_prefetch(first + tz + 4 * eight, 0, 3);  // of bricks that come later
      if (inside) return expanded<T, beside>(wz, first + tz);
      T part[6];
      for (i64 k = 0; k < 6; ++k) part[k] = tz + k >= 1 && tz + k <= m2 ? first[tz + k - 1] : T(0);
      return expanded<T, beside>(wz, part + 1);
    };
    std::array<i64, 3> made{-1, -1, -1};
    auto const plane = [&](i64 p) -> T const* {  // coarse plane tx - 1 + p
      T* const out = planes.data() + p % 3 * points;
      if (std::exchange(made[std::size_t(p % 3)], p) == p) return out;
      i64 const i = tx - 1 + p;
      auto here = row(i, ty), before = here;
      if (beside && of(Y.pairs.beside, o1) != 0) before = row(i, ty - 1);
      for (i64 j = 0; j < b1; j += 2) {
        auto even = of(Y.pairs.at, o1 + j) * here;
        if constexpr (beside) even.add(of(Y.pairs.beside, o1 + j), before);
        even.store(out + j * eight);
        if (j + 1 == b1) break;
        auto odd = of(Y.pairs.at, o1 + j + 1) * here;
        before = here;
        if (j + 2 < b1 || (beside && of(Y.pairs.beside, o1 + j + 1) != 0)) here = row(i, ty + j / 2 + 1);
        if constexpr (beside) odd.add(of(Y.pairs.beside, o1 + j + 1), here);
        odd.store(out + (j + 1) * eight);
      }
      return out;
    };
    T* const to = fine(bricks[n]);
    T* const next = fine(bricks[std::min(n + 2, bricks.size() - 1)]);
    for (i64 i = 0; i < b0; i += 2) {
      bool const two = i + 1 < b0;
      R const x0 = of(X.pairs.at, o0 + i), x1 = two ? of(X.pairs.at, o0 + i + 1) : R(0), before_x0 = of(X.pairs.beside, o0 + i),
              behind_x1 = two ? of(X.pairs.beside, o0 + i + 1) : R(0);
      T const* const here = plane(i / 2 + 1);
      T const* const before = beside && before_x0 != 0 ? plane(i / 2) : here;
      T const* const behind = beside && behind_x1 != 0 ? plane(i / 2 + 2) : here;
      T* const even = to + i * points;
      T* const odd = even + (two ? points : 0);
      for (i64 k = 0; k < points; k += eight) {
        for (i64 l = 0; l < eight; l += line) {
          __builtin_prefetch(next + i * points + k + l, 1, 2);
          if (two) __builtin_prefetch(next + (i + 1) * points + k + l, 1, 2);
        }
        auto const h = Row<T>::load(here + k);
        auto e = x0 * h, o = x1 * h;
        if constexpr (beside) e.add(before_x0, Row<T>::load(before + k)), o.add(behind_x1, Row<T>::load(behind + k));
        if (adds) {
          e.add(Row<T>::load(even + k)).store(even + k);
          if (two) o.add(Row<T>::load(odd + k)).store(odd + k);
        } else {
          e.store(even + k);
          if (two) o.store(odd + k);
        }
      }
    }
  }
}

/// Rows of eight points of bricks of eight rows, as each of four coarse rows takes them: `county` from twice its number and starty on.
/// countx: of the planes.
template <class T, int countx, int starty, int county>
void sum_rows(FineRows<T> const& f, BrickPlaces<T> const& fine, int const* numbers, i64 count, i64 first, i64 last, T* rows, i64 length) {
  using R = real_t<T>;
  constexpr i64 wide = 4, points = eight * eight;
  constexpr bool reads_before = starty < 0;
  constexpr bool reads_after = 2 * (wide - 1) + starty + county > eight;
  constexpr i64 line = 64 / i64(sizeof(T));
  i64 const b0 = countx == 1 ? 1 : 2 * f.planes;
  bool const plane_before = f.first_plane < 0;
  bool const plane_after = f.first_plane + 2 * (f.planes - 1) + countx > b0;
  auto const find = [&](i64 e, i64 q) {  // brick q of the nine across, beside number e
    i64 const along = e < 0 ? 0 : e < count ? 1 : 2;
    if (q == 4 && along == 1) return static_cast<T const*>(fine(numbers[e]));
    return static_cast<T const*>(fine(fine.neighbours[f.all * numbers[std::clamp<i64>(e, 0, count - 1)] + q * 3 + along - f.none]));
  };
  for (i64 e = first; e < last; ++e) {
    std::array<T const*, 9> at{};
    for (i64 x = plane_before ? 0 : 1; x < (plane_after ? 3 : 2); ++x)
      for (i64 y = reads_before ? 0 : 1; y < (reads_after ? 3 : 2); ++y) at[std::size_t(x * 3 + y)] = find(e, x * 3 + y);
    i64 const later = std::min(e + 2, last - 1);
    T const* const next = find(later, 4);
    T const* const next_row = reads_after ? find(later, 5) : next;
    T const* const next_plane = plane_after ? find(later, 7) : next;
    if (reads_after && plane_after) __builtin_prefetch(find(later, 8), 0, 3);
    for (i64 c = 0; c < f.planes; ++c) {
      T const* from[countx][3];
      R x[countx];
      for (int g = 0; g < countx; ++g) {
        i64 const p = f.first_plane + 2 * c + g, in = p < 0 ? p + b0 : p < b0 ? p : p - b0, brick = p < 0 ? 0 : p < b0 ? 1 : 2;
        for (i64 y = reads_before ? 0 : 1; y < (reads_after ? 3 : 2); ++y) from[g][y] = at[std::size_t(brick * 3 + y)] + in * points;
        x[g] = f.x[c * countx + g];
      }
      for (i64 i = 2 * c; i < std::min(2 * c + 2, b0); ++i) {
        for (i64 l = 0; l < points; l += line) __builtin_prefetch(next + i * points + l, 0, 3);
        if (reads_after)
          for (i64 l = 0; l < eight; l += line) __builtin_prefetch(next_row + i * points + l, 0, 3);
        if (plane_after)
          for (i64 l = 0; l < eight; l += line) __builtin_prefetch(next_plane + i * eight + l, 0, 3);
      }
      Row<T> sums[wide];
      auto const take = [&](auto which) {
        constexpr i64 j = starty + i64(decltype(which)::value), y = j < 0 ? 0 : j < eight ? 1 : 2, k = (j - (y - 1) * eight) * eight;
        auto s = x[0] * Row<T>::load(from[0][y] + k);
        for (int g = 1; g < countx; ++g) s.add(x[g], Row<T>::load(from[g][y] + k));
        for (i64 d = 0; d < wide; ++d) {
          i64 const h = j - starty - 2 * d;
          if (h < 0 || h >= county) continue;
          R const w = f.y[d * county + h];
          if (h == 0) sums[d] = w * s;
          else sums[d].add(w, s);
        }
      };
      [&]<std::size_t... j>(std::index_sequence<j...>) {
        (take(std::integral_constant<std::size_t, j>()), ...);
      }(std::make_index_sequence<std::size_t(2 * (wide - 1) + county)>());
      for (i64 d = 0; d < wide; ++d) sums[d].store(rows + (c * wide + d) * length + (e - first) * eight);
    }
  }
}

}  // namespace

void BrickStencils::Fine::find_pairs(i64 begin, i64 brick) {
  auto const n = i64(fine.size());
  if (most != 2 || (brick % 2 != 0 && n != 1)) return;
  pairs = {true, begin / 2 - low, std::vector<double>(fine.size()), std::vector<double>(fine.size())};
  for (i64 k = 0; k < n; ++k)
    for (int e = 0; e < most; ++e) {
      auto const& p = fine[std::size_t(k)];
      if (p.weight[e] == 0) continue;
      i64 const from_t = p.at[e] - pairs.first - k / 2;
      pairs.found = pairs.found && (from_t == 0 || from_t == (k % 2 == 0 ? -1 : 1));
      (from_t == 0 ? pairs.at : pairs.beside)[std::size_t(k)] += p.weight[e];
    }
}

void Held::find_folds(i64 brick) {
  auto const points = i64(from.size()) - 1;  // of own bricks
  if (of.empty() || (brick % 2 != 0 && points != 1)) return;
  i64 low = of[0].at[0], high = low;
  for (i64 k = 0; k < points; ++k)
    for (i64 c = from[std::size_t(k)]; c < from[std::size_t(k + 1)]; ++c) {
      auto const& p = of[std::size_t(c)];
      if (c != k / 2 || p.count == 0) return;
      low = std::min(low, p.at[0] - 2 * c), high = std::max(high, p.at[p.count - 1] + 1 - 2 * c);
    }
  folds = {int(low), int(high - low), std::vector<double>(std::size_t((points + 1) / 2 * (high - low)))};
  for (i64 c = 0; c < i64(of.size()); ++c) {
    auto const& p = of[std::size_t(c)];
    for (int g = 0; g < p.count; ++g) folds.weights[std::size_t(c * folds.count + p.at[g] - 2 * c - low)] += p.weight[g];
  }
}

template <class T>
bool interpolate_rows(BrickStencils const& s, std::span<int const> numbers, bool adds, T const* around, BrickPlaces<T> const& fine) {
  if (s.brick[2] != eight) return false;
  bool beside = false;
  for (auto const& axis : s.axes) {
    if (!axis.pairs.found) return false;
    beside = beside || std::any_of(axis.pairs.beside.begin(), axis.pairs.beside.end(), [](double w) { return w != 0; });
  }
  if (s.around() > 0) beside ? interpolate<T, true>(s, numbers, adds, around, fine) : interpolate<T, false>(s, numbers, adds, around, fine);
  return s.around() > 0;
}

template <class T>
SumRows<T> sum_rows_of(BrickStencils const& s) {
  auto const &x = s.held[0].folds, &y = s.held[1].folds;
  bool const one_plane = s.brick[0] == 1;
  if (s.brick[1] != eight || s.brick[2] != eight || x.count != (one_plane ? 1 : y.count)) return nullptr;
  auto const of = [&](auto starty, auto county) -> SumRows<T> {
    if (y.start != starty || y.count != county) return nullptr;
    return one_plane ? sum_rows<T, 1, starty, county> : sum_rows<T, county, starty, county>;
  };
  auto const found = {of(std::integral_constant<int, 0>(), std::integral_constant<int, 2>()),
                      of(std::integral_constant<int, 0>(), std::integral_constant<int, 3>()),
                      of(std::integral_constant<int, -1>(), std::integral_constant<int, 3>()),
                      of(std::integral_constant<int, -1>(), std::integral_constant<int, 4>())};
  for (auto const f : found)
    if (f) return f;
  return nullptr;
}

#define INSTANTIATE(T)                                                                                                  \
  template bool interpolate_rows<T>(BrickStencils const&, std::span<int const>, bool, T const*, BrickPlaces<T> const&); \
  template SumRows<T> sum_rows_of<T>(BrickStencils const&);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
