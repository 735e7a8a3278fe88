#include "asterism/grid/bricks/point_transfer.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::grid::kernel {
namespace {

using i64 = std::int64_t;

/// Sums over planes of the first direction that were formed last. A thread goes along it, and neighbours are made of the same planes.
template <class T, int N>
struct LatestPlanes {
  i64 number[N];
  T sum[N];
  ASTERISM_FN LatestPlanes() {
    for (int p = 0; p < N; ++p) number[p] = -1, sum[p] = T(0);
  }
  template <class F>
  ASTERISM_FN T operator()(i64 plane, F const& form) {
    for (int p = 0; p < N; ++p)
      if (number[p] == plane) return sum[p];
    for (int p = 0; p + 1 < N; ++p) number[p] = number[p + 1], sum[p] = sum[p + 1];
    number[N - 1] = plane;
    return sum[N - 1] = form(plane);
  }
};

/// N: 2, or 4 if an axis has cubics. A thread for each row of bricks along the first direction.
template <int N, class T>
void interpolate_rows(Executor& executor, PointCounts n, bool adds, Axis::Few const* x, Axis::Few const* y, Axis::Few const* z,
                      i64 const* places, T const* around, T* fine) {
  using R = real_t<T>;
  i64 const rows = n.brick[1] * n.brick[2];
  device::parallel_for(executor, n.bricks[0] * n.bricks[1] * n.bricks[2] * rows, [=] ASTERISM_KERNEL(i64 t) {
    int const brick = int(t / rows), in = int(t - brick * rows), wide = int(n.brick[2]), line = brick / int(n.bricks[2]);
    i64 const f1 = line % int(n.bricks[1]) * n.brick[1] + in / wide, f2 = brick % int(n.bricks[2]) * n.brick[2] + in % wide;
    i64 const first = line / int(n.bricks[1]) * n.brick[0];
    bool const there = f1 < n.fine[1] && f2 < n.fine[2];
    i64 row[N], column[N];
    R of_row[N], of_column[N];
    for (int e = 0; e < N; ++e) {
      row[e] = there && e < n.most[1] ? y[f1].at[e] * n.around[2] : 0, of_row[e] = there && e < n.most[1] ? R(y[f1].weight[e]) : R(0);
      column[e] = there && e < n.most[2] ? z[f2].at[e] : 0, of_column[e] = there && e < n.most[2] ? R(z[f2].weight[e]) : R(0);
    }
    auto const of_plane = [&](i64 plane) {
      T const* const from = around + plane * n.around[1] * n.around[2];
      T sum(0);
      for (int e = 0; e < N; ++e)
        for (int g = 0; g < N; ++g)
          if (R const weight = of_row[e] * of_column[g]; weight != 0) sum += T(weight) * from[row[e] + column[g]];
      return sum;
    };
    LatestPlanes<T, N> planes;
    T* out = fine + places[brick] + in;
    for (i64 f0 = first; f0 < first + n.brick[0]; ++f0, out += rows) {
      T sum(0);
      if (there && f0 < n.fine[0])
        for (int e = 0; e < N; ++e)
          if (e < n.most[0] && x[f0].weight[e] != 0) sum += T(R(x[f0].weight[e])) * planes(x[f0].at[e], of_plane);
      *out = adds ? *out + sum : sum;
    }
  });
}

}  // namespace

template <class T>
void interpolate_points(Executor& executor, PointCounts n, bool adds, Axis::Few const* x, Axis::Few const* y, Axis::Few const* z,
                        std::int64_t const* places, T const* around, T* fine) {
  if (n.most[0] == 4 || n.most[1] == 4 || n.most[2] == 4) interpolate_rows<4>(executor, n, adds, x, y, z, places, around, fine);
  else interpolate_rows<2>(executor, n, adds, x, y, z, places, around, fine);
}

template <class T>
void restrict_points(Executor& executor, PointCounts n, T factor, Axis::Several const* x, Axis::Several const* y, Axis::Several const* z,
                     std::int64_t const* places, T const* fine, T* around) {
  device::parallel_for(executor, n.around[0] * n.around[1] * n.around[2], [=] ASTERISM_KERNEL(i64 t) {
    auto const &a = x[t / (n.around[1] * n.around[2])], &b = y[t / n.around[2] % n.around[1]], &c = z[t % n.around[2]];
    T sum(0);
    for (int e = 0; e < a.count; ++e)
      for (int f = 0; f < b.count; ++f) {
        i64 const line = (a.at[e] / n.brick[0] * n.bricks[1] + b.at[f] / n.brick[1]) * n.bricks[2];
        i64 const within = (a.at[e] % n.brick[0] * n.brick[1] + b.at[f] % n.brick[1]) * n.brick[2];
        double const weight = a.weight[e] * b.weight[f];
        for (int g = 0; g < c.count; ++g)
          sum += T(real_t<T>(weight * c.weight[g])) * fine[places[line + c.at[g] / n.brick[2]] + within + c.at[g] % n.brick[2]];
      }
    around[t] = factor * sum;
  });
}

#define INSTANTIATE(T)                                                                                                       \
  template void interpolate_points(Executor&, PointCounts, bool, Axis::Few const*, Axis::Few const*, Axis::Few const*,       \
                                   std::int64_t const*, T const*, T*);                                                       \
  template void restrict_points(Executor&, PointCounts, T, Axis::Several const*, Axis::Several const*, Axis::Several const*, \
                                std::int64_t const*, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
