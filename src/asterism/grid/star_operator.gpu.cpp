// The star on a GPU (star_operator.kernels.hpp; the host's form is star_operator.kernels.cpp): a thread for each entry.
#include "asterism/base/dtype.hpp"
#include "asterism/grid/star_operator.kernels.hpp"

namespace asterism::grid::kernel {
namespace {

using i64 = std::int64_t;

template <Epilogue E, class T>
struct StarEntry {
  StarBox box;
  Points points;
  StarCoefficients<T> a;
  i64 k;
  T const *x, *ghosts;
  T* y;
  T const *b, *w;

  __device__ void operator()(i64 entry) const {
    i64 const row = entry / k, c = entry % k;
    i64 const at[3] = {row / (box.n[1] * box.n[2]), row / box.n[2] % box.n[1], row % box.n[2]};
    i64 const step[3] = {box.n[1] * box.n[2], box.n[2], 1};
    T sum = a.centre * x[entry];
    bool needs_ghosts = false;
    for (int d = 0; d < 3; ++d)
      for (int up = 0; up < 2; ++up) {
        if (up ? at[d] + 1 < box.n[d] : at[d] > 0) {
          sum += a.sides[d] * x[(up ? row + step[d] : row - step[d]) * k + c];
          continue;
        }
        Face const f = box.faces[d][up];
        if (f.first < 0) continue;
        needs_ghosts = true;
        i64 const outer = d == 0 ? at[1] : at[0], inner = d == 2 ? at[1] : at[2];
        if (points == Points::with_ghosts) sum += a.sides[d] * ghosts[(f.first + outer * f.outer + inner * f.inner) * k + c];
      }
    if (needs_ghosts == (points == Points::with_ghosts)) la::kernel::finish<E>(sum, row, k, c, x, y, b, w);
  }
};

}  // namespace

template <class T>
void star(Executor& executor, StarBox box, Points points, StarCoefficients<T> a, Epilogue e, i64 k, T const* x, T const* ghosts, T* y,
          T const* b, T const* w) {
  la::kernel::with_epilogue(e, [&](auto known) {
    device::parallel_for(executor, box.n[0] * box.n[1] * box.n[2] * k,
                         StarEntry<decltype(known)::value, T>{box, points, a, k, x, ghosts, y, b, w});
  });
}

#define INSTANTIATE(T) \
  template void star(Executor&, StarBox, Points, StarCoefficients<T>, Epilogue, i64, T const*, T const*, T*, T const*, T const*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::grid::kernel
