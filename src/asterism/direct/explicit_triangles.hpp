// L and U as sparse matrices, from the fronts that hold them.
#pragma once
#include <cstdint>
#include <utility>

#include "asterism/direct/multifrontal.kernels.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::direct {

/// L and U of the scaled and permuted matrix, as ExplicitFactors says. Cost: time and memory of the factors.
std::pair<la::Csr, la::Csr> explicit_triangles(NumericFactors const& factors, std::int32_t n, Dtype dtype);

}  // namespace asterism::direct
