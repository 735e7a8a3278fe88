#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::comm::kernel {

using device::Executor;
using device::Number;

/// out[i] = in[i] + in[n + i] + ..., the ranks' parts in their order.
void add_parts(Executor&, std::int64_t n, std::int64_t parts, Number const* in, Number* out);

}  // namespace asterism::comm::kernel
