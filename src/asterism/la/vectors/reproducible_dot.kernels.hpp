#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::la::kernel {

using device::Executor;

/// Adds conj(x) y of each of k columns, products rounded to float64, to its 2 ReproducibleSum::words of out.
template <class T>
void reproducible_dot(Executor&, std::int64_t n, std::int64_t k, T const* x, T const* y, std::int64_t* out);

}  // namespace asterism::la::kernel
