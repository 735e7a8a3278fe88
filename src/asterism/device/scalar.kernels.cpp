#include "asterism/device/scalar.kernels.hpp"

namespace asterism::device::kernel {

void nothing(Executor& executor, double*) {
  parallel_for(executor, 1, [] ASTERISM_KERNEL(std::int64_t) {});
}

void store(Executor& executor, std::int64_t k, Numbers<Number> value, Number* out) {
  auto const v = value.here();
  parallel_for(executor, k, [=] ASTERISM_KERNEL(std::int64_t j) { out[j] = v[j]; });
}

}  // namespace asterism::device::kernel
