// What the two kernels of a triangular solve on a GPU do in which order, over an abstract machine: Ding et al. (2021), Algorithm 1.
//
// A GPU runs as many blocks of threads at once as fit, and a block keeps its place until it ends, also while it waits. SOLVE has a block
// for each supernode whose x its GPU solves or uses, and more where there are many products with x: these helpers wait for x and take a
// share. Blocks take supernodes and shares by a ticket, in the order of the solve, helpers behind who brings x: so whatever a running block
// waits for, of its own GPU, is with a block that runs or has ended. WAIT is there before SOLVE begins. It takes no ticket: its
// threads look for messages, hand them to SOLVE, and send a sum on where a message was its last part. So one block of SOLVE at a time is
// enough on each GPU: the first supernode in the order that is not done can go on. tests/cpp/direct/solve_protocol_test.cpp walks through
// all orders.
//
// The GPU's machine is in gpu_sweep.kernels.cpp. Of `Block` (SOLVE) all members are called by all its threads; of `Thread` (WAIT) by one.
#pragma once
#include <cstdint>

#include "asterism/device/kernel.hpp"

namespace asterism::direct {

/// A contribution to a sum is there: the last one adds them up, and the sum goes to the parent in the reduction tree, or to the solve.
/// Members: take_off(target): whether it was the last; add_up(target); hand_on(target).
template <class Party>
ASTERISM_KERNEL void contributed(Party& party, std::int32_t target) {
  if (!party.take_off(target)) return;
  party.add_up(target);
  party.hand_on(target);
}

/// SOLVE, one block: the next supernode, or a share of its products. Others get x before it is used here. take(): a supernode or share;
/// own(s): whether x is solved here; await_sum(s), await_x(s): false if the solve was given up; forward(s): to other GPUs, and to helpers;
/// multiply(s): its products with x; blocks(s), target(s, i): what they add to.
template <class Block>
ASTERISM_KERNEL void solve_next(Block& block) {
  auto const s = block.take();
  if (block.own(s)) {
    if (!block.await_sum(s)) return;
    block.solve(s);
  } else if (!block.await_x(s)) {
    return;
  }
  block.forward(s);
  block.multiply(s);
  // counters of several targets are taken off at once, as many as the block has threads
  for (std::int32_t first = 0; first < block.blocks(s); first += block.at_once()) {
    auto const complete = block.take_off(s, first);
    for (std::int32_t i = 0; i < complete; ++i) {
      block.add_up(block.complete(i));
      block.hand_on(block.complete(i));
    }
  }
}

/// WAIT, one thread: until all its messages have come. count(); came(i); arrived(i): hands it on; pause(any): after a look at all of them.
template <class Thread>
ASTERISM_KERNEL void wait_for_messages(Thread& thread) {
  auto missing = thread.count();
  while (missing > 0) {
    auto const before = missing;
    for (std::int32_t i = 0; i < thread.count(); ++i)
      if (thread.awaits(i) && thread.came(i)) {
        thread.arrived(i);
        --missing;
      }
    if (missing > 0 && !thread.pause(missing < before)) return;
  }
}

/// Messages [first, last) of one of WAIT's threads: each has as many as the others, or one more (Fig. 2).
struct Share {
  std::int32_t first, last;
};
ASTERISM_KERNEL inline Share share_of(std::int32_t messages, std::int32_t thread, std::int32_t threads) {
  return {std::int32_t(std::int64_t(messages) * thread / threads), std::int32_t(std::int64_t(messages) * (thread + 1) / threads)};
}

}  // namespace asterism::direct
