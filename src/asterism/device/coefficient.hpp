// The coefficient of loops over one column.
#pragma once
#include "asterism/device/parallel.hpp"
#include "asterism/device/tape.hpp"

namespace asterism::device {

#if defined(ASTERISM_ON_GPU)
/// One thread of each block evaluates the expression, which takes more instructions than the rest of a short loop. All of them call it.
template <class T>
__device__ T coefficient(typename Numbers<T>::Here const& a) {
  if (a.tape.count <= 1) return a[0];
  ASTERISM_SHARED(T, of_block);
  __syncthreads();
  if (threadIdx.x == 0) *of_block = a[0];
  __syncthreads();
  T const out = *of_block;
  __syncthreads();
  return out;
}
#else
template <class T>
T coefficient(T const* a) {
  return a[0];
}
#endif

}  // namespace asterism::device
