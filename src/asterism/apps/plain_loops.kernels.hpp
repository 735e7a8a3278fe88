// What a user would write by hand: the measure of what an operation costs beside its loop.
#pragma once
#include <cstdint>

namespace asterism::apps::kernel {

void plain_axpy(std::int64_t n, double a, double const* x, double* y);
double plain_dot(std::int64_t n, double const* x, double const* y);

}  // namespace asterism::apps::kernel
