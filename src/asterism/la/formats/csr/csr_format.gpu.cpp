// Products on a GPU. Rows are shared by some threads.
#include "asterism/base/dtype.hpp"
#include "asterism/device/gpu/lanes.hpp"
#include "asterism/la/formats/csr/csr_format.kernels.hpp"

namespace asterism::la::kernel {
namespace {

using device::gpu::from_lane, device::gpu::Guards;
using i64 = std::int64_t;

/// `lanes` threads for each row.
template <Epilogue E, class T, class V>
__global__ void csr_rows(Guards guards, CsrRows<T, V> a, int lanes, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (!guards.pass()) return;
  i64 const thread = i64(blockIdx.x) * blockDim.x + threadIdx.x, threads = i64(gridDim.x) * blockDim.x;
  int const lane = int(thread % lanes);
  // all threads of a warp go round equally often: they exchange sums
  for (i64 i0 = 0; i0 < a.row_count; i0 += threads / lanes) {
    i64 const i = i0 + thread / lanes;
    bool const mine = i < a.row_count;
    i64 const begin = mine ? a.offsets[i] : 0, end = mine ? a.offsets[i + 1] : 0;
    for (i64 j = 0; j < k; ++j) {
      T s(0);
      for (i64 p = begin + lane; p < end; p += lanes) s += T(a.values[p]) * x[i64(a.columns[p]) * k + j];
      for (int half = lanes / 2; half > 0; half /= 2) s += from_lane(s, half, lanes);
      if (mine && lane == 0) finish<E>(s, a.row_ids ? a.row_ids[i] : i, k, j, x, y, b, w);
    }
  }
}

}  // namespace

template <class T, class V>
void csr_product(Executor& executor, CsrRows<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (a.row_count == 0) return;
  int const block = ASTERISM_GPU_BLOCK, lanes = device::gpu::lanes_for_rows(a.row_count, a.entries);
  i64 const blocks = (i64(a.row_count) * lanes + block - 1) / block;
  with_epilogue(e, [&](auto known) {
    device::gpu::launch(executor, csr_rows<decltype(known)::value, T, V>,
                        blocks < device::gpu::most_blocks ? blocks : device::gpu::most_blocks, block, 0, Guards(executor), a, lanes, k, x,
                        y, b, w);
  });
}

#define INSTANTIATE(T, V) template void csr_product(Executor&, CsrRows<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_STORED(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
