#include "asterism/la/formats/csr.hpp"

#include <algorithm>

#include "asterism/base/bfloat16.hpp"
#include "asterism/base/error.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::la {

Csr::Csr(Dtype d, std::int32_t r, std::int32_t c, std::int64_t nnz)
    : dtype(d),
      rows(r),
      cols(c),
      offsets((std::size_t(r) + 1) * sizeof(std::int64_t)),
      columns(std::size_t(nnz) * sizeof(std::int32_t)),
      values(std::size_t(checked_product(nnz, std::int64_t(size_of(d)), "matrix values"))) {
  std::fill_n(offsets.as<std::int64_t>(), r, std::int64_t(0));
  offsets.as<std::int64_t>()[r] = nnz;
}

Csr transpose(Csr const& a, bool conjugate) {
  Csr t(a.dtype, a.cols, a.rows, a.nnz());
  t.bfloat16 = a.bfloat16;
  auto const ap = a.row_offsets();
  auto const ac = a.column_indices();
  auto const tp = t.row_offsets();
  auto const tc = t.column_indices();
  std::fill(tp.begin(), tp.end(), std::int64_t(0));
  for (auto const c : ac) ++tp[std::size_t(c) + 1];
  for (std::int32_t r = 0; r < t.rows; ++r) tp[std::size_t(r) + 1] += tp[std::size_t(r)];
  std::vector<std::int64_t> next(tp.begin(), tp.end() - 1);
  with_dtype(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const av = a.entries<T>();
    auto const tv = t.entries<T>();
    for (std::int32_t r = 0; r < a.rows; ++r)
      for (auto p = ap[std::size_t(r)]; p < ap[std::size_t(r) + 1]; ++p) {
        auto const at = std::size_t(next[std::size_t(ac[std::size_t(p)])]++);
        tc[at] = r;
        tv[at] = conjugate ? conj(av[std::size_t(p)]) : av[std::size_t(p)];
      }
  });
  return t;
}

Csr converted(Csr const& a, Dtype dtype) {
  if (dtype == a.dtype) return a;
  ASTERISM_REQUIRE(is_complex(dtype) || !is_complex(a.dtype), dtype, "a {} matrix does not convert to {}.", name_of(a.dtype),
                   name_of(dtype));
  Csr out = a;
  out.dtype = dtype;
  out.bfloat16 = false;
  out.values = Array(std::size_t(a.nnz()) * size_of(dtype));
  with_dtype(a.dtype, [&](auto s) {
    with_dtype(dtype, [&](auto t) {
      using S = typename decltype(s)::type;
      using T = typename decltype(t)::type;
      if constexpr (is_complex_v<T> || !is_complex_v<S>) {
        auto const from = a.entries<S>();
        auto* to = out.values.template as<T>();
        device::Executor executor;
        device::parallel_for(executor, std::int64_t(from.size()), [to, from = from.data()](std::int64_t i) {
          if constexpr (is_complex_v<T> == is_complex_v<S>) to[i] = T(from[i]);
          else to[i] = T(real_t<T>(from[i]));
        });
      }
    });
  });
  return out;
}

Csr rounded_to_bfloat16(Csr const& a) {
  ASTERISM_ASSERT(a.dtype == Dtype::float32);
  Csr out = a;
  out.bfloat16 = true;
  out.values = Array(std::size_t(a.nnz()) * sizeof(float));
  auto const from = a.entries<float>();
  for (std::size_t i = 0; i < from.size(); ++i) out.values.as<float>()[i] = Bfloat16(from[i]);
  return out;
}

}  // namespace asterism::la
