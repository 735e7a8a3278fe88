// The lanes of a warp exchange values.
#pragma once
#include "asterism/base/complex.hpp"
#include "asterism/device/gpu/parallel_gpu.hpp"

namespace asterism::device::gpu {

/// The value of the lane that comes so many later, of `width`. All of them call it.
template <class T>
__device__ T from_lane(T v, int lane_step, int width) {
#if defined(__HIPCC__)
  return __shfl_down(v, lane_step, width);
#elif defined(__CUDACC__)
  return __shfl_down_sync(0xffffffffu, v, lane_step, width);
#else
  return (void)lane_step, (void)width, v;  // never asked for: one lane
#endif
}
template <class R>
__device__ Complex<R> from_lane(Complex<R> v, int lane_step, int width) {
  return {from_lane(v.re, lane_step, width), from_lane(v.im, lane_step, width)};
}
/// Of a block of so many threads.
__device__ __host__ inline int lanes_of(int threads) { return threads >= 32 ? 32 : 1; }
/// How many threads share a row: as many as half of the average length asks for (Bell and Garland 2009).
inline int lanes_for_rows(std::int64_t rows, std::int64_t entries) {
  int lanes = 1;
  while (lanes < lanes_of(ASTERISM_GPU_BLOCK) && 2 * lanes * rows < entries) lanes *= 2;
  return lanes;
}

}  // namespace asterism::device::gpu
