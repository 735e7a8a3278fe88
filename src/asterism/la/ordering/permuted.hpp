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

/// v by, in double: the factor may be beyond the range of T.
template <class T>
T scaled_by(T v, double by) {
  if constexpr (is_complex_v<T>) return {real_t<T>(double(v.re) * by), real_t<T>(double(v.im) * by)};
  else return T(double(v) * by);
}

/// q with q[p[k]] = k.
std::vector<std::int32_t> inverse_permutation(std::span<std::int32_t const> p);

}  // namespace asterism::la
