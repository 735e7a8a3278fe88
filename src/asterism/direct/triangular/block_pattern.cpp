#include "asterism/direct/triangular/block_pattern.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "asterism/base/error.hpp"

namespace asterism::direct {

BlockPattern::BlockPattern(std::shared_ptr<Supernodes const> nodes) : nodes_(std::move(nodes)) {
  auto const n = std::size_t(count());
  std::vector<std::int32_t> supernode_of(n ? std::size_t(nodes_->starts[n]) : 0);
  for (std::size_t s = 0; s < n; ++s)
    std::fill(supernode_of.begin() + nodes_->starts[s], supernode_of.begin() + nodes_->starts[s + 1], std::int32_t(s));
  column_.assign(n + 1, 0);
  row_.assign(n + 1, 0);
  for (std::int32_t k = 0; k < count(); ++k) {
    auto const first = nodes_->row_offsets[std::size_t(k)], last = nodes_->row_offsets[std::size_t(k) + 1];
    for (auto p = first; p < last;) {
      auto const i = supernode_of[std::size_t(nodes_->row_indices[std::size_t(p)])];
      auto const end = nodes_->starts[std::size_t(i) + 1];
      auto q = p;
      while (q < last && nodes_->row_indices[std::size_t(q)] < end) ++q;
      blocks_.push_back({i, k, p, std::int32_t(q - p)});
      ++row_[std::size_t(i) + 1];
      p = q;
    }
    column_[std::size_t(k) + 1] = blocks();
  }
  std::partial_sum(row_.begin(), row_.end(), row_.begin());
  by_row_.resize(blocks_.size());
  auto next = row_;
  for (std::int32_t b = 0; b < blocks(); ++b) by_row_[std::size_t(next[std::size_t(block(b).row)]++)] = b;
}

std::int32_t BlockPattern::find(std::int32_t row, std::int32_t column) const {
  auto const [first, last] = of_column(column);
  auto const begin = blocks_.begin() + first, end = blocks_.begin() + last;
  auto const found = std::lower_bound(begin, end, row, [](Block const& b, std::int32_t i) { return b.row < i; });
  if (found == end || found->row != row) fail(ErrorKind::internal, "there is no block ({}, {}).", row, column);
  return std::int32_t(found - blocks_.begin());
}

std::vector<std::int32_t> BlockPattern::levels() const {
  std::vector<std::int32_t> level(std::size_t(count()), 0);
  for (auto const& b : blocks_)  // by column: that of the column is final
    level[std::size_t(b.row)] = std::max(level[std::size_t(b.row)], level[std::size_t(b.column)] + 1);
  return level;
}

std::int32_t BlockPattern::largest_width() const {
  std::int32_t most = 0;
  for (std::int32_t k = 0; k < count(); ++k) most = std::max(most, nodes_->width(k));
  return most;
}

}  // namespace asterism::direct
