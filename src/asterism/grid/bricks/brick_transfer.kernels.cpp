#include "asterism/grid/bricks/brick_transfer.kernels.hpp"

#include <algorithm>

#include "asterism/device/parallel.hpp"

namespace asterism::grid::kernel {

using i64 = std::int64_t;

/// Brick by brick: a row of fine points is made of the sum of at most four coarse rows.
template <class T>
void interpolate_bricks(Executor& executor, BrickStencils const& s, bool adds, T const* around, T* fine) {
  auto const& [X, Y, Z] = s.axes;
  auto const b = s.brick;
  i64 const m1 = i64(Y.coarse.size()), m2 = i64(Z.coarse.size());
  device::parallel_ranges(
      executor, i64(s.places.size()),
      [&](i64 begin, i64 end) {
        std::vector<T> row(static_cast<std::size_t>(m2));
        for (i64 at = begin; at < end; ++at) {
          i64 const o0 = at / (s.bricks[1] * s.bricks[2]) * b[0], o1 = at / s.bricks[2] % s.bricks[1] * b[1], o2 = at % s.bricks[2] * b[2];
          i64 const n0 = std::min(b[0], i64(X.fine.size()) - o0), n1 = std::min(b[1], i64(Y.fine.size()) - o1),
                    n2 = std::min(b[2], i64(Z.fine.size()) - o2);
          T* const brick = fine + s.places[std::size_t(at)];
          if (!adds && (n0 < b[0] || n1 < b[1] || n2 < b[2])) std::fill_n(brick, b[0] * b[1] * b[2], T(0));
          i64 low = m2, high = 0;
          for (i64 k = 0; k < n2; ++k)
            for (auto const c : Z.fine[std::size_t(o2 + k)].at) low = std::min(low, c), high = std::max(high, c + 1);
          for (i64 i = 0; i < n0; ++i)
            for (i64 j = 0; j < n1; ++j) {
              auto const& x = X.fine[std::size_t(o0 + i)];
              auto const& y = Y.fine[std::size_t(o1 + j)];
              std::fill(row.begin() + low, row.begin() + high, T(0));
              for (int e = 0; e < 2; ++e)
                for (int f = 0; f < 2; ++f) {
                  auto const w = T(x.weight[e] * y.weight[f]);
                  if (w == T(0)) continue;
                  T const* const from = around + (x.at[e] * m1 + y.at[f]) * m2;
                  for (i64 c = low; c < high; ++c) row[std::size_t(c)] += w * from[c];
                }
              T* const out = brick + (i * b[1] + j) * b[2];
              for (i64 k = 0; k < n2; ++k) {
                auto const& z = Z.fine[std::size_t(o2 + k)];
                T const value = T(z.weight[0]) * row[std::size_t(z.at[0])] + T(z.weight[1]) * row[std::size_t(z.at[1])];
                out[k] = adds ? out[k] + value : value;
              }
            }
        }
      },
      std::max<i64>(1, 8192 / (b[0] * b[1] * b[2])));
}

/// Row by row of coarse points: the sum of some rows of fine ones, then along the row.
template <class T>
void restrict_bricks(Executor& executor, BrickStencils const& s, T factor, T const* fine, T* around) {
  auto const& [X, Y, Z] = s.axes;
  auto const b = s.brick;
  i64 const m0 = i64(X.coarse.size()), m1 = i64(Y.coarse.size()), m2 = i64(Z.coarse.size()), n2 = i64(Z.fine.size());
  device::parallel_ranges(
      executor, m0 * m1,
      [&](i64 begin, i64 end) {
        std::vector<T> row(std::size_t(s.bricks[2] * b[2]));
        for (i64 at = begin; at < end; ++at) {
          auto const& x = X.coarse[std::size_t(at / m1)];
          auto const& y = Y.coarse[std::size_t(at % m1)];
          std::fill(row.begin(), row.end(), T(0));
          for (int e = 0; e < x.count; ++e)
            for (int f = 0; f < y.count; ++f) {
              auto const w = T(x.weight[e] * y.weight[f]) * factor;
              i64 const line = (x.at[e] / b[0] * s.bricks[1] + y.at[f] / b[1]) * s.bricks[2],
                        within = (x.at[e] % b[0] * b[1] + y.at[f] % b[1]) * b[2];
              for (i64 c = 0; c < s.bricks[2]; ++c) {
                T const* const from = fine + s.places[std::size_t(line + c)] + within;
                T* const to = row.data() + c * b[2];
                for (i64 k = 0; k < b[2]; ++k) to[k] += w * from[k];
              }
            }
          for (i64 c = 0; c < m2; ++c) {
            auto const& z = Z.coarse[std::size_t(c)];
            T sum(0);
            for (int g = 0; g < z.count; ++g) sum += T(z.weight[g]) * row[std::size_t(z.at[g])];
            around[at * m2 + c] = sum;
          }
        }
      },
      std::max<i64>(1, 1024 / std::max<i64>(n2, 1)));
}

#define INSTANTIATE(T)                                                                      \
  template void interpolate_bricks<T>(Executor&, BrickStencils const&, bool, T const*, T*); \
  template void restrict_bricks<T>(Executor&, BrickStencils const&, T, T const*, T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
