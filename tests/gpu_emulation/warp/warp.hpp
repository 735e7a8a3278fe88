// The lanes of a warp on the CPU, in lock-step: what the text of a stencil for GPUs needs to run where there is none.
//
// Each lane is a context of its own. It runs until it gives a value to the others, then the next lane runs. A lane goes on when all have
// given theirs. WARP_LANES is 32 or 64. Warps run one after the other. Only kernels without shared memory can run.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>

#define __global__
#define __device__
#define __forceinline__ __attribute__((always_inline)) inline

namespace warp {

static constexpr int lanes = WARP_LANES;
static constexpr std::size_t stack_bytes = 1 << 20;
struct Three {
  unsigned x = 0, y = 0, z = 0;
};

struct State {
  ucontext_t caller, lane[lanes];
  std::unique_ptr<char[]> stack{new char[lanes * stack_bytes]};
  alignas(16) char given[2][lanes][16];
  void* site[2][lanes];  // from where each lane gave its value
  long rounds[lanes];
  bool done[lanes];
  int now = 0, faults = 0;
  void (*kernel)(void const*) = nullptr;
  void const* argument = nullptr;
};
static State state;
static Three block, thread, grid_size, block_size;
static unsigned first_thread = 0;

/// Runs the next lane that is not done; the caller when all are.
static inline void go_on() {
  int const from = state.now;
  for (int step = 1; step <= lanes; ++step) {
    int const to = (from + step) % lanes;
    if (state.done[to]) continue;
    state.now = to;
    thread.x = first_thread + unsigned(to);
    if (to != from) swapcontext(&state.lane[from], &state.lane[to]);
    return;
  }
  setcontext(&state.caller);
}
static inline void lane_main() {
  state.kernel(state.argument);
  state.done[state.now] = true;
  go_on();
}

/// The value that a lane gives, and that of another. All lanes call it from one place, or it counts a fault.
template <class T>
__attribute__((noinline)) static T exchange(T mine, int from) {
  static_assert(sizeof(T) <= 16);
  int const me = state.now, turn = int(state.rounds[me]++ % 2);
  std::memcpy(state.given[turn][me], &mine, sizeof(T));
  state.site[turn][me] = __builtin_return_address(0);
  go_on();
  from &= lanes - 1;
  for (int other : {from, (me + 1) % lanes})
    if (state.done[other] ? state.rounds[other] < state.rounds[me] : state.site[turn][other] != state.site[turn][me]) ++state.faults;
  T out;
  std::memcpy(&out, state.given[turn][from], sizeof(T));
  return out;
}
static inline bool all(bool x) {
  bool out = true;
  for (int step = 0; step < lanes; ++step) out = exchange(x, state.now + step) && out;
  return out;
}

/// Runs a kernel; the number of faults.
static inline int launch(int blocks, int threads, void (*kernel)(void const*), void const* argument) {
  state.kernel = kernel, state.argument = argument, state.faults = 0;
  grid_size.x = unsigned(blocks), block_size.x = unsigned(threads);
  for (int b = 0; b < blocks; ++b)
    for (int first = 0; first < threads; first += lanes) {
      block.x = unsigned(b), first_thread = unsigned(first);
      for (int l = 0; l < lanes; ++l) {
        state.done[l] = false, state.rounds[l] = 0;
        getcontext(&state.lane[l]);
        state.lane[l].uc_stack.ss_sp = state.stack.get() + std::size_t(l) * stack_bytes;
        state.lane[l].uc_stack.ss_size = stack_bytes;
        makecontext(&state.lane[l], lane_main, 0);
      }
      state.now = 0, thread.x = first_thread;
      swapcontext(&state.caller, &state.lane[0]);
      for (int l = 1; l < lanes; ++l) state.faults += state.rounds[l] != state.rounds[0];
    }
  return state.faults;
}

}  // namespace warp

#define blockIdx warp::block
#define threadIdx warp::thread
#define gridDim warp::grid_size
#define blockDim warp::block_size
#define warpSize warp::lanes
#define __trap() std::abort()
#define __shfl_sync(mask, x, lane) (static_cast<void>(mask), warp::exchange(x, lane))
#define __all_sync(mask, x) (static_cast<void>(mask), warp::all(x))
#define __shfl(x, lane) warp::exchange(x, lane)
#define __all(x) warp::all(x)
