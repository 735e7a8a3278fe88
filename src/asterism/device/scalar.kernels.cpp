#include "asterism/device/scalar.kernels.hpp"

namespace asterism::device::kernel {

void nothing(Queue& q, double*) {
  parallel_for(q, 1, [] ASTERISM_KERNEL(std::int64_t) {});
}

void store(Queue& q, std::int64_t k, Numbers<Number> value, Number* out) {
  auto const v = value.here();
  parallel_for(q, k, [=] ASTERISM_KERNEL(std::int64_t j) { out[j] = v[j]; });
}

}  // namespace asterism::device::kernel
