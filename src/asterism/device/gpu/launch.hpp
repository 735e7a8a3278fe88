// A kernel on its way to a GPU.
#pragma once
#include <cstddef>

namespace asterism::device::gpu {

struct Launch {
  void const* kernel;
  unsigned blocks, threads;
  std::size_t shared;  ///< bytes
  void** arguments;
  std::size_t const* sizes;
  int count;  ///< of arguments
};

/// Takes launches in a stream's place, to give them to it together (launch_batch.hpp).
struct Collector {
  void (*add)(Collector&, Launch const&);
  void (*flush)(Collector&);
};

}  // namespace asterism::device::gpu
