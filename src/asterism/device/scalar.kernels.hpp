#pragma once
#include "asterism/device/parallel.hpp"
#include "asterism/device/tape.hpp"

namespace asterism::device::kernel {

/// Nothing, to a: what a task costs by itself.
void nothing(Executor&, double* a);

/// out[j] = the value of column j of k.
void store(Executor&, std::int64_t k, Numbers<Number> value, Number* out);

}  // namespace asterism::device::kernel
