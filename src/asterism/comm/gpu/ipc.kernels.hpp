#pragma once
#include <cstdint>

#include "asterism/device/parallel.hpp"

namespace asterism::comm::kernel {

using device::Executor;

/// *flag = value, after all that this queue wrote before, wherever that is.
void set_signal(Executor&, std::uint64_t* flag, std::uint64_t value);
/// Ends when *flag, which another process sets, has come to value.
void await_signal(Executor&, std::uint64_t* flag, std::uint64_t value);

}  // namespace asterism::comm::kernel
