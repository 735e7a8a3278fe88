// The machine of solve_protocol.hpp on a GPU.
#include <cstring>

#include "asterism/base/dtype.hpp"
#include "asterism/device/gpu/lanes.hpp"
#include "asterism/device/gpu/signal.hpp"
#include "asterism/direct/triangular/gpu/gpu_sweep.kernels.hpp"
#include "asterism/direct/triangular/gpu/solve_protocol.hpp"

namespace asterism::direct::kernel {
namespace {

using device::gpu::from_lane, device::gpu::look, device::gpu::raise, device::gpu::rest;
using i32 = std::int32_t;
using i64 = std::int64_t;

/// Of one GPU: what SOLVE's blocks and WAIT's threads have in common. Members are called by `threads` threads together, numbered from 0.
template <class T>
struct Machine {
  GpuPlan const& plan;
  GpuNumbers<T> const& n;
  i32 thread, threads;

  /// All threads have come here, and each sees what the others wrote.
  __device__ void meet() const {
    if (threads > 1) __syncthreads();
  }
  template <class V>
  __device__ T const* message(V byte) const {
    return reinterpret_cast<T const*>(plan.window + byte);
  }

  /// A number of the sum by as many lanes as have work: their parts are added in one order.
  __device__ void add_up(i32 t) const {
    auto const& target = plan.targets[t];
    i32 const k = n.columns, lanes = target.lanes < device::gpu::lanes_of(threads) ? target.lanes : device::gpu::lanes_of(threads);
    i32 const lane = thread % lanes, all = target.width * k;
    for (i32 first = 0; first < all; first += threads / lanes) {  // all lanes go round equally often
      i32 const i = first + thread / lanes;
      i64 const row = target.sum + i / k, c = i % k;
      T sum(0);
      if (i < all) {
        auto const end = plan.addend_offsets[row + 1];
        auto a = plan.addend_offsets[row] + lane;
        for (; a + 3 * lanes < end; a += 4 * lanes) {  // four loads under way
          T some[4];
#pragma unroll
          for (i32 j = 0; j < 4; ++j) some[j] = n.products[i64(plan.addends[a + j * lanes]) * k + c];
#pragma unroll
          for (i32 j = 0; j < 4; ++j) sum += some[j];
        }
        for (; a < end; a += lanes) sum += n.products[i64(plan.addends[a]) * k + c];
      }
      for (i32 half = lanes / 2; half > 0; half /= 2) sum += from_lane(sum, half, lanes);
      if (i >= all || lane != 0) continue;
      for (auto const child : target.children)
        if (child >= 0) sum += message(child)[i];
      n.sums[target.sum * k + i] = sum;
    }
  }
  __device__ void hand_on(i32 t) const {
    auto const& target = plan.targets[t];
    if (target.parent.slot) {
      meet();  // a number's lane and the thread that sends it are others
      put(target.parent, n.sums + target.sum * n.columns, target.width, n.columns);
      return;
    }
    __threadfence();
    meet();
    if (thread == 0) raise(plan.sum_there + t, n.number);
  }
  /// Rows with so many numbers from one to the next.
  __device__ void put(GpuPut const& to, T const* from, i64 rows, i64 leading) const {
    i32 const k = n.columns;
    auto* const slot = reinterpret_cast<T*>(to.slot);
    for (i64 i = thread; i < rows * k; i += threads) slot[i] = from[i / k * leading + i % k];
    __threadfence_system();
    meet();
    if (thread == 0) raise(to.flag, n.number);
  }
  /// By one thread: whether it was the last contribution. Whoever has that sees all others; the counter is ready for the next solve.
  __device__ bool take_one_off(i32 t) const {
    __threadfence();
    if (atomicSub(plan.left + t, 1u) != 1u) return false;
    plan.left[t] = plan.targets[t].contributions;
    __threadfence();
    return true;
  }
};

/// In memory that the threads of a block share.
struct Together {
  i32 source, go_on, complete;
  i32 targets[1];  // as many as threads
};

template <class T>
struct SolveBlock : Machine<T> {
  using M = Machine<T>;
  using M::meet, M::n, M::plan, M::thread, M::threads;
  Together* together;

  __device__ i32 take() const {
    if (thread == 0) {
      together->source = i32(atomicAdd(plan.next_source, 1u));
      if (together->source == plan.source_count - 1) *plan.next_source = 0;  // the last one: nobody else takes
    }
    meet();
    return together->source;
  }
  __device__ bool own(i32 s) const { return plan.sources[s].diagonal >= 0; }
  __device__ bool await(std::uint64_t const* flag) const {
    if (thread == 0) {
      while (look(flag) < n.number && look(plan.given_up) == 0) rest();
      together->go_on = look(flag) >= n.number;
      __threadfence();
    }
    meet();
    return together->go_on;
  }
  __device__ bool await_sum(i32 s) const { return plan.sources[s].target < 0 || await(plan.sum_there + plan.sources[s].target); }
  __device__ bool await_x(i32 s) const { return await(plan.x_there + s); }

  /// x of a source as it is read: rows of so many numbers.
  __device__ T const* x_of(GpuSource const& source, i64& leading) const {
    leading = source.comes ? n.columns : n.leading_x;
    return source.comes ? this->message(source.x) : n.x + source.x * n.leading_x;
  }

  __device__ void solve(i32 s) const {
    auto const& source = plan.sources[s];
    i32 const w = source.width, k = n.columns;
    T* const x = n.x + source.x * n.leading_x;
    T* const right = n.right + source.x * k;
    T const* const sum = source.target >= 0 ? n.sums + plan.targets[source.target].sum * k : nullptr;
    i32 const* const order = n.order ? n.order + source.x : nullptr;
    for (i32 e = thread; e < w * k; e += threads) {
      i32 const i = order && !plan.backward ? order[e / k] : e / k, c = e % k;
      right[e] = x[i * n.leading_x + c] - (sum ? sum[i * k + c] : T(0));
    }
    meet();
    if (plan.backward) solve_transposed(n.values + source.diagonal, w, right, x, order);
    else solve_lower(n.values + source.diagonal, w, right, x);
    meet();
  }
  /// x = M right: a row by a thread, neighbours read neighbours' numbers of each column.
  __device__ void solve_lower(T const* m, i32 w, T const* right, T* x) const {
    i32 const k = n.columns;
    for (i32 e = thread; e < w * k; e += threads) {
      i32 const i = e / k, c = e % k;
      T sum(0);
#pragma unroll 4
      for (i32 j = 0; j <= i; ++j) sum += m[i64(j) * w + i] * right[j * k + c];
      x[i * n.leading_x + c] = sum;
    }
  }
  /// x = M^T right, a row by some lanes: they read a column of M together.
  __device__ void solve_transposed(T const* m, i32 w, T const* right, T* x, i32 const* order) const {
    i32 const k = n.columns, lanes = lanes_for(w), lane = thread % lanes;
    for (i32 first = 0; first < w * k; first += threads / lanes) {
      i32 const e = first + thread / lanes, i = e / k, c = e % k;
      T sum(0);
      if (e < w * k)
        for (i32 j = i + lane; j < w; j += lanes) sum += m[i64(i) * w + j] * right[j * k + c];
      for (i32 half = lanes / 2; half > 0; half /= 2) sum += from_lane(sum, half, lanes);
      if (e < w * k && lane == 0) x[(order ? order[i] : i) * n.leading_x + c] = sum;
    }
  }
  /// For so many numbers: at most a warp.
  __device__ i32 lanes_for(i32 count) const {
    i32 const most = device::gpu::lanes_of(threads);
    i32 lanes = 1;
    while (lanes < most && lanes < count) lanes *= 2;
    return lanes;
  }

  __device__ void forward(i32 s) const {
    auto const& source = plan.sources[s];
    i64 leading;
    T const* const x = x_of(source, leading);
    for (auto const& child : source.children)
      if (child.slot) this->put(child, x, source.width, leading);
    if (source.helpers == 0) return;
    __threadfence();
    meet();
    for (i32 i = thread; i < source.helpers; i += threads) raise(plan.x_there + s + 1 + i, n.number);
  }

  __device__ void multiply(i32 s) const {
    auto const& source = plan.sources[s];
    i64 leading;
    T const* const x = x_of(source, leading);
    if (plan.backward) multiply_transposed(source, x, leading);
    else if (n.columns == 1) multiply_rows<1>(source, x, leading);
    else multiply_rows<most_gpu_columns>(source, x, leading);
  }
  /// A row by a thread: neighbours read neighbours' numbers of each column. K: at least the columns.
  template <i32 K>
  __device__ void multiply_rows(GpuSource const& source, T const* x, i64 leading) const {
    i32 const k = n.columns;
    for (i64 q = source.part + thread; q < source.part + source.parts; q += threads) {
      auto const& b = plan.blocks[plan.block_of[q]];
      T const* const row = n.values + b.values + (q - b.part);
      T sums[K];
      for (i32 c = 0; c < K; ++c) sums[c] = T(0);
#pragma unroll 8
      for (i32 j = 0; j < b.width; ++j) {
        T const v = row[j * b.leading];
#pragma unroll
        for (i32 c = 0; c < K; ++c)
          if (K == 1 || c < k) sums[c] += v * x[j * leading + c];
      }
      for (i32 c = 0; c < k; ++c) n.products[q * k + c] = sums[c];
    }
  }
  /// A column by some lanes: it has no more numbers than the source has rows.
  __device__ void multiply_transposed(GpuSource const& source, T const* x, i64 leading) const {
    i32 const k = n.columns, lanes = lanes_for(source.width), lane = thread % lanes;
    // all lanes go round equally often: they exchange sums
    for (i64 first = 0; first < source.parts; first += threads / lanes) {
      i64 const q = source.part + first + thread / lanes;
      bool const mine = q < source.part + source.parts;
      auto const& b = plan.blocks[plan.block_of[mine ? q : source.part]];
      T const* const column = n.values + b.values + (q - b.part) * b.leading;
      i32 const* const rows = plan.rows + b.rows;
      for (i32 c = 0; c < k; ++c) {
        T sum(0);
        if (mine)
          for (i32 r = lane; r < b.count; r += lanes) sum += column[r] * x[rows[r] * leading + c];
        for (int half = lanes / 2; half > 0; half /= 2) sum += from_lane(sum, half, lanes);
        if (mine && lane == 0) n.products[q * k + c] = sum;
      }
    }
  }

  __device__ i32 blocks(i32 s) const { return plan.sources[s].blocks; }
  __device__ i32 at_once() const { return threads; }
  /// Of blocks `first` and those after it, one for each thread: how many of their targets are complete.
  __device__ i32 take_off(i32 s, i32 first) const {
    if (thread == 0) together->complete = 0;
    __threadfence();  // of the products
    meet();
    auto const& source = plan.sources[s];
    if (first + thread < source.blocks) {
      i32 const t = plan.blocks[source.block + first + thread].target;
      if (this->take_one_off(t)) together->targets[atomicAdd(reinterpret_cast<unsigned*>(&together->complete), 1u)] = t;
    }
    meet();
    i32 const complete = together->complete;
    meet();  // before it counts anew
    return complete;
  }
  __device__ i32 complete(i32 i) const { return together->targets[i]; }
};

template <class T>
struct WaitThread : Machine<T> {
  using M = Machine<T>;
  using M::n, M::plan;
  i32 kind;
  Share share;

  __device__ i32 count() const { return share.last - share.first; }
  __device__ GpuMessage const& message_of(i32 i) const { return plan.messages[kind][share.first + i]; }
  __device__ bool awaits(i32 i) const { return plan.taken[kind][share.first + i] < n.number; }
  __device__ bool came(i32 i) const { return look(reinterpret_cast<std::uint64_t const*>(plan.window) + message_of(i).flag) >= n.number; }
  __device__ void arrived(i32 i) {
    __threadfence_system();
    plan.taken[kind][share.first + i] = n.number;
    auto const place = message_of(i).place;
    if (kind == 0) raise(plan.x_there + place, n.number);
    else contributed(*this, place);
  }
  __device__ bool take_off(i32 t) const { return this->take_one_off(t); }
  __device__ bool pause(bool) const {
    rest();
    return look(plan.given_up) == 0;
  }
};

template <class T>
__global__ void solve_blocks(GpuPlan plan, GpuNumbers<T> numbers) {
  ASTERISM_SHARED(Together, together);
  SolveBlock<T> block{{plan, numbers, i32(threadIdx.x), i32(blockDim.x)}, together};
  solve_next(block);
}

template <class T>
__global__ void wait_blocks(GpuPlan plan, GpuNumbers<T> numbers) {
  if (blockIdx.x == 0 && threadIdx.x == 0) raise(plan.waiting, numbers.number);
  i32 const kind = i32(blockIdx.x);
  WaitThread<T> thread{{plan, numbers, 0, 1}, kind, share_of(plan.message_count[kind], i32(threadIdx.x), i32(blockDim.x))};
  wait_for_messages(thread);
}

}  // namespace

template <class T>
void load_sweeps(Executor&) {
#if defined(__CUDACC__)
  cudaFuncAttributes attributes;
  // an error is found by the task that launches
  if (cudaFuncGetAttributes(&attributes, wait_blocks<T>) == cudaSuccess) (void)cudaFuncGetAttributes(&attributes, solve_blocks<T>);
#endif
}

template <class T>
void wait_for_sweep(Executor& executor, GpuPlan const& plan, GpuNumbers<T> const& numbers) {
  device::gpu::launch_together(executor, wait_blocks<T>, 2, ASTERISM_GPU_BLOCK, plan, numbers);
}

template <class T>
void solve_sweep(Executor& executor, GpuPlan const& plan, GpuNumbers<T> const& numbers) {
  if (plan.source_count == 0) return;
  device::gpu::launch(executor, solve_blocks<T>, plan.source_count, ASTERISM_GPU_BLOCK, sizeof(Together) + ASTERISM_GPU_BLOCK * sizeof(i32),
                      plan, numbers);
}

#define INSTANTIATE(T)                                                           \
  template void load_sweeps<T>(Executor&);                                       \
  template void wait_for_sweep(Executor&, GpuPlan const&, GpuNumbers<T> const&); \
  template void solve_sweep(Executor&, GpuPlan const&, GpuNumbers<T> const&);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::direct::kernel
