#include "asterism/la/formats/bcsr/bcsr_format.hpp"

#include <algorithm>
#include <cstring>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/column_groups.hpp"

namespace asterism::la {

namespace {

/// Whether each row has the columns of the first one of its block.
bool rows_are_alike(Csr const& a, std::int32_t height) {
  if (a.rows % height != 0) return false;
  auto const* const ptr = a.offsets.as<std::int64_t>();
  auto const* const col = a.columns.as<std::int32_t>();
  for (std::int32_t first = 0; first < a.rows; first += height) {
    auto const length = ptr[first + 1] - ptr[first];
    for (auto i = first + 1; i < first + height; ++i)
      if (ptr[i + 1] - ptr[i] != length || !std::equal(col + ptr[i], col + ptr[i] + length, col + ptr[first])) return false;
  }
  return true;
}

}  // namespace

BlockShape BlockShape::of(Csr const& a) {
  BlockShape const none{1, 1};
  if (a.nnz() == 0) return none;
  auto const* const height = std::ranges::find_if(kernel::block_sizes, [&](std::int32_t h) { return rows_are_alike(a, h); });
  if (height == std::end(kernel::block_sizes)) return none;
  auto const group = group_width(a.offsets.as<std::int64_t>(), a.columns.as<std::int32_t>(), a.rows, *height);
  auto const* const width = std::ranges::find_if(kernel::block_sizes, [&](std::int32_t w) { return group % w == 0; });
  return width == std::end(kernel::block_sizes) ? none : BlockShape{*height, *width};
}

BcsrFormat::BcsrFormat(Csr const& a, BlockShape shape, Writes writes) : SparseFormat(a), shape_(shape), writes_(writes) {
  auto const height = shape.height, width = shape.width, block_rows = a.rows / height;
  auto const* const ptr = a.offsets.as<std::int64_t>();
  auto const* const col = a.columns.as<std::int32_t>();
  offsets_ = Array((std::size_t(block_rows) + 1) * sizeof(std::int64_t));
  auto* const offsets = offsets_.as<std::int64_t>();
  offsets[0] = rows_written_ = 0;
  for (std::int32_t i = 0; i < block_rows; ++i) {
    auto const blocks = (ptr[i * height + 1] - ptr[i * height]) / width;
    offsets[i + 1] = offsets[i] + blocks;
    rows_written_ += blocks > 0 ? height : 0;
  }
  auto const entries = std::size_t(a.nnz());
  columns_ = Array(std::size_t(offsets[block_rows]) * sizeof(std::int32_t));
  auto* const columns = columns_.as<std::int32_t>();
  with_stored(a.dtype, a.bfloat16, [&](auto tag, auto stored) {
    using T = typename decltype(tag)::type;
    using V = typename decltype(stored)::type;
    values_ = Array((entries + kernel::read_beyond) * sizeof(V));
    auto const* const from = a.values.as<T>();
    auto* const to = values_.template as<V>();
    std::fill_n(to + entries, kernel::read_beyond, V(T(0)));
    device::Executor executor;
    device::parallel_ranges(executor, block_rows, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        auto const first = i * height;
        auto const length = ptr[first + 1] - ptr[first];
        for (std::int64_t g = 0; g < length / width; ++g) columns[offsets[i] + g] = col[ptr[first] + g * width];
        auto* at = to + ptr[first];  // entries of the block rows before
        for (std::int64_t p = 0; p < length; ++p)
          for (std::int32_t r = 0; r < height; ++r) *at++ = V(from[ptr[first + r] + p]);
      }
    });
  });
}

double BcsrFormat::bytes(std::int64_t k) const {
  return double(offsets_.bytes() + columns_.bytes() + values_.bytes()) + vector_bytes(k, writes_, rows_written_);
}

void BcsrFormat::run(device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                     Array const& w) const {
  ASTERISM_ASSERT(written_by(e) == writes_);
  with_stored(dtype_, bfloat16_, [&](auto tag, auto stored) {
    using T = typename decltype(tag)::type;
    using V = typename decltype(stored)::type;
    submit_product<T, V>(kernel::bcsr_product<T, V>, *this, queue, e, k, x, y, b, w);
  });
}

FormatEntry bcsr_format() {
  return {"bcsr", [](Csr const& block, Writes writes, FormatChoice choice) -> std::shared_ptr<SparseFormat const> {
            if (choice == FormatChoice::where_it_suits && is_complex(block.dtype)) return nullptr;  // their kernel has no vectors
            auto const shape = BlockShape::of(block);
            return shape.height > 1 ? std::make_shared<BcsrFormat const>(block, shape, writes) : nullptr;
          }};
}

}  // namespace asterism::la
