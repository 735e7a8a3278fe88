#include "asterism/la/formats/bcsr/bcsr_format.kernels.hpp"

#include <algorithm>
#include <vector>

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

/// Block rows [first, last) for several columns of x.
template <Epilogue E, class T, class V>
void block_rows_columns(BcsrRows<T, V> const& a, i64 first, i64 last, i64 k, T const* x, T* y, T const* b, T const* w) {
  std::vector<std::int32_t> sources;
  for (auto i = first; i < last; ++i) {
    auto const begin = a.offsets[i], end = a.offsets[i + 1];
    if (written_by(E) == Writes::rows_with_entries && begin == end) continue;
    sources.clear();
    for (auto p = begin; p < end; ++p)
      for (std::int32_t q = 0; q < a.width; ++q) sources.push_back(a.columns[p] + q);
    for (i64 r = 0; r < a.height; ++r) {
      auto const* const v = a.values + begin * a.height * a.width + r;
      row_of_columns<E>(
          i64(sources.size()), [=, height = a.height](i64 p) { return T(v[p * height]); },
          [at = sources.data()](i64 p) { return i64(at[p]); }, i * a.height + r, k, x, y, b, w);
    }
  }
}

template <Epilogue E, class T, class V>
void bcsr_with(Executor& executor, BcsrRows<T, V> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  auto const sums_of_rows = sums_of<T, V>(a.height, a.width);
  in_equal_shares(executor, a.offsets, a.block_rows, 16384 / (a.height * a.width), [=](i64 first, i64 last) {
    if (k != 1) return block_rows_columns<E>(a, first, last, k, x, y, b, w);
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
