#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::comm::kernel {

using device::Number;
using device::Queue;

/// out[i] = in[i] + in[n + i] + ..., the ranks' parts in their order.
void add_parts(Queue&, std::int64_t n, std::int64_t parts, Number const* in, Number* out);

}  // namespace asterism::comm::kernel
