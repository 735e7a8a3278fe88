// parallel.hpp on CUDA and HIP, from one text; g++ compiles it too, against a cuda_runtime.h that the tests bring (tests/gpu_emulation).
#pragma once
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define ASTERISM_GPU(name) hip##name
#else
#include <cuda_runtime.h>
#define ASTERISM_GPU(name) cuda##name
#endif

#if !defined(ASTERISM_GPU_BLOCK)
#define ASTERISM_GPU_BLOCK 256
#define ASTERISM_ENTRY(kernel) reinterpret_cast<void const*>(kernel)
#define ASTERISM_SHARED(T, name)                                \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  T* const name = reinterpret_cast<T*>(name##_bytes)
#endif

#include "asterism/device/executor.hpp"

namespace asterism::device {

inline constexpr std::int64_t serial_below = 4096;
inline constexpr std::int64_t sum_block = 4096;

namespace gpu {

/// The values as the kernel's arguments: into the queue's stream, or to who collects them.
template <class... P>
void launch(Executor const& executor, void (*kernel)(P...), std::int64_t blocks, int threads, std::size_t shared,
            std::type_identity_t<P>... values) {
  static_assert((std::is_trivially_copyable_v<P> && ...));
  void* arguments[] = {&values...};
  constexpr std::size_t sizes[] = {sizeof(P)...};
  Launch const all{ASTERISM_ENTRY(kernel), unsigned(blocks), unsigned(threads), shared, arguments, sizes, int(sizeof...(P))};
  if (executor.collector) return executor.collector->add(*executor.collector, all);
  // an error is found by the task that launches
  (void)ASTERISM_GPU(LaunchKernel)(all.kernel, dim3(all.blocks), dim3(all.threads), arguments, shared,
                                   static_cast<ASTERISM_GPU(Stream_t)>(executor.gpu_stream));
}

/// The same, with all blocks there at the same time: they may wait for each other. Never collected. Their threads share no memory.
template <class... P>
void launch_together(Executor const& executor, void (*kernel)(P...), int blocks, int threads, std::type_identity_t<P>... values) {
  void* arguments[] = {&values...};
  (void)ASTERISM_GPU(LaunchCooperativeKernel)(ASTERISM_ENTRY(kernel), dim3(unsigned(blocks)), dim3(unsigned(threads)), arguments, 0,
                                              static_cast<ASTERISM_GPU(Stream_t)>(executor.stream()));
}

/// A queue's guards as a kernel's argument.
struct Guards {
  Executor::Guard all[Executor::most_guards] = {};  // all of it is written: graphs compare arguments by their bytes
  int count;
  explicit Guards(Executor const& executor) : count(executor.guard_count) {
    for (int i = 0; i < count; ++i) all[i] = executor.guards[i];
  }
  __device__ bool pass() const {
#pragma unroll  // arguments with a number that is not known then would be copied to memory
    for (int i = 0; i < Executor::most_guards; ++i) {
      if (i >= count) break;
      if (!(*all[i].flag == Number(0.0)) != all[i].wanted) return false;
    }
    return true;
  }
};

// Some thousand threads for each multiprocessor are enough to hide the latency of memory; more indices go round.
constexpr std::int64_t most_blocks = 4096;
constexpr std::size_t room_for_coefficient = 16;  // coefficient.hpp

template <class F>
__global__ void run_strides(std::int64_t n, Guards guards, F f) {
  if (!guards.pass()) return;
  f(std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x, n, std::int64_t(gridDim.x) * blockDim.x);
}

template <class F>
struct EachIndex {
  F f;
  __device__ void operator()(std::int64_t begin, std::int64_t end, std::int64_t step) const {
    for (auto i = begin; i < end; i += step) f(i);
  }
};
template <class F>
struct EachRange {
  F f;
  __device__ void operator()(std::int64_t begin, std::int64_t end, std::int64_t step) const {
    for (auto i = begin; i < end; i += step) f(i, i + 1);
  }
};

/// What a block's threads add to k sums, each thread's own part first. K is at least k; a loop over K is unrolled, so that few sums are in
/// registers.
template <int K, class T, class F>
__device__ void add_up(std::int64_t begin, std::int64_t end, std::int64_t k, T* sums, F const& f, T* shared) {
  T acc[K];
  for (int j = 0; j < K; ++j) acc[j] = T(0);
  f(begin + threadIdx.x, end, std::int64_t(blockDim.x), acc);  // all threads: they may have coefficients to share
#pragma unroll
  for (int j = 0; j < K; ++j) {
    if (j >= k) break;
    shared[threadIdx.x] = acc[j];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) sums[j] = shared[0];
    __syncthreads();
  }
}

/// What another block wrote during this kernel: not from this multiprocessor's own cache.
template <class T>
__device__ T fresh_from_memory(T const* at) {
  static_assert(sizeof(T) % 8 == 0);
  unsigned long long words[sizeof(T) / 8];
  for (int w = 0; w < int(sizeof(T) / 8); ++w) words[w] = reinterpret_cast<unsigned long long const volatile*>(at)[w];
  T out;
  memcpy(&out, words, sizeof(T));
  return out;
}

template <int K, class T>
struct AddPartials {
  T const* partial;
  std::int64_t k;
  __device__ void operator()(std::int64_t begin, std::int64_t end, std::int64_t step, T* acc) const {
    for (auto i = begin; i < end; i += step)
#pragma unroll
      for (int j = 0; j < K; ++j)
        if (j < k) acc[j] += fresh_from_memory(partial + i * k + j);
  }
};

/// Each block sums `per` indices, and the last to end sums the blocks: orders that do not depend on who comes when.
template <int K, class T, class F>
__global__ void run_sums(std::int64_t n, std::int64_t per, std::int64_t k, T* partial, unsigned* arrived, T* result, Guards guards, F f) {
  if (!guards.pass()) return;
  ASTERISM_SHARED(T, shared);
  auto const begin = std::int64_t(blockIdx.x) * per, end = begin + per < n ? begin + per : n;
  add_up<K>(begin, end, k, partial + blockIdx.x * k, f, shared);
  unsigned* const ticket = reinterpret_cast<unsigned*>(shared);
  if (threadIdx.x == 0) {
    __threadfence();
    *ticket = atomicAdd(arrived, 1u);
  }
  __syncthreads();
  bool const last = *ticket == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  add_up<K>(0, gridDim.x, k, result, AddPartials<K, T>{partial, k}, shared);
  if (threadIdx.x == 0) *arrived = 0;
}

/// More sums than a thread can hold: one thread adds them where they belong.
template <class T, class F>
__global__ void run_many_sums(std::int64_t n, std::int64_t k, T* result, Guards guards, F f) {
  if (!guards.pass()) return;
  for (std::int64_t j = 0; j < k; ++j) result[j] = T(0);
  f(std::int64_t(0), n, std::int64_t(1), result);
}

template <int K, class T, class F>
void launch_sums(Executor const& executor, std::int64_t n, std::int64_t k, T* result, F const& f) {
  // the scratch memory: 64 bytes with the number of blocks that have ended, then the blocks' sums
  auto* const partial = reinterpret_cast<T*>(static_cast<unsigned char*>(executor.scratch) + 64);
  auto const room = std::int64_t((executor.scratch_bytes - 64) / (std::size_t(k) * sizeof(T)));
  auto const most = room < 1024 ? room : std::int64_t(1024);
  auto per = (n + most - 1) / most;
  per = per < sum_block ? sum_block : per;
  auto const blocks = n > 0 ? (n + per - 1) / per : std::int64_t(1);
  launch(executor, run_sums<K, T, F>, blocks, ASTERISM_GPU_BLOCK, ASTERISM_GPU_BLOCK * sizeof(T), n, per, k, partial,
         static_cast<unsigned*>(executor.scratch), result, Guards(executor), f);
}

}  // namespace gpu

template <class F>
void parallel_strides(Executor& executor, std::int64_t n, F const& f) {
  if (n <= 0) return;
  auto const blocks = (n + ASTERISM_GPU_BLOCK - 1) / ASTERISM_GPU_BLOCK;
  gpu::launch(executor, gpu::run_strides<F>, blocks < gpu::most_blocks ? blocks : gpu::most_blocks, ASTERISM_GPU_BLOCK,
              gpu::room_for_coefficient, n, gpu::Guards(executor), f);
}

template <class F>
void parallel_for(Executor& executor, std::int64_t n, F const& f) {
  parallel_strides(executor, n, gpu::EachIndex<F>{f});
}

template <class F>
void parallel_ranges(Executor& executor, std::int64_t n, F const& f, std::int64_t = 0) {
  parallel_strides(executor, n, gpu::EachRange<F>{f});
}

template <int K = 0, class T, class F>
void parallel_sum_blocks(Executor& executor, std::int64_t n, std::int64_t k, T* result, F const& f) {
  if (k <= 0) return;
  if constexpr (K > 0) gpu::launch_sums<K>(executor, n, k, result, f);
  else if (k <= 8) gpu::launch_sums<8>(executor, n, k, result, f);
  else if (k <= 64) gpu::launch_sums<64>(executor, n, k, result, f);
  else gpu::launch(executor, gpu::run_many_sums<T, F>, 1, 1, 0, n, k, result, gpu::Guards(executor), f);
}

}  // namespace asterism::device
