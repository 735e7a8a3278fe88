// Words of memory by which threads of a GPU tell each other, and other GPUs, that something is there.
#pragma once
#include <cstdint>

#include "asterism/device/gpu/parallel_gpu.hpp"

namespace asterism::device::gpu {

/// Others may write to it meanwhile. Who goes on by what was seen puts a fence behind it.
__device__ inline std::uint64_t look(std::uint64_t const* flag) { return *static_cast<std::uint64_t const volatile*>(flag); }
__device__ inline std::uint32_t look(std::uint32_t const* flag) { return *static_cast<std::uint32_t const volatile*>(flag); }
/// After a fence behind what it stands for.
__device__ inline void raise(std::uint64_t* flag, std::uint64_t value) { *static_cast<std::uint64_t volatile*>(flag) = value; }

/// Between two looks: memory is others' meanwhile.
__device__ inline void rest() {
#if defined(__HIPCC__)
  __builtin_amdgcn_s_sleep(1);
#else
  __nanosleep(100);
#endif
}

}  // namespace asterism::device::gpu
