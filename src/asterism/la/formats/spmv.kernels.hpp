#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "asterism/device/parallel.hpp"
#include "asterism/la/formats/spmv.hpp"

namespace asterism::la::kernel {

using device::Executor;

struct LengthRun {
  std::int32_t first, end, length;
};

/// Rows [first, end) whose columns are row + offset for the same `length` offsets.
struct PatternRun {
  std::int32_t first, end, length;
  std::int32_t uniform;  ///< whether the rows have the same values too, which are there once then
  std::int64_t offset_at, value_at;
};

/// Rows in one SIMD group of the row_pattern storage.
template <class T>
inline constexpr std::int32_t group_rows = std::int32_t(64 / sizeof(T));

template <class T>
struct CsrRows {
  std::int64_t const* offsets;
  std::int32_t const* columns;
  T const* values;
  std::int32_t const* row_ids;  // nullptr: i
  LengthRun const* runs;
  std::int32_t run_count;
  std::int32_t row_count;
  std::int64_t entries;
};

/// Groups of group_rows<T> rows with `length` entries each, the entries of a group by place in the row: SELL-C-sigma
/// (Kreutzer et al. 2014) without padding.
struct SliceRun {
  std::int32_t first;  ///< in the list of rows
  std::int32_t groups, length;
  std::int32_t consecutive;  ///< whether the rows of each group follow each other
  std::int32_t base;         ///< columns are stored in 16 bits from here on; wide: in 32 bits from 0 on
  std::int64_t entry_at;
  std::int64_t column_at;  ///< byte of its first column

  static constexpr std::int32_t wide = -1;
};
/// Columns are read this far ahead where x is scattered (all runs are wide then); so many more than the entries are there.
inline constexpr std::int32_t ahead = 64;

template <class T>
struct SellRows {
  SliceRun const* runs;
  std::int32_t run_count;
  std::int32_t const* row_ids;
  std::byte const* columns;
  T const* values;
  bool scattered;
  std::int32_t row_count;
  std::int32_t const* run_at;  ///< on a GPU: the run of every tile_rows-th place in row_ids
};

template <class T>
struct PatternRows {
  PatternRun const* runs;
  std::int32_t run_count;
  std::int32_t const* offsets;
  T const* values;
  std::int32_t row_count;      ///< of the whole block: rows that are in no run are left out
  std::int32_t const* run_at;  ///< on a GPU: the first run that ends after every tile_rows-th row
};
inline constexpr std::int32_t tile_rows = 32;

/// What a Product holds: each row is in one of three.
template <class T>
struct ProductRows {
  PatternRows<T> pattern;
  SellRows<T> sell;
  CsrRows<T> csr;
};

template <class T>
void product(Executor&, ProductRows<T> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);

/// f(e), with e known to the compiler.
template <class F>
void with_epilogue(Epilogue e, F const& f) {
  switch (e) {
    case Epilogue::assign: return f(std::integral_constant<Epilogue, Epilogue::assign>());
    case Epilogue::residual: return f(std::integral_constant<Epilogue, Epilogue::residual>());
    case Epilogue::smooth: return f(std::integral_constant<Epilogue, Epilogue::smooth>());
    case Epilogue::add: return f(std::integral_constant<Epilogue, Epilogue::add>());
    case Epilogue::subtract: return f(std::integral_constant<Epilogue, Epilogue::subtract>());
    default: return f(std::integral_constant<Epilogue, Epilogue::subtract_scaled>());
  }
}

/// Column j of k of one row, whose sum is s.
template <Epilogue E, class T>
ASTERISM_FN void finish(T s, std::int64_t row, std::int64_t k, std::int64_t j, T const* x, T* y, T const* b, T const* w) {
  std::int64_t const at = row * k + j;
  if constexpr (E == Epilogue::assign) y[at] = s;
  else if constexpr (E == Epilogue::residual) y[at] = b[at] - s;
  else if constexpr (E == Epilogue::smooth) y[at] = x[at] + w[row] * (b[at] - s);
  else if constexpr (E == Epilogue::add) y[at] += s;
  else if constexpr (E == Epilogue::subtract) y[at] -= s;
  else y[at] -= w[row] * s;
}

}  // namespace asterism::la::kernel
