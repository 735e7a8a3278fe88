// A matrix with other rows and columns first, scaled.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "asterism/la/formats/csr.hpp"

namespace asterism::la {

/// B with B[k, l] = r_i a_ij c_j for i = rows[k] and j = columns[l]; without scalings if their spans are empty. Columns ascend.
Csr permuted(Csr const& a, std::span<std::int32_t const> rows, std::span<std::int32_t const> columns,
             std::span<double const> row_scale = {}, std::span<double const> column_scale = {});

/// q with q[p[k]] = k.
std::vector<std::int32_t> inverse_permutation(std::span<std::int32_t const> p);

}  // namespace asterism::la
