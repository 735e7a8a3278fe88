#include "asterism/direct/distributed/block_column.kernels.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"

namespace asterism::direct::kernel {
namespace {

constexpr std::int64_t slice = 192;  // rows or columns of a product, by one thread

/// f(first, count) for slices, which are the same for any number of threads.
template <class F>
void each_slice(std::int64_t all, double flops, F const& f) {
  auto const slices = (all + slice - 1) / slice;
  device::Executor executor;
  device::parallel_ranges(
      executor, slices,
      [&](std::int64_t begin, std::int64_t end) {
        for (auto s = begin; s < end; ++s) f(s * slice, std::min(slice, all - s * slice));
      },
      flops < 1e6 ? slices : 1);
}

bool is_run(std::int32_t const* at, std::int64_t n) {
  for (std::int64_t i = 1; i < n; ++i)
    if (at[i] != at[0] + i) return false;
  return true;
}

}  // namespace

template <class T>
Eliminated factor_diagonal(FactorKind kind, FactoredBlock<T> const& block, Pivoting const& pivoting) {
  auto const w = block.width;
  std::iota(block.order, block.order + w, 0);
  std::vector<std::int32_t> columns(block.order, block.order + w);
  Front<T> const front{w, w, block.values, block.values, block.values, block.order, columns.data(), true};
  switch (kind) {
    case FactorKind::cholesky: return factor_cholesky(front);
    case FactorKind::hermitian: return factor_hermitian(front, pivoting, block.pivots, block.pivots + w);
    default: return factor_lu(front, pivoting);
  }
}

template <class T>
double solve_panel(FactorKind kind, std::int64_t m, FactoredBlock<T const, std::int32_t const> const& block, T* lower, T* upper) {
  if (m == 0) return 0;
  auto const w = block.width;
  auto const* const d = block.values;
  auto const flops = double(m) * w * w;
  auto const ld = int(m);
  each_slice(m, flops, [&](std::int64_t first, std::int64_t count) {
    int const n = int(count);
    if (kind == FactorKind::cholesky) return lapack::trsm('R', 'L', 'C', 'N', n, w, d, w, lower + first, ld);
    T* const exchanged_part = (kind == FactorKind::lu ? upper : lower) + first;
    std::vector<T> exchanged(std::size_t(count) * std::size_t(w));
    for (std::int32_t j = 0; j < w; ++j) std::copy_n(exchanged_part + block.order[j] * m, count, exchanged.data() + j * count);
    if (kind == FactorKind::lu) {
      lapack::trsm('R', 'U', 'N', 'N', n, w, d, w, lower + first, ld);
      lapack::trsm('R', 'L', 'T', 'U', n, w, d, w, exchanged.data(), n);
    } else {
      lapack::trsm('R', 'L', 'C', 'U', n, w, d, w, exchanged.data(), n);
      divide_columns(BlockDiagonal<T>{w, block.pivots, block.pivots + w}, count, exchanged.data(), count);
    }
    for (std::int32_t j = 0; j < w; ++j) std::copy_n(exchanged.data() + j * count, count, exchanged_part + j * m);
  });
  if (kind != FactorKind::lu) return 0;
  real_t<T> largest = 0;
  for (std::int64_t i = 0; i < m * w; ++i) largest = std::max(largest, magnitude(upper[i]));
  return double(largest);
}

template <class T>
void subtract_at(Product<T> const& p) {
  if (p.m == 0 || p.n == 0) return;
  char const trans = p.conjugated ? 'C' : 'T';
  bool const straight = is_run(p.rows, p.m) && is_run(p.columns, p.n);
  auto const part = [&](std::int64_t i, std::int64_t m, std::int64_t j, std::int64_t n) {
    auto const *a = p.A + i, *b = p.B + j;
    if (straight)
      return lapack::subtract_product(trans, int(m), int(n), int(p.k), a, int(p.lda), b, int(p.ldb),
                                      p.C + (p.columns[0] + j) * p.ldc + p.rows[0] + i, int(p.ldc));
    std::vector<T> work(std::size_t(m * n), T(0));
    lapack::subtract_product(trans, int(m), int(n), int(p.k), a, int(p.lda), b, int(p.ldb), work.data(), int(m));
    add_block(m, n, work.data(), m, p.rows + i, p.columns + j, p.C, p.ldc);
  };
  each_slice(p.m, 2.0 * double(p.m) * double(p.n) * double(p.k),
             [&](std::int64_t first, std::int64_t count) { part(first, count, 0, p.n); });
}

template <class T>
void add_block(std::int64_t m, std::int64_t n, T const* from, std::int64_t from_next, std::int32_t const* rows, std::int32_t const* columns,
               T* to, std::int64_t to_next) {
  for (std::int64_t j = 0; j < n; ++j) {
    T* const column = to + columns[j] * to_next;
    T const* const values = from + j * from_next;
    for (std::int64_t i = 0; i < m; ++i) column[rows[i]] += values[i];
  }
}

template <class T>
void add_transposed_block(std::int64_t m, std::int64_t n, T const* from, std::int64_t from_next, std::int32_t const* rows,
                          std::int32_t const* columns, T* to, std::int64_t to_next) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t i0 = 0; i0 < m; i0 += tile) {
    auto const i1 = std::min(m, i0 + tile);
    for (std::int64_t j0 = 0; j0 < n; j0 += tile) {
      auto const j1 = std::min(n, j0 + tile);
      for (auto i = i0; i < i1; ++i)
        for (auto j = j0; j < j1; ++j) to[columns[j] * to_next + rows[i]] += from[i * from_next + j];
    }
  }
}

template <class T>
void transpose_upper(std::int32_t w, T const* packed, T* to) {
  for (std::int64_t j = 0; j < w; ++j)
    for (std::int64_t i = 0; i <= j; ++i) to[i * w + j] = packed[j * w + i];
}

#define ASTERISM_INSTANTIATE(T)                                                                                                            \
  template Eliminated factor_diagonal(FactorKind, FactoredBlock<T> const&, Pivoting const&);                                               \
  template double solve_panel(FactorKind, std::int64_t, FactoredBlock<T const, std::int32_t const> const&, T*, T*);                        \
  template void subtract_at(Product<T> const&);                                                                                            \
  template void add_block(std::int64_t, std::int64_t, T const*, std::int64_t, std::int32_t const*, std::int32_t const*, T*, std::int64_t); \
  template void add_transposed_block(std::int64_t, std::int64_t, T const*, std::int64_t, std::int32_t const*, std::int32_t const*, T*,     \
                                     std::int64_t);                                                                                        \
  template void transpose_upper(std::int32_t, T const*, T*);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
