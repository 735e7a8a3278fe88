// The blocks of a triangular factor: supernodes by supernodes.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "asterism/direct/symbolic/supernodes.hpp"

namespace asterism::direct {

/// Rows of supernode `row` in the panel of supernode `column`: entries [first, first + count) of the panel's list of rows.
struct Block {
  std::int32_t row = 0, column = 0;
  std::int64_t first = 0;
  std::int32_t count = 0;
};

/// Blocks below the diagonal blocks, by column and by row. Memory of the order of their number.
class BlockPattern {
 public:
  explicit BlockPattern(std::shared_ptr<Supernodes const> nodes);

  Supernodes const& nodes() const { return *nodes_; }
  std::int32_t count() const { return nodes_->count(); }
  std::int32_t blocks() const { return std::int32_t(blocks_.size()); }
  Block const& block(std::int32_t index) const { return blocks_[std::size_t(index)]; }
  /// Their indices, [first, last), rows ascending.
  struct Range {
    std::int32_t first, last;
  };
  Range of_column(std::int32_t k) const { return {column_[std::size_t(k)], column_[std::size_t(k) + 1]}; }
  /// The index of block (row, column), which must be there. Cost: the logarithm of the column's blocks.
  std::int32_t find(std::int32_t row, std::int32_t column) const;
  /// Indices, columns ascending.
  std::span<std::int32_t const> of_row(std::int32_t i) const {
    return std::span(by_row_).subspan(std::size_t(row_[std::size_t(i)]), std::size_t(row_[std::size_t(i) + 1] - row_[std::size_t(i)]));
  }
  /// Rows of a block in the whole matrix.
  std::span<std::int32_t const> rows(Block const& b) const {
    return std::span(nodes_->row_indices).subspan(std::size_t(b.first), std::size_t(b.count));
  }
  /// Of each supernode in the graph of blocks, from 0: how many must be solved before it, one after the other.
  std::vector<std::int32_t> levels() const;
  std::int32_t largest_width() const;

 private:
  std::shared_ptr<Supernodes const> nodes_;
  std::vector<Block> blocks_;
  std::vector<std::int32_t> column_, row_, by_row_;
};

}  // namespace asterism::direct
