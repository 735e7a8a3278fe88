// The dialect of *.kernels.cpp: what g++, nvcc and hipcc all accept.
//
// Kernels are named function templates over the scalar type, called as k(Executor&, sizes, pointers). Compiled for a GPU they have
// the same names, by which a plug-in's are found (gpu/gpu.hpp); coefficients are Numbers (tape.hpp).
// Inside, parallel_for / parallel_sum_blocks take a lambda marked ASTERISM_KERNEL. Not allowed: a lambda
// inside a generic lambda, a constructor, a private member or a function with deduced return type;
// a first capture inside `if constexpr`; captured structured bindings.
#pragma once
#include "asterism/base/complex.hpp"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define ASTERISM_ON_GPU
#define ASTERISM_KERNEL __device__
#else
#define ASTERISM_KERNEL
#endif

#if defined(__CUDACC__)  // nvcc registers the kernel of a lambda that captures such a pointer under another type than is launched
#define ASTERISM_RESTRICT
#else
#define ASTERISM_RESTRICT __restrict__
#endif
