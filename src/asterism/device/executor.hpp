// Where a kernel runs: the process's team, or a GPU's stream.
#pragma once
#include <cstddef>

#include "asterism/device/gpu/launch.hpp"
#include "asterism/device/kernel.hpp"

namespace asterism::device {

/// As scalars of queues lie in memory.
using Number = Complex<double>;

/// Laid out alike in the library and in the plug-ins for GPUs, whose kernels read it.
struct Executor {
  /// A kernel on a GPU does nothing where a flag is not as wanted (Condition): the flags lie there.
  struct Guard {
    Number const* flag;
    bool wanted;
  };
  static constexpr int most_guards = 6;

  /// To launch a kernel of one's own into: what came before is there. nullptr: the process's team.
  void* stream() const {
    if (collector) collector->flush(*collector);
    return gpu_stream;
  }

  void* gpu_stream = nullptr;
  gpu::Collector* collector = nullptr;  ///< of launches, which go to the stream later
  void* scratch = nullptr;              ///< of a stream: for the partial sums of one kernel; the first 64 bytes are 0 between kernels
  std::size_t scratch_bytes = 0;
  int guard_count = 0;
  Guard guards[most_guards];
};

}  // namespace asterism::device
