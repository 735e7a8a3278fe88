#include "asterism/comm/gpu/ipc.kernels.hpp"

#if defined(ASTERISM_ON_GPU)
#include "asterism/device/gpu/signal.hpp"
#else
#include <atomic>
#endif

namespace asterism::comm::kernel {

#if defined(ASTERISM_ON_GPU)
using device::gpu::look, device::gpu::raise, device::gpu::rest;
namespace {
__device__ void fence() { __threadfence_system(); }
}  // namespace
#else
namespace {
std::uint64_t look(std::uint64_t const* flag) { return std::atomic_ref(*const_cast<std::uint64_t*>(flag)).load(); }
void raise(std::uint64_t* flag, std::uint64_t value) { std::atomic_ref(*flag).store(value); }
void rest() {}
void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
}  // namespace
#endif

void set_signal(Executor& executor, std::uint64_t* flag, std::uint64_t value) {
  device::parallel_for(executor, 1, [=] ASTERISM_KERNEL(std::int64_t) {
    fence();
    raise(flag, value);
  });
}

void await_signal(Executor& executor, std::uint64_t* flag, std::uint64_t value) {
  device::parallel_for(executor, 1, [=] ASTERISM_KERNEL(std::int64_t) {
    while (look(flag) < value) rest();
    fence();
  });
}

}  // namespace asterism::comm::kernel
