#include "asterism/la/vectors/vector.kernels.hpp"

#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/coefficient.hpp"
#include "asterism/la/vectors/columns.hpp"
#include "asterism/la/vectors/dot_range.hpp"

namespace asterism::la::kernel {

using device::coefficient;
using device::parallel_ranges;
using device::parallel_strides;
using device::parallel_sum_blocks;

template <class T>
void fill(Executor& executor, i64 n, i64 k, Numbers<T> a, T* y) {
  each_entry<T>(executor, n, k, NoNumbers(), a.here(), NoNumbers(), [=] ASTERISM_KERNEL(i64 i, T, T aj, T) { y[i] = aj; });
}

template <class T>
void clear_runs(Executor& executor, i64 runs, i64 k, i64 const* of, T* y) {
  device::parallel_for(executor, runs, [=] ASTERISM_KERNEL(i64 r) {
    for (i64 i = of[2 * r] * k; i < (of[2 * r] + of[2 * r + 1]) * k; ++i) y[i] = T(0);
  });
}

template <class T>
void scale(Executor& executor, i64 n, i64 k, Numbers<T> a, T* y) {
  each_entry<T>(executor, n, k, NoNumbers(), a.here(), NoNumbers(), [=] ASTERISM_KERNEL(i64 i, T, T aj, T) { y[i] = aj * y[i]; });
}

template <class T>
void axpy(Executor& executor, i64 n, i64 k, Numbers<T> a, T const* x, T* y) {
  each_entry<T>(executor, n, k, NoNumbers(), a.here(), NoNumbers(), [=] ASTERISM_KERNEL(i64 i, T, T aj, T) { y[i] += aj * x[i]; });
}

// b = 0 must not spread a NaN of the old y: it overwrites
template <class T>
void axpby(Executor& executor, i64 n, i64 k, Numbers<T> a, T const* x, Numbers<T> b, T* y) {
  auto const an = a.here();
  auto const bn = b.here();
  if (k == 1) {
    parallel_strides(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) {
      T const a0 = coefficient<T>(an), b0 = coefficient<T>(bn);
      if (b0 == T(0)) {
        for (i64 i = begin; i < end; i += step) y[i] = a0 * x[i];
      } else {
#pragma omp simd
        for (i64 i = begin; i < end; i += step) y[i] = a0 * x[i] + b0 * y[i];
      }
    });
  } else {
    each_entry<T>(executor, n, k, NoNumbers(), an, bn,
                  [=] ASTERISM_KERNEL(i64 i, T, T aj, T bj) { y[i] = bj == T(0) ? aj * x[i] : aj * x[i] + bj * y[i]; });
  }
}

template <class T>
void multiply(Executor& executor, i64 n, i64 k, T const* d, T const* x, T* y) {
  each_entry<T>(executor, n, k, d, NoNumbers(), NoNumbers(), [=] ASTERISM_KERNEL(i64 i, T di, T, T) { y[i] = di * x[i]; });
}

template <class T>
void conjugate(Executor& executor, i64 n, T const* x, T* y) {
  parallel_strides(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) {
    for (i64 i = begin; i < end; i += step) y[i] = conj(x[i]);
  });
}

template <class T>
void multiply_add(Executor& executor, i64 n, i64 k, Numbers<T> a, T const* d, T const* x, T* y) {
  each_entry<T>(executor, n, k, d, a.here(), NoNumbers(), [=] ASTERISM_KERNEL(i64 i, T di, T aj, T) { y[i] += aj * di * x[i]; });
}

namespace {

/// Blue (1978): squares of large and of small numbers are summed apart, scaled.
struct Squares {
  double medium = 0, large = 0, small = 0;
  ASTERISM_FN void add(float v) { medium += double(v) * double(v); }  // which is safe
  ASTERISM_FN void add(double v) {
    double const a = v < 0 ? -v : v;
    if (a > 1e-100 && a < 1e100) medium += a * a;
    else if (a < 1) small += (a * 0x1p600) * (a * 0x1p600);
    else large += (a * 0x1p-600) * (a * 0x1p-600);  // NaN too
  }
};
/// Whether a sum of squares, formed as it is, has lost nothing: then no entry was large, and what small ones are lost does not matter.
ASTERISM_FN bool is_safe(double sum) { return sum > 1e-200 && sum < 1e200; }

template <class T>
ASTERISM_FN bool all_are_zero(i64 begin, i64 end, i64 step, T const* x) {
  int others = 0;
#pragma omp simd reduction(| : others)
  for (i64 i = begin; i < end; i += step) others |= int(!(x[i] == T(0)));
  return others == 0;
}

template <class T>
ASTERISM_FN Squares squares_of(i64 begin, i64 end, i64 step, T const* x) {
  Squares s;
  for (i64 i = begin; i < end; i += step) {
    s.add(real(x[i]));
    if constexpr (is_complex_v<T>) s.add(imag(x[i]));
  }
  return s;
}

/// Adds the squares of a column, whose sum as it is formed plainly is `plain`.
template <class T>
ASTERISM_FN void add_squares(double plain, i64 begin, i64 end, i64 step, T const* x, Sum& sums, Sum& small) {
  if (sizeof(real_t<T>) == sizeof(float) || is_safe(plain) || (plain == 0 && all_are_zero(begin, end, step, x))) {
    sums.re += plain;
    return;
  }
  Squares const s = squares_of(begin, end, step, x);
  sums += Sum(s.medium, s.large);
  small.re += s.small;
}

}  // namespace

// One column apart: its sum is in a register then.
template <class T>
void dot(Executor& executor, i64 n, i64 k, T const* x, T const* y, Sum* out, i64 offset) {
  if (k == 1)
    parallel_sum_blocks<1>(executor, n, k, out + offset,
                           [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) { acc[0] += dot_range(begin, end, step, x, y); });
  else
    parallel_sum_blocks(executor, n, k, out + offset,
                        [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) { dot_columns(begin, end, step, k, k, x, y, acc); });
}

template <class T>
void squares(Executor& executor, i64 n, i64 k, T const* x, Sum* out) {
  if (k == 1) {
    parallel_sum_blocks<2>(executor, n, 2, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
      add_squares(dot_range(begin, end, step, x, x).re, begin, end, step, x, acc[0], acc[1]);
    });
    return;
  }
  parallel_sum_blocks(executor, n, 2 * k, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
    for (i64 j0 = 0, count = dots_at_once(k); j0 < k; j0 += count) {
      count = k - j0 < count ? k - j0 : count;
      Sum plain[most_dots_at_once] = {};
      dot_columns(begin, end, step, k, count, x + j0, x + j0, plain);
      for (i64 j = j0; j < j0 + count; ++j) add_squares(plain[j - j0].re, begin * k + j, end * k, step * k, x, acc[j], acc[k + j]);
    }
  });
}

template <class T>
void update_and_norm2(Executor& executor, i64 n, i64 k, Numbers<T> alpha, T const* ASTERISM_RESTRICT p, T const* ASTERISM_RESTRICT qv,
                      T* ASTERISM_RESTRICT x, T* ASTERISM_RESTRICT r, Sum* out) {
  auto const a = alpha.here();
  if (k == 1)
    parallel_sum_blocks<1>(executor, n, k, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
      T const a0 = coefficient<T>(a);
      acc[0].re += sum_range(begin, end, step, [=](i64 i) {
        x[i] += a0 * p[i];
        r[i] -= a0 * qv[i];
        return square(r[i]);
      });
    });
  else
    parallel_sum_blocks(executor, n, k, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
      each_of_columns<T>(begin, end, step, k, NoNumbers(), a, NoNumbers(), [&](i64 i, T, T aj, T) {
        x[i] += aj * p[i];
        r[i] -= aj * qv[i];
      });
      dot_columns(begin, end, step, k, k, r, r, acc);
    });
}

template <class T>
void multiply_and_dot(Executor& executor, i64 n, i64 k, T const* d, T const* ASTERISM_RESTRICT r, T* ASTERISM_RESTRICT z, Sum* out) {
  if (k == 1)
    parallel_sum_blocks<1>(executor, n, k, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
      for (i64 i = begin; i < end; i += step) z[i] = d[i] * r[i];
      acc[0] += dot_range(begin, end, step, r, z);
    });
  else
    parallel_sum_blocks(executor, n, k, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
      each_of_columns<T>(begin, end, step, k, d, NoNumbers(), NoNumbers(), [&](i64 i, T di, T, T) { z[i] = di * r[i]; });
      dot_columns(begin, end, step, k, k, r, z, acc);
    });
}

template <class T>
void multi_dot(Executor& executor, i64 n, i64 m, i64 stride, T const* v, T const* w, Sum* out) {
  parallel_sum_blocks(executor, n, m, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
    for (i64 j = 0; j < m; ++j) acc[j] += dot_range(begin, end, step, v + j * stride, w);
  });
}

template <class T>
void multi_axpy(Executor& executor, i64 n, i64 m, i64 stride, T const* a, T const* v, T* w) {
  parallel_ranges(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end) {
    for (i64 b = begin; b < end; b += 1024) {  // w stays in cache while the basis streams by
      i64 const e = b + 1024 < end ? b + 1024 : end;
      for (i64 j = 0; j < m; ++j) {
        T const aj = a[j];
        T const* vj = v + j * stride;
        for (i64 i = b; i < e; ++i) w[i] += aj * vj[i];
      }
    }
  });
}

template <class T>
void chebyshev_step(Executor& executor, i64 n, i64 k, double a, double b, T const* ASTERISM_RESTRICT w, T const* ASTERISM_RESTRICT r,
                    T* ASTERISM_RESTRICT d, T* ASTERISM_RESTRICT x) {
  using R = real_t<T>;
  T const ta = T(R(a)), tb = T(R(b));
  if (a == 0) {
    each_entry<T>(executor, n, k, w, NoNumbers(), NoNumbers(), [=] ASTERISM_KERNEL(i64 i, T wi, T, T) {
      d[i] = tb * wi * r[i];
      x[i] += d[i];
    });
  } else {
    each_entry<T>(executor, n, k, w, NoNumbers(), NoNumbers(), [=] ASTERISM_KERNEL(i64 i, T wi, T, T) {
      d[i] = ta * d[i] + tb * wi * r[i];
      x[i] += d[i];
    });
  }
}

namespace {
// splitmix64
ASTERISM_FN std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
ASTERISM_FN double uniform(std::uint64_t bits) { return double(bits >> 11) * 0x1.0p-52 - 1.0; }
template <class T>
ASTERISM_FN T hashed_value(std::uint64_t h) {
  if constexpr (is_complex_v<T>) return T(real_t<T>(uniform(h)), real_t<T>(uniform(mixed(h))));
  else return T(uniform(h));
}
}  // namespace

#if !defined(ASTERISM_ON_GPU)
template <class T>
bool are_finite_and_not_zero(i64 n, T const* x) {
  using R = real_t<T>;
  auto const size_of = [](R v) { return v < 0 ? -v : v; };
  R check = 0, least = 1;
#pragma omp simd reduction(+ : check) reduction(min : least)
  for (i64 i = 0; i < n; ++i) {
    R const size = size_of(real(x[i])) + size_of(imag(x[i]));
    check += size * R(0);  // 0 times what is not finite is NaN
    least = size < least ? size : least;
  }
  return check == 0 && least > 0;
}

template <class T>
i64 look_at_entries(Executor& executor, i64 n, i64 k, T const* x, double* largest, i64* first_not_finite) {
  using R = real_t<T>;
  constexpr i64 parts = is_complex_v<T> ? 2 : 1, block = 4096;
  auto const* const v = reinterpret_cast<R const*>(x);
  i64 const width = k * parts, blocks = (n + block - 1) / block;
  std::vector<R> most(std::size_t(blocks * k), R(0));
  std::vector<i64> bad(std::size_t(blocks), 0);
  device::parallel_ranges(
      executor, blocks,
      [=, most = most.data(), bad = bad.data()](i64 begin, i64 end) {
        for (i64 b = begin; b < end; ++b) {
          i64 const last = b + 1 == blocks ? n : (b + 1) * block;
          R check = 0;  // 0 times what is not finite is NaN
          if (k == 1) {
            R largest_here = 0;
            auto const* const from = v + b * block * parts;
            i64 const count = (last - b * block) * parts;
#pragma omp simd reduction(max : largest_here) reduction(+ : check)
            for (i64 i = 0; i < count; ++i) {
              R const a = from[i] < 0 ? -from[i] : from[i];
              largest_here = a > largest_here ? a : largest_here;
              check += from[i] * R(0);
            }
            most[b] = largest_here;
          } else {
            for (i64 row = b * block; row < last; ++row)
              for (i64 j = 0; j < width; ++j) {
                R const e = v[row * width + j], a = e < 0 ? -e : e;
                auto& m = most[b * k + j / parts];
                m = a > m ? a : m;
                check += e * R(0);
              }
          }
          bad[b] = check != 0 || check != check;
        }
      },
      16);
  i64 count = 0;
  auto const finite = [](R a) { return a - a == 0; };
  for (i64 b = 0; b < blocks; ++b) {
    if (bad[std::size_t(b)]) {  // once more, with care
      for (i64 j = 0; j < k; ++j) most[std::size_t(b * k + j)] = R(0);
      i64 const last = b + 1 == blocks ? n : (b + 1) * block;
      for (i64 row = b * block; row < last; ++row)
        for (i64 j = 0; j < k; ++j) {
          bool all = true;
          for (i64 p = 0; p < parts; ++p) {
            R const e = v[row * width + j * parts + p], a = e < 0 ? -e : e;
            all = all && finite(a);
            auto& m = most[std::size_t(b * k + j)];
            if (finite(a) && a > m) m = a;
          }
          if (!all && count++ == 0) *first_not_finite = row;
        }
    }
    for (i64 j = 0; j < k; ++j) {
      auto const m = double(most[std::size_t(b * k + j)]);
      largest[j] = m > largest[j] ? m : largest[j];
    }
  }
  return count;
}
#endif

template <class T>
void hashed(Executor& executor, i64 n, i64 k, i64 first_row, std::uint64_t seed, T* x) {
  parallel_ranges(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row)
      for (i64 j = 0; j < k; ++j) {
        std::uint64_t const h = mixed(std::uint64_t(first_row + row) * 2654435761ull + std::uint64_t(j) + (seed << 32));
        x[row * k + j] = hashed_value<T>(h);
      }
  });
}

template <class T>
void copy_where(Executor& executor, i64 n, i64 k, Numbers<T> mask, T const* x, T* y) {
  each_entry<T>(executor, n, k, NoNumbers(), mask.here(), NoNumbers(),
                [=] ASTERISM_KERNEL(i64 i, T, T mj, T) { y[i] = mj == T(0) ? y[i] : x[i]; });
}

template <class S, class T>
void convert(Executor& executor, i64 n, S const* x, T* y) {
  parallel_ranges(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) y[i] = T(x[i]);
  });
}

// b = 0 overwrites, as in axpby
template <class S, class T>
void mixed_aypx(Executor& executor, i64 n, i64 k, Numbers<T> b, S const* ASTERISM_RESTRICT x, T* ASTERISM_RESTRICT y) {
  auto const bn = b.here();
  if (k == 1) {
    parallel_strides(executor, n, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step) {
      T const b0 = coefficient<T>(bn);
      if (b0 == T(0)) {
        for (i64 i = begin; i < end; i += step) y[i] = T(x[i]);
      } else {
#pragma omp simd
        for (i64 i = begin; i < end; i += step) y[i] = T(x[i]) + b0 * y[i];
      }
    });
  } else {
    each_entry<T>(executor, n, k, NoNumbers(), NoNumbers(), bn,
                  [=] ASTERISM_KERNEL(i64 i, T, T, T bj) { y[i] = bj == T(0) ? T(x[i]) : T(x[i]) + bj * y[i]; });
  }
}

template <class S, class T>
void mixed_update_and_norm2(Executor& executor, i64 n, i64 k, Numbers<T> alpha, T const* ASTERISM_RESTRICT p, T const* ASTERISM_RESTRICT qv,
                            T* ASTERISM_RESTRICT x, T* ASTERISM_RESTRICT r, S* ASTERISM_RESTRICT s, Sum* out) {
  auto const a = alpha.here();
  if (k == 1)
    parallel_sum_blocks<1>(executor, n, k, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
      T const a0 = coefficient<T>(a);
      acc[0].re += sum_range(begin, end, step, [=](i64 i) {
        x[i] += a0 * p[i];
        r[i] -= a0 * qv[i];
        s[i] = S(r[i]);
        return square(r[i]);
      });
    });
  else
    parallel_sum_blocks(executor, n, k, out, [=] ASTERISM_KERNEL(i64 begin, i64 end, i64 step, Sum* acc) {
      each_of_columns<T>(begin, end, step, k, NoNumbers(), a, NoNumbers(), [&](i64 i, T, T aj, T) {
        x[i] += aj * p[i];
        r[i] -= aj * qv[i];
        s[i] = S(r[i]);
      });
      dot_columns(begin, end, step, k, k, r, r, acc);
    });
}

#define INSTANTIATE(T)                                                                               \
  template void fill(Executor&, i64, i64, Numbers<T>, T*);                                           \
  template void clear_runs(Executor&, i64, i64, i64 const*, T*);                                     \
  template void scale(Executor&, i64, i64, Numbers<T>, T*);                                          \
  template void axpy(Executor&, i64, i64, Numbers<T>, T const*, T*);                                 \
  template void axpby(Executor&, i64, i64, Numbers<T>, T const*, Numbers<T>, T*);                    \
  template void multiply(Executor&, i64, i64, T const*, T const*, T*);                               \
  template void conjugate(Executor&, i64, T const*, T*);                                             \
  template void multiply_add(Executor&, i64, i64, Numbers<T>, T const*, T const*, T*);               \
  template void dot(Executor&, i64, i64, T const*, T const*, Sum*, i64);                             \
  template void squares(Executor&, i64, i64, T const*, Sum*);                                        \
  template void copy_where(Executor&, i64, i64, Numbers<T>, T const*, T*);                           \
  template void update_and_norm2(Executor&, i64, i64, Numbers<T>, T const*, T const*, T*, T*, Sum*); \
  template void multiply_and_dot(Executor&, i64, i64, T const*, T const*, T*, Sum*);                 \
  template void multi_dot(Executor&, i64, i64, i64, T const*, T const*, Sum*);                       \
  template void multi_axpy(Executor&, i64, i64, i64, T const*, T const*, T*);                        \
  template void chebyshev_step(Executor&, i64, i64, double, double, T const*, T const*, T*, T*);     \
  template void hashed(Executor&, i64, i64, i64, std::uint64_t, T*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE
#if !defined(ASTERISM_ON_GPU)
#define INSTANTIATE(T)                                  \
  template bool are_finite_and_not_zero(i64, T const*); \
  template i64 look_at_entries(Executor&, i64, i64, T const*, double*, i64*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE
#endif
template void convert(Executor&, i64, float const*, double*);
template void convert(Executor&, i64, double const*, float*);
template void convert(Executor&, i64, float const*, float*);
template void convert(Executor&, i64, double const*, double*);
template void convert(Executor&, i64, Complex<float> const*, Complex<double>*);
template void convert(Executor&, i64, Complex<double> const*, Complex<float>*);
template void convert(Executor&, i64, Complex<float> const*, Complex<float>*);
template void convert(Executor&, i64, Complex<double> const*, Complex<double>*);
template void convert(Executor&, i64, float const*, Complex<float>*);
template void convert(Executor&, i64, float const*, Complex<double>*);
template void convert(Executor&, i64, double const*, Complex<double>*);
#define INSTANTIATE(S, T)                                                  \
  template void mixed_aypx(Executor&, i64, i64, Numbers<T>, S const*, T*); \
  template void mixed_update_and_norm2(Executor&, i64, i64, Numbers<T>, T const*, T const*, T*, T*, S*, Sum*);
INSTANTIATE(float, double)
INSTANTIATE(double, float)
INSTANTIATE(Complex<float>, Complex<double>)
INSTANTIATE(Complex<double>, Complex<float>)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
