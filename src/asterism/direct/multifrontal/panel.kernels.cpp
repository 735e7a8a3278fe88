#include "asterism/direct/multifrontal/panel.kernels.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "asterism/base/dtype.hpp"

namespace asterism::direct::kernel {
namespace {

constexpr int columns_at_once = 4;  // of a panel: what they are multiplied with is read once for all of them

/// f<q>() for q below W, one after the other. Not a loop: g++ before 12.3 makes vector loads of loops over columns that read beyond
/// the last one (its bug 107451), which is outside of the matrix.
template <int W, class F>
void each_of(F const& f) {
  [&]<int... Q>(std::integer_sequence<int, Q...>) { (f.template operator()<Q>(), ...); }(std::make_integer_sequence<int, W>());
}

/// y[r, :] += sum_q b[r, q] x[q, :] for W columns.
template <int K, int W, class T>
void add_some_columns(std::int32_t m, std::int64_t leading, T const* __restrict b, T const* __restrict x, T* __restrict y) {
  T by[W * K];
  std::copy_n(x, W * K, by);
  if constexpr (K == 1 && W == columns_at_once) {
    T const *b0 = b, *b1 = b + leading, *b2 = b1 + leading, *b3 = b2 + leading;
    T const x0 = by[0], x1 = by[1], x2 = by[2], x3 = by[3];
#pragma omp simd
    for (std::int32_t r = 0; r < m; ++r) y[r] += b0[r] * x0 + b1[r] * x1 + b2[r] * x2 + b3[r] * x3;
  } else if constexpr (K == 1) {
    for (int q = 0; q < W; ++q) {
      T const* const c = b + q * leading;
      T const v = by[q];
#pragma omp simd
      for (std::int32_t r = 0; r < m; ++r) y[r] += c[r] * v;
    }
  } else {
    for (std::int32_t r = 0; r < m; ++r) {
      T* const to = y + std::int64_t(r) * K;
      each_of<W>([&]<int Q>() {
        T const v = b[Q * leading + r];
        for (int c = 0; c < K; ++c) to[c] += v * by[Q * K + c];
      });
    }
  }
}

/// y[q, :] += sum_r b[r, q] x[r, :] for W columns; of one right-hand side in eight partial sums.
template <int K, int W, class T>
void add_some_dots(std::int32_t m, std::int64_t leading, T const* __restrict b, T const* __restrict x, T* __restrict y) {
  constexpr std::int32_t lanes = K == 1 ? 8 : 1;
  T partial[W][lanes * K] = {};
  std::int32_t r = 0;
  for (; r + lanes <= m; r += lanes)
    each_of<W>([&]<int Q>() {
      T const* const c = b + Q * leading + r;
      T const* const v = x + std::int64_t(r) * K;
      if constexpr (K == 1) {
#pragma omp simd
        for (std::int32_t l = 0; l < lanes; ++l) partial[Q][l] += c[l] * v[l];
      } else {
        for (int l = 0; l < K; ++l) partial[Q][l] += c[0] * v[l];
      }
    });
  for (; r < m; ++r) each_of<W>([&]<int Q>() { partial[Q][0] += b[Q * leading + r] * x[r]; });
  for (int q = 0; q < W; ++q) {
    auto const& p = partial[q];
    if constexpr (K == 1) y[q] += ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
    else
      for (int c = 0; c < K; ++c) y[q * K + c] += p[c];
  }
}

/// f<W>() with W columns: w, at most columns_at_once.
template <class F>
void with_width(std::int32_t w, F const& f) {
  switch (w) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    default: return f.template operator()<columns_at_once>();
  }
}

template <int K, class T>
void add_columns(std::int32_t m, std::int32_t w, std::int64_t leading, T const* b, T const* x, T* y) {
  for (std::int32_t j = 0; j < w; j += columns_at_once)
    with_width(w - j, [&]<int W>() { add_some_columns<K, W>(m, leading, b + j * leading, x + std::int64_t(j) * K, y); });
}

template <int K, class T>
void add_dots(std::int32_t m, std::int32_t w, std::int64_t leading, T const* b, T const* x, T* y) {
  for (std::int32_t j = 0; j < w; j += columns_at_once)
    with_width(w - j, [&]<int W>() { add_some_dots<K, W>(m, leading, b + j * leading, x, y + std::int64_t(j) * K); });
}

/// f<K>(first column) for all columns, as many at a time as there are forms for.
template <class F>
void each_columns(std::int64_t k, F const& f) {
  std::int64_t c = 0;
  for (; c + most_columns <= k; c += most_columns) f.template operator()<most_columns>(c);
  if (c + 4 <= k) f.template operator()<4>(c), c += 4;
  if (c + 2 <= k) f.template operator()<2>(c), c += 2;
  if (c < k) f.template operator()<1>(c);
}

/// Rows of K numbers, from rows of k.
template <int K, class T>
void gather(std::int32_t count, std::int32_t const* rows, std::int64_t k, T const* from, T* to) {
  for (std::int32_t r = 0; r < count; ++r)
    for (int c = 0; c < K; ++c) to[std::int64_t(r) * K + c] = from[rows[r] * k + c];
}

template <int K, class T>
void add_at(std::int32_t count, std::int32_t const* rows, std::int64_t k, T const* from, T* to) {
  for (std::int32_t r = 0; r < count; ++r)
    for (int c = 0; c < K; ++c) to[rows[r] * k + c] += from[std::int64_t(r) * K + c];
}

/// The W x W triangle of a block on the diagonal. `back`: from its last row to its first.
template <int K, int W, class T>
void solve_corner(bool back, bool transposed, bool unit, T const* t, std::int64_t leading, T* x) {
  each_of<W>([&]<int S>() {
    int const i = back ? W - 1 - S : S;
    each_of<S>([&]<int P>() {
      int const j = back ? W - 1 - P : P;
      T const by = transposed ? t[i * leading + j] : t[j * leading + i];
      for (int c = 0; c < K; ++c) x[i * K + c] -= by * x[j * K + c];
    });
    if (unit) return;
    T const by = T(1) / t[i * leading + i];
    for (int c = 0; c < K; ++c) x[i * K + c] *= by;
  });
}

/// Four columns after the other. Each goes into all rows that it meets, of m; or if transposed, takes from them.
template <int K, class T>
void solve_columns(bool upper, bool transposed, bool unit, std::int32_t m, std::int32_t w, T const* t, std::int64_t leading, T* x) {
  bool const back = upper != transposed;
  auto const blocks = (w + columns_at_once - 1) / columns_at_once;
  for (std::int32_t step = 0; step < blocks; ++step) {
    auto const j = (back ? blocks - 1 - step : step) * columns_at_once;
    with_width(w - j, [&]<int W>() {
      T* const own = x + std::int64_t(j) * K;
      auto const from = upper ? 0 : j + W, count = upper ? j : m - j - W;
      T const* const off = t + j * leading + from;
      T* const others = x + std::int64_t(from) * K;
      T part[W * K] = {};
      if (transposed) {
        add_some_dots<K, W>(count, leading, off, others, part);
        for (int i = 0; i < W * K; ++i) own[i] -= part[i];
      }
      solve_corner<K, W>(back, transposed, unit, t + j * leading + j, leading, own);
      if (!transposed) {
        for (int i = 0; i < W * K; ++i) part[i] = T(0) - own[i];
        add_some_columns<K, W>(count, leading, off, part, others);
      }
    });
  }
}

/// With the triangle of a front's pivots, and with what is below or right of it.
template <int K, class T>
void solve_with(FrontPanel<T> const& f, bool of_u, bool transposed, bool unit, std::int64_t k, T* x, T* work) {
  auto const w = f.pivots, below = f.below;
  T *const own = work, *const rest = own + std::int64_t(w) * K;
  for (std::int32_t i = 0; i < w; ++i) std::copy_n(x + (f.first + i) * k, K, own + std::int64_t(i) * K);
  bool const spreads = of_u == transposed;
  if (spreads) std::fill_n(rest, std::int64_t(below) * K, T(0));
  else gather<K>(below, f.list, k, x, rest);
  auto const negate = [&] {
    for (std::int64_t i = 0; i < std::int64_t(w) * K; ++i) own[i] = T(0) - own[i];
  };
  if (of_u && !transposed) {
    negate();
    add_dots<K>(below, w, below, f.right, rest, own);
    negate();
  }
  if (of_u) solve_columns<K>(true, transposed, unit, w, w, f.panel, f.leading, own);
  else solve_columns<K>(false, transposed, unit, w + below, w, f.panel, f.leading, own);
  for (std::int32_t i = 0; i < w; ++i) std::copy_n(own + std::int64_t(i) * K, K, x + (f.first + i) * k);
  if (of_u && transposed) {
    negate();
    add_columns<K>(below, w, below, f.right, own, rest);
  }
  if (spreads) add_at<K>(below, f.list, k, rest, x);
}

/// f<K>(x, y) for all columns; of rows of K numbers, copied where they are longer. y is 0 before.
template <class T, class F>
void each_packed(std::int64_t k, std::int32_t inner, std::int32_t outer, T const* x, T* y, F const& f) {
  std::vector<T> packed;
  each_columns(k, [&]<int K>(std::int64_t c) {
    if (k == K) {
      std::fill_n(y, outer * k, T(0));
      return f.template operator()<K>(x, y);
    }
    packed.assign(std::size_t(inner + outer) * K, T(0));
    T *const from = packed.data(), *const to = from + std::int64_t(inner) * K;
    for (std::int32_t i = 0; i < inner; ++i) std::copy_n(x + i * k + c, K, from + std::int64_t(i) * K);
    f.template operator()<K>(from, to);
    for (std::int32_t i = 0; i < outer; ++i) std::copy_n(to + std::int64_t(i) * K, K, y + i * k + c);
  });
}

}  // namespace

template <class T>
void multiply(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, T const* x, T* y) {
  each_packed(k, w, m, x, y, [&]<int K>(T const* from, T* to) { add_columns<K>(m, w, leading, b, from, to); });
}

template <class T>
void multiply_transposed(std::int32_t m, std::int32_t w, std::int64_t k, T const* b, std::int64_t leading, T const* x, T* y) {
  each_packed(k, m, w, x, y, [&]<int K>(T const* from, T* to) { add_dots<K>(m, w, leading, b, from, to); });
}

template <class T>
void solve_front(FrontPanel<T> const& f, bool of_u, bool transposed, bool unit, std::int64_t k, T* x, T* work) {
  each_columns(k, [&]<int K>(std::int64_t c) { solve_with<K>(f, of_u, transposed, unit, k, x + c, work); });
}

#define ASTERISM_INSTANTIATE(T)                                                                                      \
  template void multiply(std::int32_t, std::int32_t, std::int64_t, T const*, std::int64_t, T const*, T*);            \
  template void multiply_transposed(std::int32_t, std::int32_t, std::int64_t, T const*, std::int64_t, T const*, T*); \
  template void solve_front(FrontPanel<T> const&, bool, bool, bool, std::int64_t, T*, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
