// The kernels have a form for GPUs only (gpu_sweep.gpu.cpp), which is found by these names.
#include "asterism/direct/triangular/gpu/gpu_sweep.kernels.hpp"

#include "asterism/base/dtype.hpp"
#include "asterism/base/error.hpp"

namespace asterism::direct::kernel {

template <class T>
void load_sweeps(Executor&) {
  fail(ErrorKind::internal, "the kernels of a triangular solve on GPUs have no form for the host.");
}
template <class T>
void wait_for_sweep(Executor&, GpuPlan const&, GpuNumbers<T> const&) {
  fail(ErrorKind::internal, "the kernel WAIT of a triangular solve has no form for the host.");
}
template <class T>
void solve_sweep(Executor&, GpuPlan const&, GpuNumbers<T> const&) {
  fail(ErrorKind::internal, "the kernel SOLVE of a triangular solve has no form for the host.");
}

#define INSTANTIATE(T)                                                           \
  template void load_sweeps<T>(Executor&);                                       \
  template void wait_for_sweep(Executor&, GpuPlan const&, GpuNumbers<T> const&); \
  template void solve_sweep(Executor&, GpuPlan const&, GpuNumbers<T> const&);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::direct::kernel
