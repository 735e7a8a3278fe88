#include "asterism/la/formats/symmetric_half/symmetric_half.kernels.hpp"

#include <algorithm>

#include "asterism/base/dtype.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;

template <bool Conjugates, class T>
T mirrored(T v) {
  if constexpr (Conjugates) return conj(v);
  else return v;
}

/// Of one block: its rows of x, all of x at its halo, and where its sums go.
template <class T>
struct BlockView {
  T const* x;
  T const* all_x;
  std::int32_t const* halo;
  T* sums;
  T* spilled;
};

// In a row the columns of the block come first, then those of the halo.
template <bool Conjugates, class I, class T>
void one_column(HalfRows<T> const& a, HalfBlock const& block, I const* columns, BlockView<T> const& o) {
  auto const* const values = a.values + block.entry_at;
  auto const* const ends = a.ends + block.first;
  auto const* const diagonal = a.diagonal + block.first;
  auto const rows = I(block.rows - 1);  // the last of them: their number may not fit
  T const* ASTERISM_RESTRICT x = o.x;
  T* ASTERISM_RESTRICT sums = o.sums;
  std::uint32_t p = 0;
  for (std::int32_t i = 0; i < block.rows; ++i) {
    T const xi = x[i];
    T s0 = diagonal[i] * xi, s1(0);
    auto const end = ends[i];
    for (; p + 1 < end && columns[p + 1] <= rows; p += 2) {  // two sums, so that adds need not wait for each other
      auto const c0 = columns[p], c1 = columns[p + 1];
      T const v0 = values[p], v1 = values[p + 1];
      s0 += v0 * x[c0];
      s1 += v1 * x[c1];
      sums[c0] += mirrored<Conjugates>(v0) * xi;
      sums[c1] += mirrored<Conjugates>(v1) * xi;
    }
    for (; p < end; ++p) {
      auto const c = columns[p];
      T const v = values[p];
      if (c <= rows) {
        s0 += v * x[c];
        sums[c] += mirrored<Conjugates>(v) * xi;
      } else {
        auto const h = std::int32_t(c) - block.rows;
        s0 += v * o.all_x[o.halo[h]];
        o.spilled[h] += mirrored<Conjugates>(v) * xi;
      }
    }
    sums[i] += s0 + s1;
  }
}

template <bool Conjugates, class I, class T>
void many_columns(HalfRows<T> const& a, HalfBlock const& block, I const* columns, i64 k, BlockView<T> const& o) {
  auto const* const values = a.values + block.entry_at;
  auto const* const ends = a.ends + block.first;
  std::uint32_t p = 0;
  for (std::int32_t i = 0; i < block.rows; ++i) {
    auto const* const xi = o.x + i * k;
    auto* const yi = o.sums + i * k;
    T const d = a.diagonal[block.first + i];
    for (i64 j = 0; j < k; ++j) yi[j] += d * xi[j];
    for (auto const end = ends[i]; p < end; ++p) {
      T const v = values[p], m = mirrored<Conjugates>(v);
      auto const c = std::int32_t(columns[p]), h = c - block.rows;
      auto const* const xc = h < 0 ? o.x + c * k : o.all_x + o.halo[h] * k;
      auto* const yc = h < 0 ? o.sums + c * k : o.spilled + h * k;
#pragma omp simd
      for (i64 j = 0; j < k; ++j) {
        yi[j] += v * xc[j];
        yc[j] += m * xi[j];
      }
    }
  }
}

template <bool Conjugates, class T>
void block_sums(HalfRows<T> const& a, HalfBlock const& block, i64 k, BlockView<T> const& o) {
  auto const with = [&](auto const* columns) {
    if (k == 1) one_column<Conjugates>(a, block, columns, o);
    else many_columns<Conjugates>(a, block, columns, k, o);
  };
  auto const* const columns = a.columns + block.column_at;
  if (block.wide) with(reinterpret_cast<std::uint32_t const*>(columns));
  else with(reinterpret_cast<std::uint16_t const*>(columns));
}

}  // namespace

template <class T>
void half_sums(Executor& executor, HalfRows<T> a, i64 k, T const* x, T* sums, T* spilled) {
  device::parallel_ranges(
      executor, a.block_count,
      [=](i64 begin, i64 end) {
        for (i64 n = begin; n < end; ++n) {
          auto const& block = a.blocks[n];
          BlockView<T> const o{x + block.first * k, x, a.halo + block.halo_at, sums + block.first * k, spilled + block.halo_at * k};
          std::fill_n(o.sums, block.rows * k, T(0));
          std::fill_n(o.spilled, block.halo * k, T(0));
          if (a.conjugates) block_sums<true>(a, block, k, o);
          else block_sums<false>(a, block, k, o);
        }
      },
      1);
}

template <class T>
void half_finish(Executor& executor, HalfRows<T> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w, T* sums,
                 T const* spilled) {
  with_epilogue(e, [&](auto known) {
    constexpr auto E = decltype(known)::value;
    device::parallel_ranges(
        executor, a.block_count,
        [=](i64 begin, i64 end) {
          for (i64 n = begin; n < end; ++n) {
            auto const& block = a.blocks[n];
            for (i64 r = block.received_at; r < block.received_end; ++r) {
              auto const& from = a.received[r];
              for (i64 j = 0; j < k; ++j) sums[i64(from.row) * k + j] += spilled[i64(from.halo) * k + j];
            }
            if constexpr (E != Epilogue::assign)
              for (i64 i = block.first; i < block.first + block.rows; ++i)
                for (i64 j = 0; j < k; ++j) finish<E>(sums[i * k + j], i, k, j, x, y, b, w);
          }
        },
        1);
  });
}

#define INSTANTIATE(T)                                                    \
  template void half_sums(Executor&, HalfRows<T>, i64, T const*, T*, T*); \
  template void half_finish(Executor&, HalfRows<T>, Epilogue, i64, T const*, T*, T const*, T const*, T*, T const*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
