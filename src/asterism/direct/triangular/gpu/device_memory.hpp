// Memory of this process's GPU.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::direct {

/// Blocks of the device's memory that live as long as this does.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory const&) = delete;
  DeviceMemory& operator=(DeviceMemory const&) = delete;
  ~DeviceMemory() {
    for (auto const& [data, bytes] : blocks_) device::gpu::release(data, bytes);
  }
  void* zeros(std::size_t bytes) {
    bytes = std::max<std::size_t>(bytes, 16);
    auto* const stream = device::gpu::threads_stream();
    auto* const data = device::gpu::allocate(bytes, stream);
    blocks_.emplace_back(data, bytes);
    bytes_ += bytes;
    device::gpu::check(device::gpu::api()->zero(data, bytes, stream), "clearing memory");
    device::gpu::wait(stream);
    return data;
  }
  template <class V>
  V* zeros_of(std::size_t count) {
    return static_cast<V*>(zeros(count * sizeof(V)));
  }
  template <class V>
  V* copy_of(V const* data, std::size_t count) {
    auto* const out = zeros_of<V>(count);
    if (count > 0) device::gpu::copy_now(out, data, count * sizeof(V));
    return out;
  }
  template <class V>
  V* copy_of(std::vector<V> const& v) {
    return copy_of(v.data(), v.size());
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<std::pair<void*, std::size_t>> blocks_;
  std::size_t bytes_ = 0;
};

}  // namespace asterism::direct
