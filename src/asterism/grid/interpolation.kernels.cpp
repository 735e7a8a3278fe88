#include "asterism/grid/interpolation.kernels.hpp"

#include "asterism/base/dtype.hpp"

namespace asterism::grid::kernel {

using i64 = std::int64_t;

namespace {

/// At most two points of one direction, and how much each counts.
struct Pair {
  i64 at[2];
  double weight[2];
};

/// Of fine point i of the own ones: places among the coarse points around; weight 0 where there is none.
ASTERISM_FN Pair coarse_of(Refinement const& r, int d, i64 i) {
  if (!r.coarsened[d]) return {{i + r.low[d] - r.coarse_low[d], 0}, {1, 0}};
  i64 const g = i + r.low[d] - r.shift[d], down = g >> 1;  // rounded down, below 0 too
  Pair p{{down - r.coarse_low[d], down + 1 - r.coarse_low[d]}, {0.5, 0.5}};
  if (g == 2 * down) p.weight[0] = 1, p.weight[1] = 0;
  for (int s = 0; s < 2; ++s)
    if (p.at[s] < 0 || p.at[s] >= r.m[d]) p.at[s] = 0, p.weight[s] = 0;
  return p;
}

}  // namespace

template <class T>
void interpolate(Executor& executor, Refinement r, bool adds, i64 k, T const* coarse, T* fine) {
  device::parallel_for(executor, r.n[0] * r.n[1] * r.n[2] * k, [=] ASTERISM_KERNEL(i64 entry) {
    i64 const row = entry / k, c = entry % k;
    Pair const x = coarse_of(r, 0, row / (r.n[1] * r.n[2])), y = coarse_of(r, 1, row / r.n[2] % r.n[1]), z = coarse_of(r, 2, row % r.n[2]);
    T sum(0);
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b)
        for (int d = 0; d < 2; ++d) {
          double const weight = x.weight[a] * y.weight[b] * z.weight[d];
          if (weight != 0) sum += T(real_t<T>(weight)) * coarse[((x.at[a] * r.m[1] + y.at[b]) * r.m[2] + z.at[d]) * k + c];
        }
    fine[entry] = adds ? fine[entry] + sum : sum;
  });
}

template <class T>
void restrict_to(Executor& executor, Refinement r, i64 k, T const* fine, T* coarse) {
  device::parallel_for(executor, r.m[0] * r.m[1] * r.m[2] * k, [=] ASTERISM_KERNEL(i64 entry) {
    i64 const row = entry / k, c = entry % k;
    i64 const at[3] = {row / (r.m[1] * r.m[2]), row / r.m[2] % r.m[1], row % r.m[2]};
    i64 middle[3];
    int reach[3];
    for (int d = 0; d < 3; ++d) {
      i64 const point = at[d] + r.coarse_low[d];
      middle[d] = (r.coarsened[d] ? 2 * point + r.shift[d] : point) - r.low[d];
      reach[d] = r.coarsened[d];
    }
    T sum(0);
    for (int a = -reach[0]; a <= reach[0]; ++a)
      for (int b = -reach[1]; b <= reach[1]; ++b)
        for (int d = -reach[2]; d <= reach[2]; ++d) {
          i64 const x = middle[0] + a, y = middle[1] + b, z = middle[2] + d;
          if (x < 0 || x >= r.n[0] || y < 0 || y >= r.n[1] || z < 0 || z >= r.n[2]) continue;
          double const weight = (a ? 0.5 : 1) * (b ? 0.5 : 1) * (d ? 0.5 : 1);
          sum += T(real_t<T>(weight)) * fine[((x * r.n[1] + y) * r.n[2] + z) * k + c];
        }
    coarse[entry] = sum;
  });
}

#define INSTANTIATE(T)                                                                   \
  template void interpolate<T>(Executor&, Refinement, bool, std::int64_t, T const*, T*); \
  template void restrict_to<T>(Executor&, Refinement, std::int64_t, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
