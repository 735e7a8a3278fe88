// One file of the kernel dialect, compiled by g++, nvcc and hipcc: what a kernel may be written with.
#include "asterism/base/dtype.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::test {

using device::Executor;

/// A scalar "tape": a fixed-size program over results in memory, evaluated where the kernel starts.
struct Tape {
  double const* a;
  double const* b;
  int op;  // 0: a / b, 1: a * b
  ASTERISM_FN double value() const { return op == 0 ? *a / *b : *a * *b; }
};

template <class T>
void axpy_with_tape(Executor& executor, std::int64_t n, Tape tape, T const* x, T* y) {
  device::parallel_for(executor, n, [=] ASTERISM_KERNEL(std::int64_t i) { y[i] += T(real_t<T>(tape.value())) * x[i]; });
}

template <class T>
void row_sums(Executor& executor, std::int64_t rows, std::int64_t const* offsets, T const* values, T* sums) {
  device::parallel_for(executor, rows, [=] ASTERISM_KERNEL(std::int64_t i) {
    T s(0);
    for (auto p = offsets[i]; p < offsets[i + 1]; ++p) s += values[p];
    sums[i] = s;
  });
}

#define INSTANTIATE(T)                                                       \
  template void axpy_with_tape(Executor&, std::int64_t, Tape, T const*, T*); \
  template void row_sums(Executor&, std::int64_t, std::int64_t const*, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)

}  // namespace asterism::test
