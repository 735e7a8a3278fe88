#pragma once
#include "asterism/la/formats/format.kernels.hpp"

namespace asterism::la::kernel {

/// Rows of equal length; 0: of any.
struct LengthRun {
  std::int32_t first, end, length;
};

/// Values are held as V.
template <class T, class V = T>
struct CsrRows {
  std::int64_t const* offsets;
  std::int32_t const* columns;
  V const* values;
  std::int32_t const* row_ids;  // nullptr: i
  LengthRun const* runs;
  std::int32_t run_count;
  std::int32_t row_count;
  std::int64_t entries;
};

/// Also the last step of formats that leave some rows in csr.
template <class T, class V>
void csr_product(Executor&, CsrRows<T, V> a, Epilogue e, std::int64_t k, T const* x, T* y, T const* b, T const* w);

/// Rows [first, last) by the thread that calls. On the host.
template <class T, class V>
void csr_rows(CsrRows<T, V> const& a, Epilogue e, std::int32_t first, std::int32_t last, std::int64_t k, T const* x, T* y, T const* b,
              T const* w);

}  // namespace asterism::la::kernel
