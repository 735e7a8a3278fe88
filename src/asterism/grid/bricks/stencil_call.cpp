#include "asterism/grid/bricks/stencil_call.hpp"

#include <algorithm>

#include "asterism/base/profile.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using device::Array;
using la::Vector;

/// Of what is `back` bytes behind an address.
std::byte* before(void const* p, std::size_t back) { return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) - back); }

}  // namespace

StencilCall::StencilCall(StencilState const& s, StencilKernel const& k, Places const& places, Scales const& scales)
    : function_(k.function) {
  auto const& domain = s.domain;
  auto* const none = before(s.zeros.raw(), std::size_t(domain.ghost_bricks()) * std::size_t(domain.points_of_brick()) * size_of(s.dtype));
  for (int const g : k.grids) {
    if (g >= 0) {
      auto const& c = s.coefficients[std::size_t(g)];
      grids_.push_back(c.data().raw());
      beyond_.push_back(c.has_ghosts() ? c.ghosts().raw() : none);
      slots_.push_back(nullptr);
    } else {
      auto const& [own, ghosts, slots] = places[std::size_t(StencilKernel::x - g)];
      grids_.push_back(own);
      beyond_.push_back(ghosts ? ghosts : none);
      slots_.push_back(slots);
    }
  }
  auto constants = k.constants;
  for (std::size_t n = 0; n < k.scales.size(); ++n) constants[std::size_t(k.scales[n])] = scales[n];
  with_dtype(s.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constants_.resize(constants.size() * sizeof(T));
    for (std::size_t n = 0; n < constants.size(); ++n) {
      auto const value = from_complex<T>(constants[n]);
      std::memcpy(constants_.data() + n * sizeof(T), &value, sizeof(T));
    }
  });
  a_.neighbours = domain.neighbours().as<int>(), a_.origin = domain.origins().as<int>(), a_.extent = domain.extent().data();
  if (std::any_of(slots_.begin(), slots_.end(), [](auto const* s) { return s; })) a_.slots = slots_.data();
  a_.grids = grids_.data(), a_.ghosts = beyond_.data(), a_.owned = long(domain.bricks());
  a_.constants = constants_.data();
  a_.program = k.program;
  a_.last = int(domain.brick()[0]);
}

void run_form(std::shared_ptr<StencilState const> const& s, StencilForm form, Vector const* x, Vector& y, Vector const* b, Vector const* w,
              Scales const& scales) {
  static int const event = profile::event("StencilMult");
  auto const& queue = y.queue();
  auto const& domain = s->domain;
  auto const& space = domain.space();
  auto const& kernel = s->kernel(form);
  profile::Scope const scope(
      event, double(size_of(s->dtype)) * double(y.local_size()) * double(1 + (x != nullptr) + (b != nullptr) + (w != nullptr)),
      kernel.flops * double(y.local_size()));
  bool const on_gpu = queue.memory() == device::Memory::gpu && kernel.gpu && kernel.gpu->is_ready();
  auto const data = [](Vector const* v) { return v ? v->data() : Array(); };
  auto const bricks = [&](i64 first, i64 count, Array const& ghosts_read, auto const& result) {
    if (on_gpu) {
      GpuStencil::Grids const grids{{{data(x), ghosts_read}, {y.data(), {}}, {data(b), {}}, {data(w), {}}}};
      return kernel.gpu->submit(queue, s, kernel, grids, scales, first, count, result.access);
    }
    auto const run = [s, form, scales, first, count](device::Executor& executor, std::byte const* px, std::byte* ghosts, std::byte* py,
                                                     std::byte const* pb, std::byte const* pw) {
      auto const& d = s->domain;
      if (ghosts) clear_beyond(*s, ghosts);
      auto const only_read = [](std::byte const* p) { return const_cast<std::byte*>(p); };
      StencilCall const call(*s, s->kernel(form),
                             {{{only_read(px), ghosts}, {py, nullptr}, {only_read(pb), nullptr}, {only_read(pw), nullptr}}}, scales);
      bool const streams = is_past_caches(d, s->dtype);
      device::parallel_ranges(
          executor, count, [&](i64 begin, i64 end) { call(d.visits().as<int>() + first + begin, end - begin, streams); },
          std::max<i64>(1, serial_points / d.points_of_brick()));
    };
    device::submit_without_form(queue, run, device::read<std::byte>(data(x)), device::update<std::byte>(ghosts_read), result,
                                device::read<std::byte>(data(b)), device::read<std::byte>(data(w)));
  };
  if (!x || !space.has_local_form()) return bricks(0, domain.bricks(), Array(), device::write<std::byte>(y.data()));
  auto const ghosts = la::room_for_ghosts(*x, space, queue);
  auto flight = space.ghost_forest().bcast_begin(queue, s->dtype, 1, x->data(), ghosts);
  i64 const inner = domain.inner_bricks(), outer = domain.bricks() - inner;
  bricks(0, inner, Array(), device::write<std::byte>(y.data()));
  flight.end();
  if (outer > 0) bricks(inner, outer, ghosts, device::update<std::byte>(y.data()));
}

}  // namespace asterism::grid
