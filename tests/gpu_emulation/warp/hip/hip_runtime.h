// What the HIP text of a stencil uses, by nvcc and on the CPU.
#pragma once
#ifdef __CUDACC__
#define __shfl(x, lane) __shfl_sync(0xffffffffu, x, lane)
#define __all(x) __all_sync(0xffffffffu, x)
#define __builtin_trap __trap
#else
#include "../warp.hpp"
#endif
