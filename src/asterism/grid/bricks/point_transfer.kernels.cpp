#include "asterism/grid/bricks/point_transfer.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::grid::kernel {

template <class T>
void interpolate_points(Executor& executor, PointCounts n, bool adds, Axis::Few const* x, Axis::Few const* y, Axis::Few const* z,
                        std::int64_t const* places, T const* around, T* fine) {
  using i64 = std::int64_t;
  i64 const points = n.brick[0] * n.brick[1] * n.brick[2];
  device::parallel_for(executor, n.bricks[0] * n.bricks[1] * n.bricks[2] * points, [=] ASTERISM_KERNEL(i64 t) {
    i64 const brick = t / points, in = t % points;
    i64 const f0 = brick / (n.bricks[1] * n.bricks[2]) * n.brick[0] + in / (n.brick[1] * n.brick[2]);
    i64 const f1 = brick / n.bricks[2] % n.bricks[1] * n.brick[1] + in / n.brick[2] % n.brick[1];
    i64 const f2 = brick % n.bricks[2] * n.brick[2] + in % n.brick[2];
    T sum(0);
    if (f0 < n.fine[0] && f1 < n.fine[1] && f2 < n.fine[2]) {
      auto const &a = x[f0], &b = y[f1], &c = z[f2];
      for (int e = 0; e < n.most[0]; ++e)
        for (int f = 0; f < n.most[1]; ++f) {
          double const weight = a.weight[e] * b.weight[f];
          if (weight == 0) continue;
          T const* const row = around + (a.at[e] * n.around[1] + b.at[f]) * n.around[2];
          for (int g = 0; g < n.most[2]; ++g)
            if (c.weight[g] != 0) sum += T(real_t<T>(weight * c.weight[g])) * row[c.at[g]];
        }
    }
    T& out = fine[places[brick] + in];
    out = adds ? out + sum : sum;
  });
}

template <class T>
void restrict_points(Executor& executor, PointCounts n, T factor, Axis::Several const* x, Axis::Several const* y, Axis::Several const* z,
                     std::int64_t const* places, T const* fine, T* around) {
  using i64 = std::int64_t;
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
