#include "asterism/la/vectors/row_parts.kernels.hpp"

#include "asterism/base/dtype.hpp"
#include "asterism/la/vectors/dot_range.hpp"
#if !defined(ASTERISM_ON_GPU)
#include <atomic>
#include <utility>
#include <vector>

#include "asterism/base/reproducible_sum.hpp"
#endif

namespace asterism::la::kernel {
using device::parallel_for;
using device::parallel_ranges;
using device::parallel_sum_blocks;
namespace {

/// Where the run of rows of one part that begins at `row` ends.
ASTERISM_FN i64 end_of_run(i64 row, i64 end, std::int32_t const* of) {
  auto const part = of[row];
  while (row < end && of[row] == part) ++row;
  return row;
}

}  // namespace

template <class T>
void part_dot(Executor& executor, i64 n, i64 parts, std::int32_t const* of, T const* x, T const* y, Sum* out, i64 offset) {
  parallel_sum_blocks(executor, n, parts, out + offset, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
    if (step > 1) {
      for (i64 i = begin; i < end; i += step)
        if (of[i] >= 0) add_product(x[i], y[i], acc[of[i]]);
      return;
    }
    for (i64 i = begin; i < end;) {  // a run's sum is in registers
      i64 const first = i;
      i = end_of_run(first, end, of);
      if (of[first] >= 0) acc[of[first]] += dot_range(first, i, i64(1), x, y);
    }
  });
}

template <class T>
void part_axpy(Executor& executor, i64 n, Numbers<T> a, std::int32_t const* of, T const* x, T* y) {
  auto const an = a.here();
  parallel_for(executor, n, [=] ASTERISM_KERNEL(i64 i) {
    if (of[i] >= 0) y[i] += an[of[i]] * x[i];
  });
}

#define INSTANTIATE(T)                                                                             \
  template void part_dot(Executor&, i64, i64, std::int32_t const*, T const*, T const*, Sum*, i64); \
  template void part_axpy(Executor&, i64, Numbers<T>, std::int32_t const*, T const*, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

#if !defined(ASTERISM_ON_GPU)
namespace {

/// Terms of one sum, which are added many at a time.
struct Terms {
  int count = 0;
  double of[ReproducibleSum::most];
  void add(double a, std::int64_t* sum) {
    of[count++] = a;
    if (count == ReproducibleSum::most) flush(sum);
  }
  void flush(std::int64_t* sum) {
    if (count > 0) ReproducibleSum::add(of, std::exchange(count, 0), sum);
  }
};

}  // namespace

template <class T>
void reproducible_part_dot(Executor& executor, i64 n, i64 parts, std::int32_t const* of, T const* x, T const* y, std::int64_t* out) {
  constexpr i64 words = ReproducibleSum::words;
  parallel_ranges(executor, n, [=](i64 begin, i64 end) {
    std::vector<Terms> terms(std::size_t(2 * parts));  // of the real part and of the imaginary one
    std::vector<std::int64_t> sums(std::size_t(2 * parts * words), 0);
    auto const add = [&](i64 which, double a) { terms[std::size_t(which)].add(a, sums.data() + which * words); };
    for (i64 i = begin; i < end; ++i) {
      if (of[i] < 0) continue;
      i64 const p = 2 * of[i];
      if constexpr (is_complex_v<T>) {
        double const a = x[i].re, b = x[i].im, c = y[i].re, d = y[i].im;
        add(p, a * c), add(p, b * d);
        add(p + 1, a * d), add(p + 1, -b * c);
      } else {
        add(p, double(x[i]) * double(y[i]));
      }
    }
    for (i64 which = 0; which < 2 * parts; ++which) terms[std::size_t(which)].flush(sums.data() + which * words);
    for (std::size_t w = 0; w < sums.size(); ++w)  // other threads add theirs
      if (sums[w]) std::atomic_ref(out[w]).fetch_add(sums[w], std::memory_order_relaxed);
  });
}
#define INSTANTIATE(T) template void reproducible_part_dot(Executor&, i64, i64, std::int32_t const*, T const*, T const*, std::int64_t*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE
#endif

}  // namespace asterism::la::kernel
