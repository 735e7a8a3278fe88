#include "asterism/la/formats/csr/csr_format.hpp"

#include <algorithm>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/csr/cusparse.hpp"
#include "asterism/la/formats/format_argument.hpp"

namespace asterism::la {

using kernel::LengthRun;

namespace {

/// Runs of rows with one length, for the unrolled loops; short ones are joined into "any" (0).
Array length_runs(std::int64_t const* offsets, std::int32_t rows) {
  std::vector<LengthRun> runs;
  for (std::int32_t i = 0; i < rows;) {
    auto const length = std::int32_t(offsets[i + 1] - offsets[i]);
    auto j = i + 1;
    while (j < rows && offsets[j + 1] - offsets[j] == length) ++j;
    bool const unrolled = length >= 1 && length <= 9 && j - i >= 4;
    if (!unrolled && !runs.empty() && runs.back().length == 0) runs.back().end = j;
    else runs.push_back({i, j, unrolled ? length : 0});
    i = j;
  }
  return Array::of(std::span<LengthRun const>(runs));
}

bool any_row_is_empty(Csr const& a) {
  auto const* const ptr = a.offsets.as<std::int64_t>();
  for (std::int32_t i = 0; i < a.rows; ++i)
    if (ptr[i + 1] == ptr[i]) return true;
  return false;
}

}  // namespace

std::vector<std::int32_t> rows_with_entries(Csr const& a) {
  auto const ptr = a.row_offsets();
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < a.rows; ++i)
    if (ptr[std::size_t(i) + 1] > ptr[std::size_t(i)]) ids.push_back(i);
  return ids;
}

CsrArrays::CsrArrays(Csr const& a, Writes writes) : offsets_(a.offsets), columns_(a.columns), values_(a.values), count_(a.rows) {
  if (a.bfloat16) {
    values_ = Array(std::size_t(a.nnz()) * sizeof(Bfloat16));
    std::ranges::transform(a.entries<float>(), values_.as<Bfloat16>(), [](float v) { return Bfloat16(v); });
  }
  if (writes == Writes::rows_with_entries && any_row_is_empty(a)) {
    auto const ptr = a.row_offsets();
    auto const ids = la::rows_with_entries(a);
    std::vector<std::int64_t> offsets{0};
    offsets.reserve(ids.size() + 1);
    for (auto const i : ids) offsets.push_back(ptr[std::size_t(i) + 1]);
    row_ids_ = Array::of(std::span<std::int32_t const>(ids));
    offsets_ = Array::of(std::span<std::int64_t const>(offsets));
    count_ = std::int32_t(ids.size());
  }
  lengths_ = length_runs(offsets_.as<std::int64_t>(), count_);
}

CsrArrays::CsrArrays(Csr const& a, std::span<std::int32_t const> ids, Dtype dtype)
    : row_ids_(Array::of(ids)), count_(std::int32_t(ids.size())) {
  auto const ptr = a.row_offsets();
  std::vector<std::int64_t> offsets{0};
  for (auto const i : ids) offsets.push_back(offsets.back() + ptr[std::size_t(i) + 1] - ptr[std::size_t(i)]);
  offsets_ = Array::of(std::span<std::int64_t const>(offsets));
  columns_ = Array(std::size_t(offsets.back()) * sizeof(std::int32_t));
  auto const* const col = a.columns.as<std::int32_t>();
  auto* const to_col = columns_.as<std::int32_t>();
  auto const copy = [&](auto tag, auto stored) {
    using T = typename decltype(tag)::type;
    using V = typename decltype(stored)::type;
    values_ = Array(std::size_t(offsets.back()) * sizeof(V));
    auto const* const val = a.values.as<T>();
    auto* const to_val = values_.template as<V>();
    for (std::size_t l = 0; l < ids.size(); ++l) {
      auto at = offsets[l];
      for (auto e = ptr[std::size_t(ids[l])]; e < ptr[std::size_t(ids[l]) + 1]; ++e, ++at) to_col[at] = col[e], to_val[at] = V(val[e]);
    }
  };
  if (dtype == a.dtype) with_stored(a.dtype, a.bfloat16, copy);
  else copy(Tag<double>{}, Tag<float>{});  // nothing else is asked for
  lengths_ = length_runs(offsets.data(), count_);
}

CsrArrays CsrArrays::with_values(Array values) const {
  auto out = *this;
  out.values_ = std::move(values);
  return out;
}

CsrFormat::CsrFormat(Csr const& block, Writes writes) : SparseFormat(block), writes_(writes), csr_(block, writes) {}

CsrFormat::CsrFormat(CsrFormat const& pattern, Dtype dtype, Array values)
    : SparseFormat(dtype, pattern.rows_, pattern.cols_, pattern.nnz_),
      writes_(pattern.writes_),
      csr_(pattern.csr_.with_values(std::move(values))) {}

std::shared_ptr<CsrFormat const> CsrFormat::with_values(Dtype dtype, Array values) const {
  return std::shared_ptr<CsrFormat const>(new CsrFormat(*this, dtype, std::move(values)));
}

std::shared_ptr<CusparseProduct> CsrFormat::cusparse() const {
  std::lock_guard const lock(mutex_);
  if (auto const choice = gpu_product(); !cusparse_ || cusparse_->choice != choice)
    cusparse_ = {choice, CusparseProduct::of(dtype_, rows_, cols_, csr_.offsets())};
  return cusparse_->product;
}

void CsrFormat::run(device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                    Array const& w) const {
  ASTERISM_ASSERT(written_by(e) == writes_);
  with_stored(dtype_, bfloat16_, [&](auto tag, auto stored) {
    using T = typename decltype(tag)::type;
    using V = typename decltype(stored)::type;
    if constexpr (std::is_same_v<T, V>)
      if (queue.memory() == device::Memory::gpu && e == Epilogue::assign && k == 1)
        if (auto const vendors = cusparse()) return CusparseProduct::submit<T>(vendors, queue, FormatArgument<CsrFormat, T>{*this}, x, y);
    submit_product<T, V>(kernel::csr_product<T, V>, *this, queue, e, k, x, y, b, w);
  });
}

FormatEntry csr_format() {
  return {"csr", [](Csr const& block, Writes writes, FormatChoice) -> std::shared_ptr<SparseFormat const> {
            return std::make_shared<CsrFormat const>(block, writes);
          }};
}

}  // namespace asterism::la
