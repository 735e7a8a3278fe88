// parallel_for and sums for nvcc and hipcc, from one text. Compiled in the dialect check only, so
// far: no device queue is offered to users yet.
#pragma once
#include <cstdint>

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define ASTERISM_GPU(name) hip##name
#else
#include <cuda_runtime.h>
#define ASTERISM_GPU(name) cuda##name
#endif

namespace asterism::device {

struct Queue {
  ASTERISM_GPU(Stream_t) stream = nullptr;
};

inline constexpr int gpu_block = 256;
inline constexpr std::int64_t sum_block = 4096;

template <class F>
__global__ void for_each_index(std::int64_t n, F f) {
  for (std::int64_t i = blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x; i < n; i += std::int64_t(gridDim.x) * blockDim.x) f(i);
}

template <class F>
void parallel_for(Queue& q, std::int64_t n, F const& f) {
  if (n <= 0) return;
  auto const blocks = (n + gpu_block - 1) / gpu_block;
  for_each_index<<<unsigned(blocks < 65535 ? blocks : 65535), gpu_block, 0, q.stream>>>(n, f);
}

template <class F>
__global__ void for_each_range(std::int64_t n, std::int64_t step, F f) {
  auto const b = (blockIdx.x * std::int64_t(blockDim.x) + threadIdx.x) * step;
  if (b < n) f(b, b + step < n ? b + step : n);
}

template <class F>
void parallel_ranges(Queue& q, std::int64_t n, F const& f, std::int64_t = 0) {
  if (n <= 0) return;
  for_each_range<<<unsigned((n + gpu_block - 1) / gpu_block), gpu_block, 0, q.stream>>>(n, std::int64_t(1), f);
}

template <class T, class F>
__global__ void sum_one_block(std::int64_t n, std::int64_t k, T* result, F f) {
  // one thread sums the fixed blocks in order: the definition of the result, not its fast form
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (std::int64_t j = 0; j < k; ++j) result[j] = T(0);
    for (std::int64_t b = 0; b < n; b += sum_block) f(b, b + sum_block < n ? b + sum_block : n, result);
  }
}

template <class T, class F>
void parallel_sum_blocks(Queue& q, std::int64_t n, std::int64_t k, T* result, F const& f) {
  sum_one_block<<<1, 1, 0, q.stream>>>(n, k, result, f);
}

}  // namespace asterism::device
