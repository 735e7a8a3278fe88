// A stencil's kernel on this process's GPU.
#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "asterism/device/array.hpp"

namespace asterism::grid {

struct StencilState;
struct StencilKernel;
/// Of a form: of points whose indices have an even sum, or of all, and what that of the others is more.
using Scales = std::array<std::complex<double>, 2>;

/// What the vendor's compiler has made.
struct CompiledStencil {
  std::string path;                  ///< empty: there is none
  std::string name;                  ///< of the function; or why there is none
  int threads = 0;                   ///< of a block
  std::int64_t planes_of_block = 0;  ///< planes of bricks that a block computes at once
};

/// Compiled and loaded when first asked for.
class GpuStencil {
 public:
  /// Given "cuda" or "hip" and the device's architecture.
  using Compile = std::function<CompiledStencil(std::string const& runtime, std::string const& architecture)>;
  explicit GpuStencil(Compile compile) : compile_(std::move(compile)) {}
  /// Whether it can be launched; if not, the log says once why.
  bool is_ready();
  /// Of the grids x, y, b and w in this order: own bricks, and copies of other ranks' with a brick of zeros behind these, if any are read.
  using Grids = std::array<std::pair<device::Array, device::Array>, 4>;
  /// Submits it for `count` bricks from number `first` on. of_y: update if others of its bricks are there already.
  void submit(device::Queue const& queue, std::shared_ptr<StencilState const> const& s, StencilKernel const& k, Grids const& grids,
              Scales const& scales, std::int64_t first, std::int64_t count, device::Access of_y) const;

 private:
  Compile compile_;
  std::mutex mutex_;
  bool asked_ = false;
  CompiledStencil made_;
  void const* kernel_ = nullptr;
};

/// Of this process: kernels that were loaded, and why others were not.
struct GpuStencils {
  std::int64_t loaded = 0;
  std::string missing;
};
GpuStencils gpu_stencils();

}  // namespace asterism::grid
