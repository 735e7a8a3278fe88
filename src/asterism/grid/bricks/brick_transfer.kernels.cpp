#include "asterism/grid/bricks/brick_transfer.kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "asterism/base/dtype.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/formats/simd_group.hpp"

namespace asterism::grid::kernel {
namespace {

using i64 = std::int64_t;

/// Weights are real: a complex number is two real ones.
template <class T>
constexpr i64 numbers_of = i64(sizeof(T) / sizeof(real_t<T>));

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
void expand(Axis const& z, i64 begin, i64 end, i64 low, T const* row, T* out) {
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

/// to[c] of all coarse points: from fine values `row`.
template <class T>
void contract(Axis const& z, T const* row, T* to) {
  auto const m = i64(z.coarse.size());
  auto const one = [&](i64 c) {
    auto const& s = z.coarse[std::size_t(c)];
    T sum(0);
    for (int g = 0; g < s.count; ++g) sum += T(s.weight[g]) * row[s.at[g]];
    to[c] = sum;
  };
  i64 c = 0;
  for (; c < std::min(m, z.coarse_alike.first); ++c) one(c);
  if (i64 const count = z.coarse_alike.last - c; count > 0) {
    auto const& s = z.coarse[std::size_t(c)];
    T w[4] = {};
    i64 first = s.at[0];
    for (int g = 0; g < s.count; ++g) first = std::min(first, s.at[g]);
    for (int g = 0; g < s.count; ++g) w[s.at[g] - first] = T(s.weight[g]);
    T const* const from = row + first;
    T* const out = to + c;
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
  for (; c < m; ++c) one(c);
}

}  // namespace

void Axis::find_alike() {
  auto const n = i64(fine.size()), m = i64(coarse.size());
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
  // those of a coarse point follow each other
  auto const in_a_row = [&](Several const& s) {
    i64 low = s.at[0], high = s.at[0];
    for (int g = 0; g < s.count; ++g) low = std::min(low, s.at[g]), high = std::max(high, s.at[g]);
    return s.count > 0 && high - low == s.count - 1;
  };
  auto const coarse_follows = [&](i64 c) {
    auto const &a = coarse[std::size_t(c)], &b = coarse[std::size_t(c + 1)];
    bool same = a.count == b.count && in_a_row(a) && in_a_row(b);
    for (int g = 0; same && g < a.count; ++g) same = b.at[g] == a.at[g] + 2 && b.weight[g] == a.weight[g];
    return same;
  };
  for (i64 c = 0; c + 1 < m;) {
    i64 end = c;
    while (end + 1 < m && coarse_follows(end)) ++end;
    if (end > c && end + 1 - c > coarse_alike.last - coarse_alike.first) coarse_alike = {c, end + 1};
    c = std::max(end, c + 1);
  }
}

/// Some bricks along the last axis at a time: of each of their planes the coarse rows around, each the sum of those of 2 planes (4 of
/// cubics); then each row is the sum of as many of these, and is made longer. They go to the bricks one brick after the other: rows of many
/// bricks would want the same lines of the cache.
template <class T>
void interpolate_bricks(Executor& executor, BrickStencils const& s, bool adds, T const* around, T* fine) {
  using R = real_t<T>;
  auto const& [X, Y, Z] = s.axes;
  auto const b = s.brick;
  i64 const m1 = i64(Y.coarse.size()), m2 = i64(Z.coarse.size());
  constexpr i64 line_of_cache = 64 / i64(sizeof(T));
  i64 const piece = std::clamp<i64>(8192 / (b[0] * b[1] * b[2]), 1, std::max<i64>(s.bricks[2], 1));
  i64 const pieces = (s.bricks[2] + piece - 1) / piece;
  device::parallel_ranges(
      executor, s.bricks[0] * s.bricks[1] * pieces,
      [&](i64 begin, i64 end) {
        i64 const length = piece * b[2];
        std::vector<T> row(static_cast<std::size_t>(m2)), rows(std::size_t(b[0] * b[1] * length)), between;
        for (i64 at = begin; at < end; ++at) {
          i64 const line = at / pieces, c0 = at % pieces * piece, c1 = std::min(s.bricks[2], c0 + piece);
          i64 const o0 = line / s.bricks[1] * b[0], o1 = line % s.bricks[1] * b[1], o2 = c0 * b[2];
          i64 const n0 = std::min(b[0], i64(X.fine.size()) - o0), n1 = std::min(b[1], i64(Y.fine.size()) - o1),
                    e2 = std::min(c1 * b[2], i64(Z.fine.size()));
          i64 low = m2, high = 0;
          for (i64 k = o2; k < e2; ++k)
            for (int e = 0; e < Z.most; ++e) {
              auto const c = Z.fine[std::size_t(k)].at[e];
              low = std::min(low, c), high = std::max(high, c + 1);
            }
          if (n0 < b[0] || n1 < b[1] || e2 < c1 * b[2]) std::fill(rows.begin(), rows.end(), T(0));
          i64 const n = high - low;
          i64 y_low = m1, y_high = 0;
          for (i64 j = o1; j < o1 + n1; ++j)
            for (int f = 0; f < Y.most; ++f) {
              auto const c = Y.fine[std::size_t(j)].at[f];
              y_low = std::min(y_low, c), y_high = std::max(y_high, c + 1);
            }
          between.resize(std::size_t(std::max<i64>(0, (y_high - y_low) * n)));
          for (i64 i = 0; i < n0; ++i) {
            auto const& x = X.fine[std::size_t(o0 + i)];
            for (i64 c = y_low; c < y_high; ++c)
              combine(x, X.most, [&](i64 at) { return around + (at * m1 + c) * m2 + low; }, n, between.data() + (c - y_low) * n);
            for (i64 j = 0; j < n1; ++j) {
              // what is added to later is on its way while the rows are computed
              for (i64 c = c0; c < c1; ++c)
                for (i64 k = 0; k < b[2]; k += line_of_cache)
                  __builtin_prefetch(fine + s.places[std::size_t(line * s.bricks[2] + c)] + (i * b[1] + j) * b[2] + k, 0, 2);
              combine(Y.fine[std::size_t(o1 + j)], Y.most, [&](i64 at) { return between.data() + (at - y_low) * n; }, n, row.data());
              expand(Z, o2, e2, low, row.data(), rows.data() + (i * b[1] + j) * length);
            }
          }
          with_width(b[2], [&](auto width) {
            for (i64 c = c0; c < c1; ++c) {
              T* const out = fine + s.places[std::size_t(line * s.bricks[2] + c)];
              T const* const values = rows.data() + (c - c0) * width;
              i64 const numbers = width * numbers_of<T>;
              for (i64 r = 0; r < b[0] * b[1]; ++r)
                for (i64 k = 0; k < numbers; k += 8) {
                  R* const to = (R*)(out + r * width) + k;
                  auto sum = Eight<R>::from((R const*)(values + r * length) + k, numbers - k);
                  if (adds) sum.add(R(1), Eight<R>::from(to, numbers - k));
                  sum.to(to, numbers - k);
                }
            }
          });
        }
      },
      std::max<i64>(1, 8192 / (b[0] * b[1] * b[2] * piece)));
}

/// Some rows of coarse points at a time, those that are made of about one brick: for each brick along the last axis each plane's sums of
/// rows, which are added to those of the coarse planes; then along the rows.
template <class T>
void restrict_bricks(Executor& executor, BrickStencils const& s, double factor, T const* fine, T* around) {
  using R = real_t<T>;
  auto const& [X, Y, Z] = s.axes;
  auto const b = s.brick;
  i64 const m0 = i64(X.coarse.size()), m1 = i64(Y.coarse.size()), m2 = i64(Z.coarse.size()), n2 = s.bricks[2] * b[2];
  i64 const t0 = std::max<i64>(1, b[0] / 2), t1 = std::max<i64>(1, b[1] / 2), tiles0 = (m0 + t0 - 1) / t0, tiles1 = (m1 + t1 - 1) / t1;
  struct Part {  // a row of a brick along the last axis, and its weight
    i64 line, within;
    R weight;
  };
  struct Sum {  // of one plane, and where it is added
    std::size_t end;
    i64 to[2];
    R weight[2];
  };
  device::parallel_ranges(
      executor, tiles0 * tiles1,
      [&](i64 begin, i64 end) {
        std::vector<T> rows(std::size_t(t0 * t1 * n2));
        std::vector<Eight<R>> sums(std::size_t(t0 * t1));
        std::vector<Part> parts, lines, beside;  // lines: once each; beside: of the first plane
        std::vector<Sum> of_planes;
        for (i64 at = begin; at < end; ++at) {
          // some rows at a time, plane by plane
          i64 const first = at / (tiles0 * s.rows) * s.rows, here = std::min(s.rows, tiles1 - first), in = at - first * tiles0;
          i64 const x0 = in / here * t0, x1 = std::min(m0, x0 + t0), y0 = (first + in % here) * t1, y1 = std::min(m1, y0 + t1);
          i64 const wide = y1 - y0;
          auto const range = [](Axis const& a, i64 from, i64 to) {
            Axis::Range out{i64(a.fine.size()), 0};
            for (i64 c = from; c < to; ++c)
              for (int e = 0; e < a.coarse[std::size_t(c)].count; ++e) {
                auto const p = a.coarse[std::size_t(c)].at[e];
                out = {std::min(out.first, p), std::max(out.last, p + 1)};
              }
            return out;
          };
          auto const planes = range(X, x0, x1), points = range(Y, y0, y1);
          parts.clear(), lines.clear(), of_planes.clear();
          beside.clear();
          for (i64 j = points.first; j < points.last; ++j) beside.push_back({j / b[1] * s.bricks[2], j % b[1] * b[2], R(0)});
          for (i64 i = planes.first; i < planes.last; ++i) {
            i64 const line = i / b[0] * s.bricks[1] * s.bricks[2], within = i % b[0] * b[1] * b[2];
            auto const part = [&](i64 j, double weight) {
              auto const& at_row = beside[std::size_t(j - points.first)];
              return Part{line + at_row.line, within + at_row.within, R(weight * factor)};
            };
            for (i64 j = points.first; j < points.last; ++j) lines.push_back(part(j, 0));
            auto const& x = X.fine[std::size_t(i)];
            for (i64 j = y0; j < y1; ++j) {
              auto const& y = Y.coarse[std::size_t(j)];
              for (int f = 0; f < y.count; ++f) parts.push_back(part(y.at[f], y.weight[f]));
              Sum sum{parts.size(), {}, {}};
              for (int e = 0; e < 2; ++e) {
                bool const used = x.weight[e] != 0 && x.at[e] >= x0 && x.at[e] < x1;
                sum.to[e] = used ? (x.at[e] - x0) * wide + j - y0 : 0, sum.weight[e] = used ? R(x.weight[e]) : R(0);
              }
              if (sum.weight[0] == 0) std::swap(sum.to[0], sum.to[1]), std::swap(sum.weight[0], sum.weight[1]);
              of_planes.push_back(sum);
            }
          }
          with_width(b[2], [&](auto width) {
            i64 const numbers = width * numbers_of<T>;
            for (i64 c = 0; c < s.bricks[2]; ++c) {
              auto const* const places = s.places.data() + c;
              if (c + 1 < s.bricks[2])
                for (auto const& l : lines)
                  for (i64 k = 0; k < width; k += 64 / i64(sizeof(T))) __builtin_prefetch(fine + places[l.line + 1] + l.within + k, 0, 2);
              for (i64 k = 0; k < numbers; k += 8) {
                std::fill(sums.begin(), sums.end(), Eight<R>());
                auto const* p = parts.data();
                for (auto const& of : of_planes) {
                  Eight<R> sum;
                  for (auto const* const end_of = parts.data() + of.end; p < end_of; ++p)
                    sum.add(p->weight, Eight<R>::from((R const*)(fine + places[p->line] + p->within) + k, numbers - k));
                  sums[std::size_t(of.to[0])].add(of.weight[0], sum);
                  if (of.weight[1] != 0) sums[std::size_t(of.to[1])].add(of.weight[1], sum);
                }
                for (i64 r = 0; r < (x1 - x0) * wide; ++r) sums[std::size_t(r)].to((R*)(rows.data() + r * n2 + c * width) + k, numbers - k);
              }
            }
          });
          i64 r = 0;
          for (i64 i = x0; i < x1; ++i)
            for (i64 j = y0; j < y1; ++j) contract(Z, rows.data() + r++ * n2, around + (i * m1 + j) * m2);
        }
      },
      std::max<i64>(1, 1024 / std::max<i64>(n2 * t0 * t1, 1)));
}

#define INSTANTIATE(T)                                                                      \
  template void interpolate_bricks<T>(Executor&, BrickStencils const&, bool, T const*, T*); \
  template void restrict_bricks<T>(Executor&, BrickStencils const&, double, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
