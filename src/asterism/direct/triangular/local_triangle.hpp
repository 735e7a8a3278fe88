// The blocks of a distributed triangular factor that one rank owns, with their numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/array.hpp"
#include "asterism/direct/triangular/block_pattern.hpp"
#include "asterism/direct/triangular/process_grid.hpp"

namespace asterism::direct {

/// A rank's blocks of one column are one below the other in a column-major panel. Diagonal blocks are w x w; rows of the
/// right-hand side may be exchanged within one.
class LocalTriangle {
 public:
  /// alone: how many supernodes at the beginning are this rank's alone (BlockOwners).
  LocalTriangle(std::shared_ptr<BlockPattern const> pattern, ProcessGrid const& grid, int rank, Dtype dtype, std::int32_t alone = 0);

  LocalTriangle(LocalTriangle const&) = delete;
  LocalTriangle& operator=(LocalTriangle const&) = delete;

  /// Copies what this rank owns of a panel: the triangle of column k and the rows below it, (width + below) x width, column-major with so
  /// many numbers from one column to the next. unit: the diagonal counts as 1. An error of kind breakdown where it is 0.
  void take(std::int32_t k, void const* panel, std::int64_t leading, bool unit);
  /// What is in the diagonal block of column k becomes the form of solves, as take() does.
  void finish_diagonal(std::int32_t k, bool unit);
  /// Row i of the diagonal block's solve is row order[i] of the right-hand side's part.
  void exchange_rows(std::int32_t k, std::span<std::int32_t const> order);

  BlockPattern const& pattern() const { return *pattern_; }
  std::shared_ptr<BlockPattern const> const& shared_pattern() const { return pattern_; }
  ProcessGrid const& grid() const { return owners_.grid; }
  int rank() const { return owners_.rank; }
  std::int32_t alone() const { return owners_.alone; }
  Dtype dtype() const { return dtype_; }
  /// Of this rank only.
  bool owns_diagonal(std::int32_t k) const { return diagonal_at_[std::size_t(k)] >= 0; }
  bool owns(std::int32_t index) const { return block_at_[std::size_t(index)] >= 0; }
  std::byte* diagonal(std::int32_t k) { return number_at(diagonal_at_[std::size_t(k)]); }
  std::byte const* diagonal(std::int32_t k) const { return number_at(diagonal_at_[std::size_t(k)]); }
  std::int32_t const* order(std::int32_t k) const { return order_.empty() ? nullptr : order_.data() + order_at_[std::size_t(k)]; }
  std::byte* panel(std::int32_t k) { return number_at(panel_at_[std::size_t(k)]); }
  std::byte const* panel(std::int32_t k) const { return number_at(panel_at_[std::size_t(k)]); }
  std::int64_t panel_rows(std::int32_t k) const { return panel_rows_[std::size_t(k)]; }
  std::byte const* block(std::int32_t index) const { return number_at(block_at_[std::size_t(index)]); }
  /// In the panel, of its first row.
  std::int64_t row_in_panel(std::int32_t index) const {
    return (block_at_[std::size_t(index)] - panel_at_[std::size_t(pattern_->block(index).column)]) / std::int64_t(size_of(dtype_));
  }
  /// Rows of that block, from the first of its supernode.
  std::span<std::int32_t const> rows(std::int32_t index) const {
    auto const& b = pattern_->block(index);
    return std::span(rows_).subspan(std::size_t(row_at_[std::size_t(index)]), std::size_t(b.count));
  }
  /// Of rows() in the rows of all its blocks: one panel after the other, in a panel as they are there.
  std::int64_t first_row(std::int32_t index) const { return row_at_[std::size_t(index)]; }
  std::int64_t all_rows() const { return std::int64_t(rows_.size()); }
  /// Of all its blocks; diagonal() and block() are in them.
  std::span<std::byte const> values() const { return {number_at(0), values_.bytes()}; }
  std::size_t bytes() const { return values_.bytes() + rows_.size() * sizeof(std::int32_t); }

 private:
  std::byte* number_at(std::int64_t first) const { return values_.as<std::byte>() + first; }
  std::shared_ptr<BlockPattern const> pattern_;
  BlockOwners owners_;
  Dtype dtype_;
  device::Array values_;
  std::vector<std::int32_t> rows_, order_, order_at_;
  std::vector<std::int64_t> diagonal_at_, block_at_, row_at_;  // -1: of another rank
  std::vector<std::int64_t> panel_at_, panel_rows_;
};

}  // namespace asterism::direct
