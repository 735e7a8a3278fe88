// What calls of a stencil's kernels have in common: what the kernels are given.
#pragma once
#include <array>
#include <atomic>
#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "asterism/grid/bricks/brick_domain.hpp"
#include "asterism/grid/bricks/brick_schedule.hpp"
#include "asterism/grid/bricks/gpu_stencil.hpp"
#include "asterism/la/vectors/vector.hpp"
#include "asterism/stencil/table.hpp"

namespace asterism::grid {

/// What a kernel does, and with what.
enum class StencilForm : std::uint8_t {
  product,     ///< y = A x
  transposed,  ///< y = A^T x
  residual,    ///< y = b - A x
  smooth,      ///< y = x + scale w .* (b - A x)
  step,        ///< the same with the inverse diagonal of A as w, which is found from the stencil: no vector is read
  coloured,    ///< with one scale for points whose indices have an even sum, and one for the others
  start,       ///< y = scale D^-1 b: the step from x = 0
  coloured_start,
};

/// A function that the stencil compiler made, or the one that reads tables (stencil/table.hpp).
struct StencilKernel {
  /// Of each grid of the kernel, in its order: one of these, or the number of a coefficient.
  static constexpr int x = -1, y = -2, b = -3, w = -4;
  void (*function)(stencil::Arguments const*) = nullptr;
  void const* program = nullptr;      ///< the table
  std::shared_ptr<void const> owner;  ///< of the code, or of the table
  std::vector<int> grids;
  std::vector<std::complex<double>> constants;  ///< in the kernel's order
  double flops = 0;                             ///< of a point
  std::vector<int> scales = {};                 ///< the numbers of the constants that are the form's scales
  std::shared_ptr<GpuStencil> gpu = {};         ///< the same for a GPU, of the same grids and constants; null: there is none
};

struct StencilState {
  BrickDomain domain;
  Dtype dtype = Dtype::float64;
  std::atomic<bool> own_residual = false;  // a kernel for residuals is made when the first one is asked for
  std::vector<la::Vector> coefficients;
  device::Array zeros;  // a brick
  std::string name;
  std::array<int, 3> reach{};  // how far the stencil reads, of three directions
  std::mutex mutex;
  std::map<std::array<std::int64_t, 4>, std::shared_ptr<BrickSchedule const>> schedules;  // by stages, threads, vectors, stages in slots

  bool has(StencilForm form) const {
    std::lock_guard const lock(kernels_mutex_);
    return kernels_.contains(form);
  }
  /// Of a form that it has; it stays where it is.
  StencilKernel const& kernel(StencilForm form) const {
    std::lock_guard const lock(kernels_mutex_);
    return kernels_.at(form);
  }
  /// One that is there stays: another thread may be using it.
  void add(StencilForm form, StencilKernel kernel) {
    std::lock_guard const lock(kernels_mutex_);
    kernels_.try_emplace(form, std::move(kernel));
  }

 private:
  mutable std::mutex kernels_mutex_;
  std::map<StencilForm, StencilKernel> kernels_;
};

/// A kernel with its arguments.
class StencilCall {
 public:
  /// Of a vector: own bricks, and the room for copies with a brick of zeros behind these, which is null if none is read. Or bricks that
  /// are where `slots` says, by their numbers, copies and the brick of zeros too.
  struct Place {
    std::byte *own = nullptr, *ghosts = nullptr;
    int const* slots = nullptr;
  };
  /// Of x, y, b and w in this order.
  using Places = std::array<Place, 4>;
  StencilCall(StencilState const& s, StencilKernel const& k, Places const& places, Scales const& scales = {});
  StencilCall(StencilCall const&) = delete;
  StencilCall& operator=(StencilCall const&) = delete;
  /// streams: past the caches, as what is written does not fit into them.
  void operator()(int const* bricks, std::int64_t count, bool streams) const { (*this)(bricks, count, 0, a_.last, streams); }
  /// Planes of these bricks along the first direction alone.
  void operator()(int const* bricks, std::int64_t count, int first, int last, bool streams) const {
    auto mine = a_;
    mine.bricks = long(count), mine.visit = bricks, mine.first = first, mine.last = last, mine.streams = streams;
    function_(&mine);
  }

 private:
  void (*function_)(stencil::Arguments const*);
  std::vector<void*> grids_, beyond_;
  std::vector<int const*> slots_;
  std::vector<std::byte> constants_;  // in the dtype
  stencil::Arguments a_{};
};

/// One form on all own bricks: y from x, whose copies of other ranks' bricks are brought, from b and w. x: null where the form does not
/// read it. On the queue of y, on a GPU too if the kernel is there; else on the host, which is counted. Aligned on the host to 64 bytes.
void run_form(std::shared_ptr<StencilState const> const& s, StencilForm form, la::Vector const* x, la::Vector& y, la::Vector const* b,
              la::Vector const* w, Scales const& scales);

/// Whether a rank's part of a vector is so large that little of what is written of it is in a core's own cache when it is read.
inline bool is_past_caches(BrickDomain const& domain, Dtype dtype) {
  return domain.bricks() * domain.points_of_brick() * std::int64_t(size_of(dtype)) >= std::int64_t(32) << 20;
}

/// Zeros in the brick that is behind the room for copies.
inline void clear_beyond(StencilState const& s, std::byte* ghosts) {
  auto const brick = std::size_t(s.domain.points_of_brick()) * size_of(s.dtype);
  std::memset(ghosts + std::size_t(s.domain.ghost_bricks()) * brick, 0, brick);
}

}  // namespace asterism::grid
