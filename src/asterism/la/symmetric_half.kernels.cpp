#include "asterism/la/symmetric_half.kernels.hpp"

#include <algorithm>
#include <vector>

#include "asterism/base/dtype.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;

template <bool Conjugates, class T>
T mirrored(T v) {
  if constexpr (Conjugates) return conj(v);
  else return v;
}

/// X and Y: x and the sums of the block's rows and then of its halo.
template <bool Conjugates, class I, class T>
void one_column(HalfRows<T> const& a, HalfBlock const& block, I const* columns, T const* ASTERISM_RESTRICT X, T* ASTERISM_RESTRICT Y) {
  auto const* const values = a.values + block.entry_at;
  auto const* const ends = a.ends + block.first;
  auto const* const diagonal = a.diagonal + block.first;
  std::uint32_t p = 0;
  for (std::int32_t i = 0; i < block.rows; ++i) {
    T const xi = X[i];
    T s0 = diagonal[i] * xi, s1(0);
    auto const end = ends[i];
    for (; p + 1 < end; p += 2) {  // two sums, so that adds need not wait for each other
      auto const c0 = columns[p], c1 = columns[p + 1];
      T const v0 = values[p], v1 = values[p + 1];
      s0 += v0 * X[c0];
      s1 += v1 * X[c1];
      Y[c0] += mirrored<Conjugates>(v0) * xi;
      Y[c1] += mirrored<Conjugates>(v1) * xi;
    }
    if (p < end) {
      auto const c = columns[p];
      T const v = values[p++];
      s0 += v * X[c];
      Y[c] += mirrored<Conjugates>(v) * xi;
    }
    Y[i] += s0 + s1;
  }
}

template <bool Conjugates, class I, class T>
void many_columns(HalfRows<T> const& a, HalfBlock const& block, I const* columns, i64 k, T const* ASTERISM_RESTRICT X,
                  T* ASTERISM_RESTRICT Y) {
  auto const* const values = a.values + block.entry_at;
  auto const* const ends = a.ends + block.first;
  std::uint32_t p = 0;
  for (std::int32_t i = 0; i < block.rows; ++i) {
    auto const* const xi = X + i * k;
    auto* const yi = Y + i * k;
    T const d = a.diagonal[block.first + i];
    for (i64 j = 0; j < k; ++j) yi[j] += d * xi[j];
    for (auto const end = ends[i]; p < end; ++p) {
      T const v = values[p], m = mirrored<Conjugates>(v);
      auto const* const xc = X + i64(columns[p]) * k;
      auto* const yc = Y + i64(columns[p]) * k;
#pragma omp simd
      for (i64 j = 0; j < k; ++j) {
        yi[j] += v * xc[j];
        yc[j] += m * xi[j];
      }
    }
  }
}

template <bool Conjugates, class T>
void block_sums(HalfRows<T> const& a, HalfBlock const& block, i64 k, T const* X, T* Y) {
  auto const with = [&](auto const* columns) {
    if (k == 1) one_column<Conjugates>(a, block, columns, X, Y);
    else many_columns<Conjugates>(a, block, columns, k, X, Y);
  };
  auto const* const columns = a.columns + block.column_at;
  if (block.wide) with(reinterpret_cast<std::uint32_t const*>(columns));
  else with(reinterpret_cast<std::uint16_t const*>(columns));
}

}  // namespace

template <class T>
void half_sums(Queue& q, HalfRows<T> a, i64 k, T const* x, T* sums, T* spilled) {
  device::parallel_ranges(
      q, a.block_count,
      [=](i64 begin, i64 end) {
        static thread_local std::vector<T> own_x, own_y;  // in the second cache
        for (i64 n = begin; n < end; ++n) {
          auto const& block = a.blocks[n];
          auto const mine = std::size_t(block.rows * k), all = mine + std::size_t(block.halo * k);
          if (own_x.size() < all) own_x.resize(all), own_y.resize(all);
          auto *const X = own_x.data(), *const Y = own_y.data();
          std::copy_n(x + block.first * k, mine, X);
          for (i64 h = 0; h < block.halo; ++h)
            for (i64 j = 0; j < k; ++j) X[mine + std::size_t(h * k + j)] = x[i64(a.halo[block.halo_at + h]) * k + j];
          std::fill_n(Y, all, T(0));
          if (a.conjugates) block_sums<true>(a, block, k, X, Y);
          else block_sums<false>(a, block, k, X, Y);
          std::copy_n(Y, mine, sums + block.first * k);
          std::copy_n(Y + mine, all - mine, spilled + block.halo_at * k);
        }
      },
      1);
}

template <class T>
void half_finish(Queue& q, HalfRows<T> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w, T* sums, T const* spilled) {
  with_epilogue(e, [&](auto known) {
    constexpr auto E = decltype(known)::value;
    device::parallel_ranges(
        q, a.block_count,
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

#define INSTANTIATE(T)                                                 \
  template void half_sums(Queue&, HalfRows<T>, i64, T const*, T*, T*); \
  template void half_finish(Queue&, HalfRows<T>, Epilogue, i64, T const*, T*, T const*, T const*, T*, T const*);
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
