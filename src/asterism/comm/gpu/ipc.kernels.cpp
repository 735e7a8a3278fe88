#include "asterism/comm/gpu/ipc.kernels.hpp"

#if defined(ASTERISM_ON_GPU)
#define ASTERISM_SYSTEM_FENCE() __threadfence_system()
#if defined(__HIPCC__)
#define ASTERISM_PAUSE() __builtin_amdgcn_s_sleep(1)
#else
#define ASTERISM_PAUSE() __nanosleep(100)
#endif
#else
#include <atomic>
#define ASTERISM_SYSTEM_FENCE() std::atomic_thread_fence(std::memory_order_seq_cst)
#define ASTERISM_PAUSE()
#endif

namespace asterism::comm::kernel {

void set_signal(Executor& executor, std::uint64_t* flag, std::uint64_t value) {
  device::parallel_for(executor, 1, [=] ASTERISM_KERNEL(std::int64_t) {
    ASTERISM_SYSTEM_FENCE();
    *static_cast<std::uint64_t volatile*>(flag) = value;
  });
}

void await_signal(Executor& executor, std::uint64_t* flag, std::uint64_t value) {
  device::parallel_for(executor, 1, [=] ASTERISM_KERNEL(std::int64_t) {
    while (*static_cast<std::uint64_t const volatile*>(flag) < value) ASTERISM_PAUSE();  // memory is others' meanwhile
    ASTERISM_SYSTEM_FENCE();
  });
}

}  // namespace asterism::comm::kernel
