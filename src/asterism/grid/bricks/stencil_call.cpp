#include "asterism/grid/bricks/stencil_call.hpp"

#include <algorithm>

namespace asterism::grid {
namespace {

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
  a_.neighbours = domain.neighbours(), a_.origin = domain.origins(), a_.extent = domain.extent();
  if (std::any_of(slots_.begin(), slots_.end(), [](auto const* s) { return s; })) a_.slots = slots_.data();
  a_.grids = grids_.data(), a_.ghosts = beyond_.data(), a_.owned = long(domain.bricks());
  a_.constants = constants_.data();
  a_.program = k.program;
  a_.last = int(domain.brick()[0]);
}

}  // namespace asterism::grid
