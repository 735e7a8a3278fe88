#include "asterism/comm/reduction.kernels.hpp"

namespace asterism::comm::kernel {

void add_parts(Executor& executor, std::int64_t n, std::int64_t parts, Number const* in, Number* out) {
  device::parallel_for(executor, n, [=] ASTERISM_KERNEL(std::int64_t i) {
    Number s = in[i];
    for (std::int64_t r = 1; r < parts; ++r) s += in[r * n + i];
    out[i] = s;
  });
}

}  // namespace asterism::comm::kernel
