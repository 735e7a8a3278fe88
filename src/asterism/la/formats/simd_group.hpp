// Groups of rows with a SIMD vector of sums, for kernels of the host alone (*.kernels.cpp): it depends on the CPU.
#pragma once
#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

#include "asterism/base/dtype.hpp"
#include "asterism/la/formats/format.kernels.hpp"

namespace asterism::la::kernel {
namespace {  // each file's own, so that the compiler inlines what has one caller

#if defined(__AVX512F__)
constexpr std::size_t register_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t register_bytes = 32;
#else
constexpr std::size_t register_bytes = 16;
#endif

template <class T, std::size_t Bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
};

/// Numbers of 16 bits as ones of 32. g++ 12 takes five instructions for __builtin_convertvector, where the processor has one.
template <std::size_t Bytes>
inline auto widened(void const* p) {
#if defined(__AVX512F__)
  if constexpr (Bytes == 64) return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<__m256i const*>(p)));
#elif defined(__AVX2__)
  if constexpr (Bytes == 32) return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<__m128i const*>(p)));
#elif defined(__SSE4_1__)
  if constexpr (Bytes == 16) return _mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<__m128i const*>(p)));
#else
  using Wide = typename VectorOf<std::uint32_t, Bytes>::type;
  return __builtin_convertvector(*static_cast<typename VectorOf<std::uint16_t, Bytes / 2>::type const*>(p), Wide);
#endif
}

/// Two groups' vectors as one of twice the width.
template <class G>
struct Halves {
  typename G::type low, high;
  friend Halves operator+(Halves a, Halves b) { return {a.low + b.low, a.high + b.high}; }
  friend Halves operator-(Halves a, Halves b) { return {a.low - b.low, a.high - b.high}; }
  friend Halves operator*(Halves a, Halves b) { return {a.low * b.low, a.high * b.high}; }
  template <class T>
  friend Halves operator*(T a, Halves b) {
    return {a * b.low, a * b.high};
  }
  void operator+=(Halves b) { low += b.low, high += b.high; }
};

/// The sums of a group: a vector of 64 bytes, made of registers. Left to itself g++ 12 takes one that is wider than a register through
/// memory, at a seventh of the speed.
template <class T, std::size_t Bytes = 64, bool Fits = (Bytes <= register_bytes)>
struct Group {
  using type = typename VectorOf<T, Bytes>::type;
  static type load(T const* p) { return *reinterpret_cast<type const*>(p); }
  static type load(Bfloat16 const* p) {
    using Wide = typename VectorOf<std::uint32_t, Bytes>::type;
    return type(Wide(widened<Bytes>(p)) << 16);
  }
  static void store(type s, T* p) { *reinterpret_cast<type*>(p) = s; }
};
template <class T, std::size_t Bytes>
struct Group<T, Bytes, false> {
  using Half = Group<T, Bytes / 2>;
  using type = Halves<Half>;
  static constexpr std::size_t half = Bytes / 2 / sizeof(T);
  template <class V>
  static type load(V const* p) {
    return {Half::load(p), Half::load(p + half)};
  }
  static void store(type s, T* p) { Half::store(s.low, p), Half::store(s.high, p + half); }
};

/// finish() for the rows from `row` on.
template <Epilogue E, class T>
inline void finish_group(typename Group<T>::type s, std::int64_t row, T const* x, T* y, T const* b, T const* w) {
  auto const at = [row](T const* v) { return Group<T>::load(v + row); };
  auto const put = [&](typename Group<T>::type v) { Group<T>::store(v, y + row); };
  if constexpr (E == Epilogue::assign) put(s);
  else if constexpr (E == Epilogue::residual) put(at(b) - s);
  else if constexpr (E == Epilogue::smooth) put(at(x) + at(w) * (at(b) - s));
  else if constexpr (E == Epilogue::add) put(at(y) + s);
  else if constexpr (E == Epilogue::subtract) put(at(y) - s);
  else put(at(y) - at(w) * s);
}

/// f(first, last) for shares of rows [0, n) with equal work, which is their entries and themselves; at least `least` of it.
template <class F>
void in_equal_shares(Executor& executor, std::int64_t const* offsets, std::int32_t n, std::int64_t least, F const& f) {
  auto const total = offsets[n] + n;
  device::parallel_ranges(
      executor, total,
      [=](std::int64_t begin, std::int64_t end) {
        auto const row_at = [&](std::int64_t work) {
          std::int32_t lo = 0, hi = n;
          while (lo < hi) {
            auto const mid = lo + (hi - lo) / 2;
            if (offsets[mid] + mid < work) lo = mid + 1;
            else hi = mid;
          }
          return lo;
        };
        f(row_at(begin), end == total ? n : row_at(end));
      },
      least);
}

/// The sums of one row for C columns: a vector, or the number itself.
template <class T, int C>
struct Columns : Group<T, C * sizeof(T)> {};
template <class T>
struct Columns<T, 1> {
  using type = T;
  static T load(T const* p) { return *p; }
  static void store(T s, T* p) { *p = s; }
};

/// f(C, j) for columns [j, j + C) of k: eight at a time, whose sums fit in registers, then four, two and one.
template <class T, class F>
inline void for_columns(std::int64_t k, F const& f) {
  std::int64_t j = 0;
  if constexpr (!is_complex_v<T>) {
    for (; j + 8 <= k; j += 8) f(std::integral_constant<int, 8>(), j);
    for (; j + 4 <= k; j += 4) f(std::integral_constant<int, 4>(), j);
    for (; j + 2 <= k; j += 2) f(std::integral_constant<int, 2>(), j);
  }
  for (; j < k; ++j) f(std::integral_constant<int, 1>(), j);
}

/// finish() for columns [j, j + C) of a row.
template <Epilogue E, int C, class T>
inline void finish_columns(typename Columns<T, C>::type s, std::int64_t row, std::int64_t k, std::int64_t j, T const* x, T* y, T const* b,
                           T const* w) {
  auto const at = row * k + j;
  auto const of = [at](T const* v) { return Columns<T, C>::load(v + at); };
  auto const put = [&](typename Columns<T, C>::type v) { Columns<T, C>::store(v, y + at); };
  if constexpr (E == Epilogue::assign) put(s);
  else if constexpr (E == Epilogue::residual) put(of(b) - s);
  else if constexpr (E == Epilogue::smooth) put(of(x) + w[row] * (of(b) - s));
  else if constexpr (E == Epilogue::add) put(of(y) + s);
  else if constexpr (E == Epilogue::subtract) put(of(y) - s);
  else put(of(y) - w[row] * s);
}

/// One row for k columns: the sum of its n entries value(p) times row source(p) of x, even and odd ones apart, and what the epilogue makes
/// of it.
template <Epilogue E, class T, class Value, class Source>
inline void row_of_columns(std::int64_t n, Value const& value, Source const& source, std::int64_t row, std::int64_t k, T const* x, T* y,
                           T const* b, T const* w) {
  for_columns<T>(k, [&](auto together, std::int64_t j) {
    constexpr int C = decltype(together)::value;
    typename Columns<T, C>::type s0 = {}, s1 = {};
    auto const term = [&](std::int64_t p) { return value(p) * Columns<T, C>::load(x + source(p) * k + j); };
    std::int64_t p = 0;
    for (; p + 1 < n; p += 2) {
      s0 += term(p);
      s1 += term(p + 1);
    }
    if (p < n) s0 += term(p);
    finish_columns<E, C>(s0 + s1, row, k, j, x, y, b, w);
  });
}

}  // namespace
}  // namespace asterism::la::kernel
