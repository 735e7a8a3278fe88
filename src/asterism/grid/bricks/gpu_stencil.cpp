#include "asterism/grid/bricks/gpu_stencil.hpp"

#include <cstring>

#include "asterism/base/error.hpp"
#include "asterism/base/log.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/grid/bricks/stencil_call.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using device::Access;
using device::Array;
using device::Memory;

struct Known {
  std::mutex mutex;
  GpuStencils stencils;
};
Known& known() {
  static auto* const k = new Known;
  return *k;
}

/// `struct Arguments` in the text of generated kernels for GPUs (python/asterism/stencil/codegen/emit_gpu.py), member by member.
class Bytes {
 public:
  template <class V>
  void add(V const& value, std::size_t alignment = alignof(V)) {
    auto const at = align(alignment);
    bytes_.resize(at + sizeof(V));  // what lies between is zero: graphs compare arguments by their bytes
    std::memcpy(bytes_.data() + at, &value, sizeof(V));
  }
  std::vector<std::byte> take() {
    bytes_.resize(align(8));
    return std::move(bytes_);
  }

 private:
  std::size_t align(std::size_t a) const { return (bytes_.size() + a - 1) / a * a; }
  std::vector<std::byte> bytes_;
};

void add_constants(Bytes& out, Dtype dtype, std::vector<std::complex<double>> const& constants) {
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (auto const& c : constants) out.add(from_complex<T>(c), sizeof(real_t<T>));
    if (constants.empty()) out.add(T(0), sizeof(real_t<T>));
  });
}

}  // namespace

GpuStencils gpu_stencils() {
  std::lock_guard const lock(known().mutex);
  return known().stencils;
}

bool GpuStencil::is_ready() {
  std::lock_guard const lock(mutex_);
  if (!asked_) {
    made_ = compile_(std::string(device::gpu::name()), device::gpu::architecture());
    asked_ = true;
    if (!made_.path.empty()) try {
        kernel_ = device::gpu::load_kernel(made_.path, made_.name);
      } catch (Error const& e) {  // a runtime that knows no libraries, say
        made_.name = e.what();
      }
    std::lock_guard const also(known().mutex);
    auto& all = known().stencils;
    if (kernel_) ++all.loaded;
    else if (all.missing != made_.name) {
      all.missing = made_.name;
      log::warning("stencils run on the host, their data are copied: {}", made_.name);
    }
  }
  return kernel_ != nullptr;
}

void GpuStencil::submit(device::Queue const& queue, std::shared_ptr<StencilState const> const& s, StencilKernel const& k,
                        Grids const& grids, Scales const& scales, i64 first, i64 count, Access of_y) const {
  auto const& domain = s->domain;
  std::vector<std::pair<Array, Array>> all;  // in the kernel's order
  std::vector<device::Intent> intents;
  for (int const g : k.grids) {
    if (g >= 0) {
      auto const& c = s->coefficients[std::size_t(g)];
      all.emplace_back(c.data(), c.has_ghosts() ? c.ghosts() : Array());
    } else {
      all.push_back(grids[std::size_t(StencilKernel::x - g)]);
    }
    all.back().first.intend(g == StencilKernel::y ? of_y : Access::read, intents);
    all.back().second.intend(g == StencilKernel::x ? Access::update : Access::read, intents);
  }
  for (auto const& a : {s->zeros, domain.neighbours(), domain.origins(), domain.visits()}) a.intend(Access::read, intents);
  auto constants = k.constants;
  for (std::size_t n = 0; n < k.scales.size(); ++n) constants[std::size_t(k.scales[n])] = scales[n];
  i64 const blocks = (count * domain.brick()[0] + made_.planes_of_block - 1) / made_.planes_of_block;
  auto const run = [s, all, places = k.grids, constants, first, count, blocks, threads = made_.threads,
                    kernel = kernel_](device::Executor& executor) {
    if (count == 0) return;
    auto const& d = s->domain;
    auto const brick = std::size_t(d.points_of_brick()) * size_of(s->dtype), beyond = std::size_t(d.ghost_bricks()) * brick;
    auto const address = [](Array const& a) { return reinterpret_cast<std::uintptr_t>(a.raw(Memory::gpu)); };
    Bytes a;
    a.add(count);
    a.add(first == 0 ? 0 : address(d.visits()) + std::size_t(first) * sizeof(int));
    a.add(address(d.neighbours()));
    a.add(address(d.origins()));
    for (int const n : d.extent()) a.add(n);
    for (auto const& [own, ghosts] : all) a.add(address(own));
    for (std::size_t g = 0; g < all.size(); ++g) {
      auto const& ghosts = all[g].second;
      a.add(ghosts ? address(ghosts) : address(s->zeros) - beyond);
      if (ghosts && places[g] == StencilKernel::x)
        device::gpu::check(device::gpu::api()->zero(ghosts.as<std::byte>(Memory::gpu) + beyond, brick, executor.stream()),
                           "clearing memory");
    }
    a.add(d.bricks());
    add_constants(a, s->dtype, constants);
    for (int g = 0; g < device::Executor::most_guards; ++g) {
      bool const there = g < executor.guard_count;
      a.add(there ? reinterpret_cast<std::uintptr_t>(executor.guards[g].flag) : std::uintptr_t(0));
      a.add(i64(there && executor.guards[g].wanted));
    }
    a.add(executor.guard_count);
    auto bytes = a.take();
    device::gpu::launch(executor, kernel, blocks, threads, bytes.data(), bytes.size());
  };
  queue.enqueue(std::move(intents), run);
}

}  // namespace asterism::grid
