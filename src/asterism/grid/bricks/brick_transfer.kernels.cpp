#include "asterism/grid/bricks/brick_transfer.kernels.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "asterism/base/dtype.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/grid/bricks/brick_rows.kernels.hpp"
#include "asterism/la/formats/simd_group.hpp"

namespace asterism::grid::kernel {
namespace {

using i64 = std::int64_t;

/// f(width) with the points of a brick along its last axis: a constant for the usual ones, so that loops over them need no count.
template <class F>
void with_width(i64 width, F const& f) {
  if (width == 8) f(std::integral_constant<i64, 8>());
  else if (width == 4) f(std::integral_constant<i64, 4>());
  else f(width);
}

/// Eight real numbers in registers. An array of eight, or a vector that is wider than a register, g++ 12 keeps in memory.
template <class R>
struct Eight {
  using G = la::kernel::Group<R, 8 * sizeof(R)>;
  typename G::type v{};
  /// The first `count` of them; zeros after these.
  static Eight from(R const* p, i64 count) {
    if (count >= 8) return {G::load(p)};
    R part[8] = {};
    std::copy_n(p, count, part);
    return {G::load(part)};
  }
  void to(R* p, i64 count) const {
    if (count >= 8) return G::store(v, p);
    R part[8];
    G::store(v, part);
    std::copy_n(part, count, p);
  }
  void add(R w, Eight const& x) { v += w * x.v; }
};

/// out[k] of fine points [begin, end): from coarse values `row`, whose first one is number `low`.
template <class T>
void expand(BrickStencils::Fine const& z, i64 begin, i64 end, i64 low, T const* row, T* out) {
  auto const one = [&](i64 k) {
    auto const& p = z.fine[std::size_t(k)];
    T sum = T(p.weight[0]) * row[p.at[0] - low] + T(p.weight[1]) * row[p.at[1] - low];
    if (z.most == 4) sum += T(p.weight[2]) * row[p.at[2] - low] + T(p.weight[3]) * row[p.at[3] - low];
    out[k - begin] = sum;
  };
  i64 k = begin;
  for (; k < std::min(end, z.alike.first); ++k) one(k);
  if (i64 const pairs = (std::min(end, z.alike.last) - k) / 2; pairs > 0) {
    auto const &e = z.fine[std::size_t(k)], &o = z.fine[std::size_t(k + 1)];
    T const e0(e.weight[0]), e1(e.weight[1]), o0(o.weight[0]), o1(o.weight[1]);
    T const *const a = row + (e.at[0] - low), *const b = row + (e.at[1] - low), *const c = row + (o.at[0] - low),
                   *const d = row + (o.at[1] - low);
    T* const to = out + (k - begin);
    for (i64 t = 0; t < pairs; ++t) {
      to[2 * t] = e0 * a[t] + e1 * b[t];
      to[2 * t + 1] = o0 * c[t] + o1 * d[t];
    }
    if (z.most == 4) {
      T const e2(e.weight[2]), e3(e.weight[3]), o2(o.weight[2]), o3(o.weight[3]);
      T const *const a2 = row + (e.at[2] - low), *const b2 = row + (e.at[3] - low), *const c2 = row + (o.at[2] - low),
                     *const d2 = row + (o.at[3] - low);
      for (i64 t = 0; t < pairs; ++t) {
        to[2 * t] += e2 * a2[t] + e3 * b2[t];
        to[2 * t + 1] += o2 * c2[t] + o3 * d2[t];
      }
    }
    k += 2 * pairs;
  }
  for (; k < end; ++k) one(k);
}

/// to[0 .. n): the sum of the rows at(c) of coarse points c, with the weights that are not zero.
template <class T, class At>
void combine(Axis::Few const& p, int most, At const& at, i64 n, T* __restrict to) {
  T const* from[4] = {};
  T w[4] = {};
  int count = 0;
  for (int e = 0; e < most; ++e)
    if (p.weight[e] != 0) from[count] = at(p.at[e]), w[count++] = T(p.weight[e]);
  if (count == 1 && w[0] == T(1)) std::copy_n(from[0], n, to);
  else if (count <= 1)
    for (i64 c = 0; c < n; ++c) to[c] = count == 1 ? w[0] * from[0][c] : T(0);
  else if (count == 2)
    for (i64 c = 0; c < n; ++c) to[c] = w[0] * from[0][c] + w[1] * from[1][c];
  else if (count == 3)
    for (i64 c = 0; c < n; ++c) to[c] = w[0] * from[0][c] + w[1] * from[1][c] + w[2] * from[2][c];
  else
    for (i64 c = 0; c < n; ++c) to[c] = w[0] * from[0][c] + w[1] * from[1][c] + w[2] * from[2][c] + w[3] * from[3][c];
}

/// to[c - begin] of coarse points [begin, end): from fine values `row`, whose first one is point number `low`.
template <class T>
void contract(Held const& z, i64 begin, i64 end, i64 low, T const* row, T* to) {
  auto const one = [&](i64 c) {
    auto const& s = z.of[std::size_t(c)];
    T sum(0);
    for (int g = 0; g < s.count; ++g) sum += T(s.weight[g]) * row[s.at[g] - low];
    to[c - begin] = sum;
  };
  i64 c = begin;
  for (; c < std::min(end, z.alike.first); ++c) one(c);
  if (i64 const count = std::min(end, z.alike.last) - c; count > 0) {
    auto const& s = z.of[std::size_t(c)];
    T w[4] = {};
    for (int g = 0; g < s.count; ++g) w[g] = T(s.weight[g]);
    T const* const from = row + (s.at[0] - low);
    T* const out = to + (c - begin);
    auto const sums = [&](auto width) {
      for (i64 t = 0; t < count; ++t) {
        T sum = w[0] * from[2 * t];
        for (int g = 1; g < width; ++g) sum += w[g] * from[2 * t + g];
        out[t] = sum;
      }
    };
    if (s.count == 4) sums(std::integral_constant<int, 4>());
    else if (s.count == 3) sums(std::integral_constant<int, 3>());
    else if (s.count == 2) sums(std::integral_constant<int, 2>());
    else sums(std::integral_constant<int, 1>());
    c += count;
  }
  for (; c < end; ++c) one(c);
}

/// f(first, count) for those that follow each other along the last axis, at most so many.
template <class F>
void each_run(BrickStencils const& s, std::span<int const> all, i64 most, F const& f) {
  auto const* const numbers = all.data();
  auto const n = i64(all.size());
  for (i64 t = 0; t < n;) {
    auto next = s.at[std::size_t(numbers[t])];
    i64 count = 1;
    while (++next[2], count < most && t + count < n && s.at[std::size_t(numbers[t + count])] == next) ++count;
    f(numbers + t, count);
    t += count;
  }
}

/// A row of a brick, and its weight.
template <class R>
struct WeightedRow {
  i64 beside, within;  // which brick beside that one
  R weight;
};

/// Of the coarse rows that lie in bricks of one kind: what each is the sum of.
template <class R>
struct RowLists {
  std::array<int, 2> kinds{};         // of bricks along both axes
  std::vector<WeightedRow<R>> parts;  // of each row
  std::vector<std::size_t> ends;      // of the parts of each coarse row
  std::array<bool, 9> used{};         // which bricks beside
};

/// From one of these bricks: its coarse points x and y, and its first fine point o.
template <class R>
RowLists<R> lists_of(BrickStencils const& s, std::array<int, 2> const& kinds, Axis::Range const& x, Axis::Range const& y,
                     std::array<i64, 2> const& o, double factor) {
  auto const &X = s.held[0], &Y = s.held[1];
  auto const b = s.brick;
  RowLists<R> out;
  out.kinds = kinds;
  auto const place = [&](std::size_t d, i64 p) -> std::pair<i64, i64> {  // 0, 1 or 2: the brick before, this one, or after; point in it
    i64 const in = p - o[d] + b[d];
    return {in / b[d], in % b[d]};
  };
  auto const part = [&](i64 i, i64 j, double weight) {
    auto const [before, plane] = place(0, i);
    auto const [beside, row] = place(1, j);
    out.used[std::size_t(before * 3 + beside)] = true;
    return WeightedRow<R>{before * 3 + beside, (plane * b[1] + row) * b[2], R(weight * factor)};
  };
  for (i64 c = x.first; c < x.last; ++c)
    for (i64 d = y.first; d < y.last; ++d) {
      auto const &p = X.of[std::size_t(c)], &q = Y.of[std::size_t(d)];
      for (int g = 0; g < p.count; ++g)
        for (int h = 0; h < q.count; ++h) out.parts.push_back(part(p.at[g], q.at[h], p.weight[g] * q.weight[h]));
      out.ends.push_back(out.parts.size());
    }
  return out;
}

/// Of bricks first to before last of a run of `count`: each coarse row's sum of fine rows, in the order of the lists.
template <class T>
void sum_parts(RowLists<real_t<T>> const& of_kind, i64 brick, i64 all, i64 none, BrickPlaces<T> const& fine, int const* numbers, i64 count,
               i64 first, i64 last, T* rows, i64 length) {
  using R = real_t<T>;
  auto const& [_, parts, ends, used] = of_kind;
  with_width(brick, [&](auto width) {
    i64 const reals = width * numbers_of<T>;
    auto const find = [&](i64 e, std::array<T const*, 9>& out) {
      int const* const near = fine.neighbours + all * numbers[std::clamp<i64>(e, 0, count - 1)];
      i64 const along = e < 0 ? 0 : e < count ? 1 : 2;
      for (std::size_t q = 0; q < 9; ++q)
        if (used[q]) out[q] = fine(q == 4 && along == 1 ? numbers[e] : near[i64(q) * 3 + along - none]);
    };
    std::array<T const*, 9> now{};
    for (i64 e = first; e < last; ++e) {
      find(e, now);
      for (i64 k = 0; k < reals; k += 8) {
        auto const* p = parts.data();
        T* out = rows + (e - first) * width;
        for (auto const end : ends) {
          auto const from = [&](WeightedRow<R> const* q) {
            return Eight<R>::from((R const*)(now[std::size_t(q->beside)] + q->within) + k, reals - k);
          };
          Eight<R> sum, other;  // two sums: each addition waits for the one before
          auto const* const end_of = parts.data() + end;
          for (; p + 1 < end_of; p += 2) sum.add(p->weight, from(p)), other.add(p[1].weight, from(p + 1));
          if (p < end_of) sum.add(p->weight, from(p)), ++p;
          sum.add(R(1), other);
          sum.to((R*)out + k, reals - k);
          out += length;
        }
      }
    }
  });
}

}  // namespace

void BrickStencils::Fine::find_alike() {
  auto const n = i64(fine.size());
  auto const follows = [&](i64 k) {
    auto const &a = fine[std::size_t(k)], &b = fine[std::size_t(k + 2)];
    for (int e = 0; e < most; ++e)
      if (b.at[e] != a.at[e] + 1 || b.weight[e] != a.weight[e]) return false;
    return true;
  };
  for (i64 k = 0; k + 2 < n;) {
    i64 end = k;
    while (end + 2 < n && follows(end)) ++end;
    if (end > k && end + 2 - k > alike.last - alike.first) alike = {k, end + 2};
    k = std::max(end, k + 1);
  }
}

void Held::find_alike() {
  auto const m = i64(of.size());
  auto const in_a_row = [](Axis::Several const& s) { return s.count > 0 && s.at[s.count - 1] - s.at[0] == s.count - 1; };
  auto const follows = [&](i64 c) {
    auto const &a = of[std::size_t(c)], &b = of[std::size_t(c + 1)];
    bool same = a.count == b.count && in_a_row(a) && in_a_row(b);
    for (int g = 0; same && g < a.count; ++g) same = b.at[g] == a.at[g] + 2 && b.weight[g] == a.weight[g];
    return same;
  };
  for (i64 c = 0; c + 1 < m;) {
    i64 end = c;
    while (end + 1 < m && follows(end)) ++end;
    if (end > c && end + 1 - c > alike.last - alike.first) alike = {c, end + 1};
    c = std::max(end, c + 1);
  }
}

void Held::find_kinds(i64 brick) {
  auto const points = i64(from.size()) - 1;
  std::vector<i64> firsts;  // bricks of each kind
  for (i64 begin = 0; begin < points; begin += brick) {
    Axis::Range const mine{from[std::size_t(begin)], from[std::size_t(std::min(begin + brick, points))]};
    auto const is_like = [&](i64 other) {
      auto const& theirs = bricks[std::size_t(other)].of;
      bool same = mine.last - mine.first == theirs.last - theirs.first;
      for (i64 c = 0; same && c < mine.last - mine.first; ++c) {
        auto const &a = of[std::size_t(mine.first + c)], &b = of[std::size_t(theirs.first + c)];
        same = a.count == b.count;
        for (int g = 0; same && g < a.count; ++g) same = a.at[g] - begin == b.at[g] - other * brick && a.weight[g] == b.weight[g];
      }
      return same;
    };
    int kind = 0;
    while (kind < int(firsts.size()) && !is_like(firsts[std::size_t(kind)])) ++kind;
    if (kind == int(firsts.size())) firsts.push_back(i64(bricks.size()));
    bricks.push_back({mine, kind});
  }
}

/// Some bricks along the last axis at a time: of each of their planes the coarse rows around, each the sum of those of 2 planes (4 of
/// cubics); then each row is the sum of as many of these, and is made longer. They go to the bricks one brick after the other: rows of many
/// bricks would want the same lines of the cache.
template <class T>
void interpolate_bricks(BrickStencils const& s, std::span<int const> bricks, bool adds, T const* around, BrickPlaces<T> const& fine) {
  if (interpolate_rows(s, bricks, adds, around, fine)) return;
  using R = real_t<T>;
  auto const& [X, Y, Z] = s.axes;
  auto const b = s.brick;
  i64 const m1 = Y.around, m2 = Z.around;
  constexpr i64 line_of_cache = 64 / i64(sizeof(T));
  i64 const most = std::max<i64>(8192 / (b[0] * b[1] * b[2]), 1), length = most * b[2];
  std::vector<T> row(static_cast<std::size_t>(m2)), rows(std::size_t(b[1] * length)), between;
  std::vector<T*> places(static_cast<std::size_t>(most));
  each_run(s, bricks, most, [&](int const* numbers, i64 count) {
    auto const& at = s.at[std::size_t(*numbers)];
    for (i64 c = 0; c < count; ++c) places[std::size_t(c)] = fine(numbers[c]);
    i64 const o0 = at[0] * b[0], o1 = at[1] * b[1], o2 = at[2] * b[2], e2 = std::min(o2 + count * b[2], Z.end);
    i64 const n0 = std::min(b[0], X.end - o0), n1 = std::min(b[1], Y.end - o1);
    i64 low = m2, high = 0;
    for (i64 c = at[2]; c < at[2] + count; ++c)
      low = std::min(low, Z.of_brick[std::size_t(c)].first), high = std::max(high, Z.of_brick[std::size_t(c)].last);
    auto const [y_low, y_high] = Y.of_brick[std::size_t(at[1])];
    i64 const n = high - low;
    if (n1 < b[1] || e2 < o2 + count * b[2]) std::fill(rows.begin(), rows.end(), T(0));
    between.resize(std::size_t(std::max<i64>(0, (y_high - y_low) * n)));
    for (i64 i = 0; i < b[0]; ++i) {
      if (i < n0) {
        auto const& x = X.fine[std::size_t(o0 + i)];
        for (i64 c = y_low; c < y_high; ++c)
          combine(x, X.most, [&](i64 p) { return around + (p * m1 + c) * m2 + low; }, n, between.data() + (c - y_low) * n);
        for (i64 j = 0; j < n1; ++j) {
          // what is added to later is on its way while the rows are computed
          for (i64 c = 0; c < count; ++c)
            for (i64 k = 0; k < b[2]; k += line_of_cache) __builtin_prefetch(places[std::size_t(c)] + (i * b[1] + j) * b[2] + k, 0, 2);
          combine(Y.fine[std::size_t(o1 + j)], Y.most, [&](i64 p) { return between.data() + (p - y_low) * n; }, n, row.data());
          expand(Z, o2, e2, low, row.data(), rows.data() + j * length);
        }
      } else {
        std::fill(rows.begin(), rows.end(), T(0));
      }
      with_width(b[2], [&](auto width) {
        for (i64 c = 0; c < count; ++c) {
          T* const out = places[std::size_t(c)] + i * b[1] * width;
          T const* const values = rows.data() + c * width;
          i64 const reals = width * numbers_of<T>;
          for (i64 r = 0; r < b[1]; ++r)
            for (i64 k = 0; k < reals; k += 8) {
              R* const to = (R*)(out + r * width) + k;
              auto sum = Eight<R>::from((R const*)(values + r * length) + k, reals - k);
              if (adds) sum.add(R(1), Eight<R>::from(to, reals - k));
              sum.to(to, reals - k);
            }
        }
      });
    }
  });
}

/// Bricks that follow each other along the last axis, and one more at each end: sums of rows, and then along these.
template <class T>
void restrict_bricks(BrickStencils const& s, std::span<int const> bricks, double factor, BrickPlaces<T> const& fine, T* coarse, T* others) {
  using R = real_t<T>;
  auto const &Y = s.held[1], &Z = s.held[2];
  auto const b = s.brick;
  constexpr i64 most = 64;
  std::vector<T> rows, sums_of_row;
  std::vector<RowLists<R>> lists;
  // numbers of neighbours, of 27 in three dimensions: those of fewer begin later
  i64 const all = s.dimensions == 3 ? 27 : s.dimensions == 2 ? 9 : 3, none = all == 27 ? 0 : all == 9 ? 9 : 12;
  auto const sum_rows = sum_rows_of<T>(s);
  std::array<std::vector<R>, 2> weights;  // of its planes and rows
  for (std::size_t d = 0; sum_rows && d < 2; ++d)
    for (auto const w : s.held[d].folds.weights) weights[d].push_back(R(d == 0 ? w * factor : w));
  each_run(s, bricks, most, [&](int const* numbers, i64 count) {
    auto const& at = s.at[std::size_t(*numbers)];
    std::array<i64, 3> o;  // the first point, of own ones
    for (std::size_t d = 0; d < 3; ++d) o[d] = at[d] * b[d] - s.before[d];
    auto const held = [&](std::size_t d) { return s.held[d].bricks[std::size_t(o[d] / b[d])]; };
    auto const [x, kind_x] = held(0);
    auto const [y, kind_y] = held(1);
    Axis::Range const z{held(2).of.first, Z.bricks[std::size_t(o[2] / b[2] + count - 1)].of.last};
    i64 const wide = y.last - y.first, deep = x.last - x.first;
    if (wide <= 0 || deep <= 0 || z.last <= z.first) return;
    i64 const first = Z.of[std::size_t(z.first)].at[0] < o[2] ? -1 : 0;
    auto const& end_of = Z.of[std::size_t(z.last - 1)];
    i64 const last = end_of.at[end_of.count - 1] >= o[2] + count * b[2] ? count + 1 : count;
    i64 const length = (last - first) * b[2], low = o[2] + first * b[2];
    i64 const planes = sum_rows ? (b[0] + 1) / 2 : deep, beside = sum_rows ? b[1] / 2 : wide;  // of rows that are summed up
    if (i64(rows.size()) < planes * beside * length) rows.resize(std::size_t(planes * beside * length));
    if (sum_rows) {
      auto const of = [&](std::size_t d, i64 number) { return weights[d].data() + number * s.held[d].folds.count; };
      sum_rows({all, none, planes, s.held[0].folds.start, of(0, x.first), of(1, y.first)}, fine, numbers, count, first, last, rows.data(),
               length);
    } else {
      std::array const kinds{kind_x, kind_y};
      auto found = std::find_if(lists.begin(), lists.end(), [&](auto const& l) { return l.kinds == kinds; });
      if (found == lists.end()) {
        lists.push_back(lists_of<R>(s, kinds, x, y, {o[0], o[1]}, factor));
        found = lists.end() - 1;
      }
      sum_parts(*found, b[2], all, none, fine, numbers, count, first, last, rows.data(), length);
    }
    sums_of_row.resize(std::size_t(z.last - z.first));
    for (i64 r = 0; r < deep * wide; ++r) {
      contract(Z, z.first, z.last, low, rows.data() + (r / wide * beside + r % wide) * length, sums_of_row.data());
      auto const* const to = s.targets.data() + ((x.first + r / wide) * i64(Y.of.size()) + y.first + r % wide) * i64(Z.segments.size());
      for (i64 c = z.first; c < z.last;) {
        auto const number = Z.segment[std::size_t(c)];
        auto const& segment = Z.segments[std::size_t(number)];
        i64 const end = std::min(z.last, segment.end), target = to[number];
        T* const out = (target < 0 ? others - 1 - target : coarse + target) - segment.begin;
        T const* const from = sums_of_row.data() - z.first;
        if (end - c == 8) std::memcpy(out + c, from + c, 8 * sizeof(T)), c = end;  // the usual brick
        for (; c < end; ++c) out[c] = from[c];
      }
    }
  });
}

#define INSTANTIATE(T)                                                                                                    \
  template void interpolate_bricks<T>(BrickStencils const&, std::span<int const>, bool, T const*, BrickPlaces<T> const&); \
  template void restrict_bricks<T>(BrickStencils const&, std::span<int const>, double, BrickPlaces<T> const&, T*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
