// Dense products on a GPU: a warp for each row, whose lanes read neighbouring entries.
#include "asterism/base/dtype.hpp"
#include "asterism/device/gpu/lanes.hpp"
#include "asterism/precond/direct/dense_product.kernels.hpp"

namespace asterism::precond::kernel {
namespace {

using device::gpu::from_lane, device::gpu::Guards;
using i64 = std::int64_t;

template <class T, class S>
__global__ void dense_rows(Guards guards, i64 m, i64 n, i64 k, int lanes, T const* a, S const* b, S* z) {
  if (!guards.pass()) return;
  i64 const thread = i64(blockIdx.x) * blockDim.x + threadIdx.x, threads = i64(gridDim.x) * blockDim.x;
  int const lane = int(thread % lanes);
  // all threads of a warp go round equally often: they exchange sums
  for (i64 i0 = 0; i0 < m; i0 += threads / lanes) {
    i64 const i = i0 + thread / lanes;
    bool const mine = i < m;
    T const* const row = a + (mine ? i : 0) * n;
    for (i64 j = 0; j < k; ++j) {
      T s0(0), s1(0), s2(0), s3(0);  // loads that do not wait for each other
      i64 c = lane;
      for (; c + 3 * lanes < n; c += 4 * lanes) {
        s0 += row[c] * T(b[c * k + j]);
        s1 += row[c + lanes] * T(b[(c + lanes) * k + j]);
        s2 += row[c + 2 * lanes] * T(b[(c + 2 * lanes) * k + j]);
        s3 += row[c + 3 * lanes] * T(b[(c + 3 * lanes) * k + j]);
      }
      for (; c < n; c += lanes) s0 += row[c] * T(b[c * k + j]);
      T s = (s0 + s1) + (s2 + s3);
      for (int half = lanes / 2; half > 0; half /= 2) s += from_lane(s, half, lanes);
      if (mine && lane == 0) z[i * k + j] = S(s);
    }
  }
}

}  // namespace

template <class T, class S>
void dense_product(Executor& executor, i64 m, i64 n, i64 k, T const* a, S const* b, S* z) {
  if (m == 0) return;
  int const block = ASTERISM_GPU_BLOCK, lanes = device::gpu::lanes_of(block);
  i64 const blocks = (m * lanes + block - 1) / block;
  device::gpu::launch(executor, dense_rows<T, S>, blocks < device::gpu::most_blocks ? blocks : device::gpu::most_blocks, block, 0,
                      Guards(executor), m, n, k, lanes, a, b, z);
}

#define INSTANTIATE(T, S) template void dense_product(Executor&, i64, i64, i64, T const*, S const*, S*);
ASTERISM_FOR_DENSE_PRODUCTS(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::precond::kernel
