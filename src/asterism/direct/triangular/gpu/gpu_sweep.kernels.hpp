// A rank's part of a triangular solve in its GPU's memory, and the kernels SOLVE and WAIT that run it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::direct::kernel {
using device::Executor;

/// A message's place in the memory of another GPU, mapped here; nullptr: none. The flag is the number of the solve that the data are of.
struct GpuPut {
  std::byte* slot;
  std::uint64_t* flag;
};

/// A supernode whose x is solved or used here, or a part of its products: large ones are those of several blocks of threads. Rows are
/// those of a column of x.
struct GpuSource {
  std::int32_t width;
  std::int32_t target;    ///< of the same supernode, if x is solved here and has a sum; -1: none
  std::int64_t diagonal;  ///< its block's first number; -1: x is not solved by this one
  bool message;           ///< x comes by one
  bool awaited;           ///< other parts wait for x that is solved here
  std::int64_t x;         ///< first row of this rank's x, or the message's first byte in the window
  std::int32_t first;     ///< the supernode's first part
  std::int32_t block, blocks;
  std::int64_t part, parts;  ///< rows of products with x: the first one, how many
  GpuPut children[2];
};

/// A supernode that this rank adds to.
struct GpuTarget {
  std::int32_t width;
  std::uint32_t contributions;  ///< of blocks, and of children
  std::int64_t sum;             ///< its first row
  std::int64_t children[2];     ///< bytes in the window; -1: none
  GpuPut parent;
};

/// A block of the triangle that multiplies a source's x.
struct GpuBlock {
  std::int64_t values, leading;
  std::int64_t part;  ///< its first row of products
  std::int64_t rows;  ///< of the panel's list, in `rows`
  std::int32_t count, width, target;
};

/// A message that this rank waits for.
struct GpuMessage {
  std::int64_t flag;   ///< which one in the window
  std::int32_t place;  ///< the source that waits for it, or the target
};

/// One direction; pointers into the GPU's memory.
struct GpuPlan {
  GpuSource const* sources;
  GpuTarget const* targets;
  GpuBlock const* blocks;              ///< by source
  std::int32_t const* block_of;        ///< of each row of products, which block
  std::int32_t const* rows;            ///< of blocks, from the first of their supernode
  std::int64_t const* addend_offsets;  ///< of each row of sums, in `addends`: rows of products that it adds, in the order of the solve
  std::int32_t const* addends;
  GpuMessage const* messages[2];  ///< of x, and of sums
  std::int32_t message_count[2];
  std::int32_t source_count;
  std::byte* window;
  // what changes in a solve; each solve leaves counters as it found them, and flags with its number
  std::uint32_t* left;       ///< contributions to each target
  std::uint64_t* sum_there;  ///< of each target
  std::uint64_t* x_there;    ///< of each source
  std::uint64_t* taken[2];   ///< of each message
  std::uint32_t* next_source;
  std::uint64_t* waiting;         ///< WAIT runs
  std::uint32_t const* given_up;  ///< not 0: whoever waits ends
  bool backward;
};

/// Numbers of one solve. x is row-major with `leading_x` numbers a row, of which the first `columns` take part; sums and products have
/// rows of `columns`.
template <class T>
struct GpuNumbers {
  T const* values;                 ///< diagonal blocks: the inverse in the lower triangle, and transposed in the upper one
  std::int32_t const* order;       ///< rows that diagonal blocks exchange, by row of x; nullptr: none
  T *x, *sums, *products, *right;  ///< right: what the diagonal blocks multiply, rows as those of x
  std::int64_t leading_x;
  std::int32_t columns;
  std::uint64_t number;  ///< of the solve, from 1
};
constexpr std::int32_t most_gpu_columns = 8;

/// Two blocks, which are there at the same time: one waits for x, one for sums. Launched only where messages come.
template <class T>
void wait_for_sweep(Executor& executor, GpuPlan const& plan, GpuNumbers<T> const& numbers);
/// A block for each source. After a kernel that has seen WAIT run, if there are messages.
template <class T>
void solve_sweep(Executor& executor, GpuPlan const& plan, GpuNumbers<T> const& numbers);

}  // namespace asterism::direct::kernel
