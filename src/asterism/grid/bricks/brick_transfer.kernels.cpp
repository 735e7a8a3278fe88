#include "asterism/grid/bricks/brick_transfer.kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "asterism/base/dtype.hpp"
#include "asterism/device/parallel.hpp"

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

/// Some bricks along the last axis at a time: each of their rows is the sum of a few coarse rows (4, or 16 of cubics), which is then made
/// longer. They go to the bricks one brick after the other: rows of many bricks would want the same lines of the cache.
template <class T>
void interpolate_bricks(Executor& executor, BrickStencils const& s, bool adds, T const* around, T* fine) {
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
        std::vector<T> row(static_cast<std::size_t>(m2)), rows(std::size_t(b[0] * b[1] * length));
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
          for (i64 i = 0; i < n0; ++i)
            for (i64 j = 0; j < n1; ++j) {
              // what is added to later is on its way while the rows are computed
              for (i64 c = c0; c < c1; ++c)
                for (i64 k = 0; k < b[2]; k += line_of_cache)
                  __builtin_prefetch(fine + s.places[std::size_t(line * s.bricks[2] + c)] + (i * b[1] + j) * b[2] + k, 0, 2);
              auto const& x = X.fine[std::size_t(o0 + i)];
              auto const& y = Y.fine[std::size_t(o1 + j)];
              T const* from[16];
              T w[16];
              int count = 0;
              for (int e = 0; e < X.most; ++e)
                for (int f = 0; f < Y.most; ++f)
                  if (x.weight[e] * y.weight[f] != 0) {
                    from[count] = around + (x.at[e] * m1 + y.at[f]) * m2 + low;
                    w[count++] = T(x.weight[e] * y.weight[f]);
                  }
              T* const sum = row.data();
              i64 const n = high - low;
              if (count == 4)
                for (i64 c = 0; c < n; ++c) sum[c] = w[0] * from[0][c] + w[1] * from[1][c] + w[2] * from[2][c] + w[3] * from[3][c];
              else if (count == 2)
                for (i64 c = 0; c < n; ++c) sum[c] = w[0] * from[0][c] + w[1] * from[1][c];
              else if (count == 1)
                for (i64 c = 0; c < n; ++c) sum[c] = w[0] * from[0][c];
              else {
                std::fill_n(sum, n, T(0));
                for (int q = 0; q < count; ++q)
                  for (i64 c = 0; c < n; ++c) sum[c] += w[q] * from[q][c];
              }
              expand(Z, o2, e2, low, row.data(), rows.data() + (i * b[1] + j) * length);
            }
          with_width(b[2], [&](auto width) {
            for (i64 c = c0; c < c1; ++c) {
              T* const out = fine + s.places[std::size_t(line * s.bricks[2] + c)];
              T const* const values = rows.data() + (c - c0) * width;
              constexpr i64 most = 8;  // values in registers
              for (i64 r = 0; r < b[0] * b[1]; ++r)
                for (i64 k0 = 0; k0 < width; k0 += most) {
                  T sum[most] = {};
                  i64 const count = std::min<i64>(most, width - k0);
                  for (i64 k = 0; k < count; ++k) sum[k] = values[r * length + k0 + k];
                  if (adds)
                    for (i64 k = 0; k < count; ++k) sum[k] += out[r * width + k0 + k];
                  for (i64 k = 0; k < count; ++k) out[r * width + k0 + k] = sum[k];
                }
            }
          });
        }
      },
      std::max<i64>(1, 8192 / (b[0] * b[1] * b[2] * piece)));
}

/// Some rows of coarse points at a time, those that are made of about one brick: for each brick along the last axis the sums of some rows
/// of fine points, then along the rows.
template <class T>
void restrict_bricks(Executor& executor, BrickStencils const& s, T factor, T const* fine, T* around) {
  auto const& [X, Y, Z] = s.axes;
  auto const b = s.brick;
  i64 const m0 = i64(X.coarse.size()), m1 = i64(Y.coarse.size()), m2 = i64(Z.coarse.size()), n2 = s.bricks[2] * b[2];
  i64 const t0 = std::max<i64>(1, b[0] / 2), t1 = std::max<i64>(1, b[1] / 2), tiles1 = (m1 + t1 - 1) / t1;
  struct Part {  // a row of a brick along the last axis, and its weight
    i64 line, within;
    T weight;
  };
  device::parallel_ranges(
      executor, (m0 + t0 - 1) / t0 * tiles1,
      [&](i64 begin, i64 end) {
        std::vector<T> rows(std::size_t(t0 * t1 * n2));
        std::vector<Part> parts;
        std::vector<std::size_t> ends;  // of each coarse row's parts
        for (i64 at = begin; at < end; ++at) {
          i64 const x0 = at / tiles1 * t0, x1 = std::min(m0, x0 + t0), y0 = at % tiles1 * t1, y1 = std::min(m1, y0 + t1);
          parts.clear(), ends.clear();
          for (i64 i = x0; i < x1; ++i)
            for (i64 j = y0; j < y1; ++j) {
              auto const& x = X.coarse[std::size_t(i)];
              auto const& y = Y.coarse[std::size_t(j)];
              for (int e = 0; e < x.count; ++e)
                for (int f = 0; f < y.count; ++f)
                  parts.push_back({(x.at[e] / b[0] * s.bricks[1] + y.at[f] / b[1]) * s.bricks[2],
                                   (x.at[e] % b[0] * b[1] + y.at[f] % b[1]) * b[2], T(x.weight[e] * y.weight[f]) * factor});
              ends.push_back(parts.size());
            }
          with_width(b[2], [&](auto width) {
            constexpr i64 most = 8;  // values in registers
            for (i64 c = 0; c < s.bricks[2]; ++c) {
              auto const* const places = s.places.data() + c;
              i64 const ahead = c + 1 < s.bricks[2] ? 1 : 0;
              std::size_t p = 0;
              for (std::size_t r = 0; r < ends.size(); ++r) {
                auto const first = p;
                for (i64 k0 = 0; k0 < width; k0 += most) {
                  T sum[most] = {};
                  i64 const count = std::min<i64>(most, width - k0);
                  for (p = first; p < ends[r]; ++p) {
                    T const* const from = fine + places[parts[p].line] + parts[p].within + k0;
                    __builtin_prefetch(fine + places[parts[p].line + ahead] + parts[p].within + k0);
                    T const w = parts[p].weight;
                    for (i64 k = 0; k < count; ++k) sum[k] += w * from[k];
                  }
                  T* const to = rows.data() + i64(r) * n2 + c * width + k0;
                  for (i64 k = 0; k < count; ++k) to[k] = sum[k];
                }
              }
            }
          });
          std::size_t r = 0;
          for (i64 i = x0; i < x1; ++i)
            for (i64 j = y0; j < y1; ++j) contract(Z, rows.data() + i64(r++) * n2, around + (i * m1 + j) * m2);
        }
      },
      std::max<i64>(1, 1024 / std::max<i64>(n2 * t0 * t1, 1)));
}

#define INSTANTIATE(T)                                                                      \
  template void interpolate_bricks<T>(Executor&, BrickStencils const&, bool, T const*, T*); \
  template void restrict_bricks<T>(Executor&, BrickStencils const&, T, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
