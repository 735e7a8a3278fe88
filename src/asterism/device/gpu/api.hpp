// The table through which the library uses a GPU.
//
// gpu_plugin.cpp fills it, compiled by nvcc or hipcc together with the kernels and loaded when a queue on a GPU is asked for. Nothing
// outside it includes a GPU's headers. Every int result is the runtime's error code, 0 is success.
#pragma once
#include <cstddef>
#include <cstdint>

#include "asterism/device/gpu/launch.hpp"

namespace asterism::device::gpu {

inline constexpr int api_version = 7;

inline constexpr std::size_t window_name_bytes = 64;

struct Api {
  int version;       ///< api_version
  char const* name;  ///< "cuda" or "hip"
  using Stream = void*;
  using Event = void*;

  char const* (*error_text)(int code);
  int (*count)(int* devices);
  int (*describe)(int device, char* text, int length);
  /// The same text for one device wherever on its machine that is asked.
  int (*identity)(int device, char* text, int length);
  /// As compilers name it: "sm_90".
  int (*architecture)(int device, char* text, int length);
  /// Of the calling thread.
  int (*current)(int* device);
  int (*use)(int device);
  int (*memory)(std::size_t* free, std::size_t* total);
  /// The device that the memory belongs to; negative: none.
  int (*device_of)(void const* data, int* device);

  int (*stream_new)(Stream*);
  int (*stream_free)(Stream);
  int (*stream_wait)(Stream);          ///< the caller waits until all is done
  int (*stream_after)(Stream, Event);  ///< what comes next comes after the event
  int (*event_new)(Event*);
  int (*event_free)(Event);
  int (*event_record)(Event, Stream);
  int (*event_done)(Event, int* done);
  int (*event_wait)(Event);
  /// The first error of a kernel's launch on this thread since the last question.
  int (*launch_error)();

  /// Freed blocks stay with the process from now on: giving them back to the system would wait for the device.
  int (*keep_freed)(int device);
  /// In the order of the stream.
  int (*allocate)(void** data, std::size_t bytes, Stream);
  int (*release)(void* data, Stream);
  /// Of the host and the device; releasing waits for the device.
  int (*allocate_unified)(void** data, std::size_t bytes, int device);
  int (*release_unified)(void* data);
  int (*copy)(void* to, void const* from, std::size_t bytes, Stream);  ///< between any memories
  int (*zero)(void* data, std::size_t bytes, Stream);
  /// Memory of the host that is copied without the caller waiting.
  int (*pin)(void** data, std::size_t bytes);

  /// Memory that other processes of the machine may map by its name; zeros at first.
  int (*new_window)(void** data, std::size_t bytes);
  int (*free_window)(void* data);
  int (*name_window)(void* data, void* name);
  int (*map_window)(void const* name, void** data);
  int (*unmap_window)(void* data);

  /// A kernel of a file that a compiler made, for Launch::kernel; it stays until the process ends.
  int (*load_kernel)(char const* path, char const* name, void const** kernel);
  int (*launch)(Launch const&, Stream);
  /// Kernels one after the other, to be launched together.
  using Graph = void*;
  int (*graph_new)(Graph*, Launch const* kernels, int count);
  int (*graph_free)(Graph);
  int (*graph_change)(Graph, int kernel, Launch const&);  ///< of the same function: from the next launch of the graph on
  int (*graph_launch)(Graph, Stream);
};

/// The plug-in's one other symbol beside its kernels.
inline constexpr char const* api_symbol = "asterism_gpu_api";

}  // namespace asterism::device::gpu
