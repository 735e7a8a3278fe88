#include "asterism/grid/bricks/stencil_call.hpp"

namespace asterism::grid {
namespace {

/// Of what is `back` bytes behind an address.
std::byte* before(void const* p, std::size_t back) { return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) - back); }

}  // namespace

StencilCall::StencilCall(StencilState const& s, StencilKernel const& k, Places const& places, std::array<double, 2> const& weights)
    : function_(k.function), constants_(k.constants) {
  auto const& domain = s.domain;
  auto* const none = before(s.zeros.raw(), std::size_t(domain.ghost_bricks()) * std::size_t(domain.points_of_brick()) * size_of(s.dtype));
  for (int const g : k.grids) {
    if (g >= 0) {
      auto const& c = s.coefficients[std::size_t(g)];
      grids_.push_back(c.data().raw());
      beyond_.push_back(c.has_ghosts() ? c.ghosts().raw() : none);
    } else {
      auto const& [own, ghosts] = places[std::size_t(StencilKernel::x - g)];
      grids_.push_back(own);
      beyond_.push_back(ghosts ? ghosts : none);
    }
  }
  for (std::size_t n = 0; n < k.weights.size(); ++n) constants_[std::size_t(k.weights[n])] = weights[n];
  narrow_.assign(constants_.begin(), constants_.end());
  a_.neighbours = domain.neighbours(), a_.origin = domain.origins(), a_.extent = domain.extent();
  a_.grids = grids_.data(), a_.ghosts = beyond_.data(), a_.owned = long(domain.bricks());
  a_.constants = s.dtype == Dtype::float64 ? static_cast<void const*>(constants_.data()) : narrow_.data();
  a_.program = k.program;
}

}  // namespace asterism::grid
