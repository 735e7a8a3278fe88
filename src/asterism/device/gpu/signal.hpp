// Words of memory by which threads of a GPU tell each other, and other GPUs, that something is there.
#pragma once
#include <atomic>
#include <cstdint>

#include "asterism/device/gpu/parallel_gpu.hpp"

namespace asterism::device::gpu {

#if defined(__CUDACC__) || defined(__HIPCC__)
template <class T>
__device__ T look_at(T const* flag) {
  return *static_cast<T const volatile*>(flag);
}
__device__ inline void set(std::uint64_t* flag, std::uint64_t value) { *static_cast<std::uint64_t volatile*>(flag) = value; }
#else  // the emulated device's threads are the host's
template <class T>
T look_at(T const* flag) {
  return std::atomic_ref(*const_cast<T*>(flag)).load(std::memory_order_acquire);
}
inline void set(std::uint64_t* flag, std::uint64_t value) { std::atomic_ref(*flag).store(value, std::memory_order_release); }
#endif

/// Others may write to it meanwhile. Who goes on by what was seen puts a fence behind it.
__device__ inline std::uint64_t look(std::uint64_t const* flag) { return look_at(flag); }
__device__ inline std::uint32_t look(std::uint32_t const* flag) { return look_at(flag); }
/// After a fence behind what it stands for.
__device__ inline void raise(std::uint64_t* flag, std::uint64_t value) { set(flag, value); }

/// Between two looks: memory is others' meanwhile.
__device__ inline void rest() {
#if defined(__HIPCC__)
  __builtin_amdgcn_s_sleep(1);
#else
  __nanosleep(100);
#endif
}

}  // namespace asterism::device::gpu
