// Products on a GPU. The scalar columns of a block row are shared by some threads: neighbours read neighbouring values.
#include "asterism/base/dtype.hpp"
#include "asterism/device/gpu/lanes.hpp"
#include "asterism/la/formats/bcsr/bcsr_format.kernels.hpp"

namespace asterism::la::kernel {
namespace {

using device::gpu::from_lane, device::gpu::Guards;
using i64 = std::int64_t;

/// Known before the kernel, which calls no function of the host.
template <Epilogue E>
constexpr bool writes_all_rows = written_by(E) == Writes::all_rows;

/// `lanes` threads for each block row.
template <Epilogue E, int H, class T, class V>
__global__ void bcsr_rows(Guards guards, BcsrRows<T, V> a, int lanes, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (!guards.pass()) return;
  i64 const thread = i64(blockIdx.x) * blockDim.x + threadIdx.x, threads = i64(gridDim.x) * blockDim.x;
  int const lane = int(thread % lanes);
  // all threads of a warp go round equally often: they exchange sums
  for (i64 i0 = 0; i0 < a.block_rows; i0 += threads / lanes) {
    i64 const i = i0 + thread / lanes;
    i64 const begin = i < a.block_rows ? a.offsets[i] : 0, end = i < a.block_rows ? a.offsets[i + 1] : 0;
    bool const writes = i < a.block_rows && lane == 0 && (writes_all_rows<E> || begin < end);
    for (i64 j = 0; j < k; ++j) {
      T s[H] = {};
      for (std::int32_t p = lane; p < std::int32_t(end - begin) * a.width; p += lanes) {
        V const* const v = a.values + (begin * a.width + p) * H;
        T const value = x[i64(a.columns[begin + p / a.width] + p % a.width) * k + j];
        for (int r = 0; r < H; ++r) s[r] += T(v[r]) * value;
      }
      for (int r = 0; r < H; ++r) {
        for (int half = lanes / 2; half > 0; half /= 2) s[r] += from_lane(s[r], half, lanes);
        if (writes) finish<E>(s[r], i * H + r, k, j, x, y, b, w);
      }
    }
  }
}

/// f(height), known to the compiler.
template <class F>
void with_height(std::int32_t height, F const& f) {
  switch (height) {
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    case 4: return f(std::integral_constant<int, 4>());
    default: return f(std::integral_constant<int, 6>());
  }
}

}  // namespace

template <class T, class V>
void bcsr_product(Executor& executor, BcsrRows<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  if (a.block_rows == 0) return;
  int const block = ASTERISM_GPU_BLOCK, lanes = device::gpu::lanes_for_rows(a.block_rows, a.blocks * a.width);
  i64 const blocks = (i64(a.block_rows) * lanes + block - 1) / block;
  with_epilogue(e, [&](auto known) {
    with_height(a.height, [&](auto height) {
      device::gpu::launch(executor, bcsr_rows<decltype(known)::value, decltype(height)::value, T, V>,
                          blocks < device::gpu::most_blocks ? blocks : device::gpu::most_blocks, block, 0, Guards(executor), a, lanes, k, x,
                          y, b, w);
    });
  });
}

#define INSTANTIATE(T, V) template void bcsr_product(Executor&, BcsrRows<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_STORED(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
