#include "asterism/la/formats/bcsr/bcsr_format.kernels.hpp"

#include <algorithm>

#include "asterism/base/dtype.hpp"
#include "asterism/la/formats/simd_group.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;

constexpr int most_height = 6, kept_block_rows = 8;

/// The sums of one block row. Vectors have the rows of a block, and what stands behind them: nobody reads those lanes. Each column of
/// one or two blocks has sums of its own, so that an add waits for none.
template <int H, int W, class T, class V>
inline void block_row_sums(i64 blocks, std::int32_t const* ASTERISM_RESTRICT columns, V const* ASTERISM_RESTRICT v,
                           T const* ASTERISM_RESTRICT x, T* sums) {
  if constexpr (is_complex_v<T> || !std::is_same_v<T, V>) {
    T s[H] = {};
    for (i64 p = 0; p < blocks; ++p)
#pragma GCC unroll 8
      for (int q = 0; q < W; ++q, v += H)
#pragma GCC unroll 8
        for (int r = 0; r < H; ++r) s[r] += T(v[r]) * x[columns[p] + q];
    std::copy_n(s, H, sums);
  } else {
    constexpr std::size_t lanes = std::max<std::size_t>(H <= 2 ? 2 : H <= 4 ? 4 : 8, 16 / sizeof(T));
    constexpr int together = W < 4 ? 2 : 1;
    using G = Group<T, lanes * sizeof(T)>;
    typename G::type s[together * W] = {};
    i64 p = 0;
    for (; p + together <= blocks; p += together)
#pragma GCC unroll 2
      for (int t = 0; t < together; ++t)
#pragma GCC unroll 8
        for (int q = 0; q < W; ++q, v += H) s[t * W + q] += x[columns[p + t] + q] * G::load(v);
    for (; p < blocks; ++p)
#pragma GCC unroll 8
      for (int q = 0; q < W; ++q, v += H) s[q] += x[columns[p] + q] * G::load(v);
#pragma GCC unroll 16
    for (int q = 1; q < together * W; ++q) s[0] += s[q];
    G::store(s[0], sums);
  }
}

/// Of block rows [first, last).
template <int H, int W, class T, class V>
void sums_of_blocks(BcsrRows<T, V> const& a, i64 first, i64 last, T const* x, T* sums) {
  for (auto i = first; i < last; ++i, sums += H) {
    auto const begin = a.offsets[i];
    block_row_sums<H, W>(a.offsets[i + 1] - begin, a.columns + begin, a.values + begin * (H * W), x, sums);
  }
}
template <int H, class T, class V>
auto sums_of_width(std::int32_t width) {
  switch (width) {
    case 2: return &sums_of_blocks<H, 2, T, V>;
    case 3: return &sums_of_blocks<H, 3, T, V>;
    case 4: return &sums_of_blocks<H, 4, T, V>;
    default: return &sums_of_blocks<H, 6, T, V>;
  }
}
template <class T, class V>
auto sums_of(std::int32_t height, std::int32_t width) {
  switch (height) {
    case 2: return sums_of_width<2, T, V>(width);
    case 3: return sums_of_width<3, T, V>(width);
    case 4: return sums_of_width<4, T, V>(width);
    default: return sums_of_width<6, T, V>(width);
  }
}

/// The sums of one block row for C columns of x, from x on. Two blocks have sums of their own where registers allow, so that fewer adds
/// wait.
template <int H, int C, class T, class V>
inline void block_row_columns(i64 blocks, std::int32_t width, std::int32_t const* ASTERISM_RESTRICT columns, V const* ASTERISM_RESTRICT v,
                              i64 k, T const* ASTERISM_RESTRICT x, typename Columns<T, C>::type* sums) {
  constexpr int together = H < 4 ? 2 : 1;
  typename Columns<T, C>::type s[together * H] = {};
  auto const add = [&](i64 p, int t) {
    auto const* from = x + columns[p] * k;
    for (std::int32_t q = 0; q < width; ++q, v += H, from += k) {
      auto const xq = Columns<T, C>::load(from);
#pragma GCC unroll 8
      for (int r = 0; r < H; ++r) s[t * H + r] += T(v[r]) * xq;
    }
  };
  i64 p = 0;
  for (; p + together <= blocks; p += together)
#pragma GCC unroll 2
    for (int t = 0; t < together; ++t) add(p + t, t);
  for (; p < blocks; ++p) add(p, 0);
#pragma GCC unroll 8
  for (int r = 0; r < H; ++r)
    if constexpr (together == 2) sums[r] = s[r] + s[H + r];
    else sums[r] = s[r];
}

/// Block rows [first, last) for k columns of x.
template <Epilogue E, int H, class T, class V>
void block_rows_columns(BcsrRows<T, V> const& a, i64 first, i64 last, i64 k, T const* x, T* y, T const* b, T const* w) {
  for (auto i = first; i < last; ++i) {
    auto const begin = a.offsets[i], blocks = a.offsets[i + 1] - begin;
    if (written_by(E) == Writes::rows_with_entries && blocks == 0) continue;
    for_columns<T>(k, [&](auto together, i64 j) {
      constexpr int C = decltype(together)::value;
      typename Columns<T, C>::type sums[H];
      block_row_columns<H, C>(blocks, a.width, a.columns + begin, a.values + begin * (H * a.width), k, x + j, sums);
#pragma GCC unroll 8
      for (int r = 0; r < H; ++r) finish_columns<E, C>(sums[r], i * H + r, k, j, x, y, b, w);
    });
  }
}
template <Epilogue E, class T, class V>
auto block_rows_columns_of(std::int32_t height) {
  switch (height) {
    case 2: return &block_rows_columns<E, 2, T, V>;
    case 3: return &block_rows_columns<E, 3, T, V>;
    case 4: return &block_rows_columns<E, 4, T, V>;
    default: return &block_rows_columns<E, 6, T, V>;
  }
}

template <Epilogue E, class T, class V>
void bcsr_with(Executor& executor, BcsrRows<T, V> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  auto const sums_of_rows = sums_of<T, V>(a.height, a.width);
  in_equal_shares(executor, a.offsets, a.block_rows, 16384 / (a.height * a.width), [=](i64 first, i64 last) {
    if (k != 1) return block_rows_columns_of<E, T, V>(a.height)(a, first, last, k, x, y, b, w);
    T sums[kept_block_rows * most_height + read_beyond];
    for (auto i = first; i < last; i += kept_block_rows) {
      auto const stop = std::min(last, i + kept_block_rows);
      sums_of_rows(a, i, stop, x, sums);
      T const* s = sums;
      for (auto l = i; l < stop; ++l, s += a.height) {
        if (written_by(E) == Writes::rows_with_entries && a.offsets[l] == a.offsets[l + 1]) continue;
        for (std::int32_t r = 0; r < a.height; ++r) finish<E>(s[r], l * a.height + r, 1, 0, x, y, b, w);
      }
    }
  });
}

}  // namespace

template <class T, class V>
void bcsr_product(Executor& executor, BcsrRows<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  with_epilogue(e, [&](auto known) { bcsr_with<decltype(known)::value>(executor, a, k, x, y, b, w); });
}

#define INSTANTIATE(T, V) template void bcsr_product(Executor&, BcsrRows<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_STORED(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
