#include "asterism/direct/triangular/local_triangle.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "asterism/base/error.hpp"

namespace asterism::direct {

LocalTriangle::LocalTriangle(std::shared_ptr<BlockPattern const> pattern, ProcessGrid const& grid, int rank, Dtype dtype,
                             std::int32_t alone)
    : pattern_(std::move(pattern)), owners_{grid, rank, alone}, dtype_(dtype) {
  auto const n = pattern_->count();
  diagonal_at_.assign(std::size_t(n), -1);
  block_at_.assign(std::size_t(pattern_->blocks()), -1);
  row_at_.assign(std::size_t(pattern_->blocks()), -1);
  auto const size = std::int64_t(size_of(dtype));
  std::int64_t bytes = 0;
  for (std::int32_t k = 0; k < n; ++k) {
    auto const w = std::int64_t(pattern_->nodes().width(k));
    if (owners_.owner(k, k) == rank) {
      diagonal_at_[std::size_t(k)] = bytes;
      bytes += w * w * size;
    }
    panel_at_.push_back(bytes);
    std::int64_t rows = 0;
    auto const [first, last] = pattern_->of_column(k);
    for (auto b = first; b < last; ++b) {
      auto const& block = pattern_->block(b);
      if (owners_.owner(block.row, k) != rank) continue;
      block_at_[std::size_t(b)] = bytes + rows * size;
      rows += block.count;
      row_at_[std::size_t(b)] = std::int64_t(rows_.size());
      auto const start = pattern_->nodes().starts[std::size_t(block.row)];
      for (auto const r : pattern_->rows(block)) rows_.push_back(r - start);
    }
    panel_rows_.push_back(rows);
    bytes += w * rows * size;
  }
  values_ = device::Array(std::size_t(bytes));
  if (bytes > 0) std::memset(values_.raw(), 0, std::size_t(bytes));
}

void LocalTriangle::take(std::int32_t k, void const* panel, std::int64_t leading, bool unit) {
  auto const& nodes = pattern_->nodes();
  auto const w = nodes.width(k);
  auto const size = std::int64_t(size_of(dtype_));
  auto const* from = static_cast<std::byte const*>(panel);
  auto const copy = [&](std::int64_t first, std::int64_t rows, std::byte* to, std::int64_t next) {
    for (std::int64_t j = 0; j < w; ++j) std::memcpy(to + j * next * size, from + (j * leading + first) * size, std::size_t(rows * size));
  };
  if (auto const at = diagonal_at_[std::size_t(k)]; at >= 0) {
    copy(0, w, number_at(at), w);
    finish_diagonal(k, unit);
  }
  auto const [first, last] = pattern_->of_column(k);
  for (auto b = first; b < last; ++b)
    if (auto const at = block_at_[std::size_t(b)]; at >= 0) {
      auto const& block = pattern_->block(b);
      copy(w + block.first - nodes.row_offsets[std::size_t(k)], block.count, number_at(at), panel_rows(k));
    }
}

void LocalTriangle::finish_diagonal(std::int32_t k, bool unit) {
  auto const zero = with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const w = pattern_->nodes().width(k);
    for (std::int32_t j = 0; j < w; ++j) {
      auto& d = reinterpret_cast<T*>(diagonal(k))[std::int64_t(j) * w + j];
      if (unit) d = T(1);
      else if (d == T(0)) return j;
    }
    return -1;
  });
  if (zero >= 0)
    fail(ErrorKind::breakdown, "the triangle is singular: its diagonal is 0 in row {}.", pattern_->nodes().starts[std::size_t(k)] + zero);
}

void LocalTriangle::exchange_rows(std::int32_t k, std::span<std::int32_t const> order) {
  auto const& nodes = pattern_->nodes();
  if (order_.empty()) {
    for (std::int32_t i = 0; i < nodes.count(); ++i) {
      order_at_.push_back(std::int32_t(order_.size()));
      if (owns_diagonal(i))
        for (std::int32_t j = 0; j < nodes.width(i); ++j) order_.push_back(j);
    }
  }
  std::copy(order.begin(), order.end(), order_.begin() + order_at_[std::size_t(k)]);
}

}  // namespace asterism::direct
