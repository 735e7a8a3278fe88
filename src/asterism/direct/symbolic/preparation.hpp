// What is checked and scaled before a matrix is factored, by whichever method.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "asterism/base/complex.hpp"
#include "asterism/la/formats/csr.hpp"
#include "asterism/la/ordering/matching.hpp"

namespace asterism::direct {

/// f(i, j, magnitude) for each entry.
template <class F>
void each_size(la::Csr const& a, F const& f) {
  with_dtype(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const val = a.entries<T>();
    for (std::int32_t i = 0; i < a.rows; ++i)
      for (auto p = std::size_t(ptr[std::size_t(i)]); p < std::size_t(ptr[std::size_t(i) + 1]); ++p)
        f(i, col[p], double(magnitude(val[p])));
  });
}

/// v > 0: the nearest, on a logarithmic scale; else 1.
double power_of_two(double v);

/// Errors: shape; value, with the place of an entry that is NaN or infinite.
void require_square_and_finite(la::Csr const& a, std::string const& name);
/// An error with the entry that differs most from its partner's conjugate, if that is more than rounding.
void require_hermitian(la::Csr const& a, std::string const& name);
/// An error with the structural rank, if that is not full.
void require_structural_rank(la::Matching const& found, std::int32_t n, std::string const& name);

/// "Use ...": what helps where factors are too large or take too long. Not an ordering or a precision that is in force.
std::string what_to_try(std::string const& ordering, std::optional<Dtype> dtype, std::vector<std::string> ways = {});

/// Scales r and c that bring the largest entry of each row and column near 1, both at once, again and again (Ruiz 2001). Powers of two, so
/// that nothing is rounded. The same for rows and columns of a matrix whose magnitudes are symmetric.
void equilibrate_by_powers_of_two(la::Csr const& a, std::vector<double>& r, std::vector<double>& c);

}  // namespace asterism::direct
