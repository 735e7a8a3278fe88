// Rows of a product whose columns come in groups, as those of a prolongation with several near-null vectors do.
#pragma once
#include <utility>

#include "asterism/la/products/sparse_sum.hpp"

namespace asterism::la {

/// SparseSum for rows that consist of whole groups of `width` columns, each beginning at a multiple of it: a group is looked up once, and
/// its sums are vectors. The same terms in the same order.
template <class T>
class GroupSum {
 public:
  GroupSum(std::int32_t columns, std::int32_t width)
      : width_(width), sums_(columns, T(0)), rows_(columns, std::int32_t(0)), groups_(columns / width + 1), ordered_(columns / width + 1) {}

  /// a times the row c, v of n entries.
  void add(T a, std::int32_t const* c, T const* v, std::int64_t n) {
    switch (width_) {  // of few, so the loop over a group has no end to find
      case 2: return add_groups<2>(a, c, v, n);
      case 3: return add_groups<3>(a, c, v, n);
      case 4: return add_groups<4>(a, c, v, n);
      case 6: return add_groups<6>(a, c, v, n);
      default: return add_groups<0>(a, c, v, n);
    }
  }

  /// The row's length.
  std::int64_t most() const { return std::int64_t(size_) * width_; }
  /// Writes the row, ascending if asked for, and returns its length. A new row begins.
  std::int32_t take(std::int32_t* columns, T* values, bool ascending) {
    auto const* const groups = ascending ? ordered_.data() : groups_.data();
    if (ascending) sort_columns(groups_.data(), size_, ordered_.data());
    T* const sums = sums_.data();
    for (std::int32_t g = 0, at = 0; g < size_; ++g)
      for (std::int32_t k = 0; k < width_; ++k, ++at) {
        columns[at] = groups[g] + k;
        values[at] = sums[groups[g] + k];
        sums[groups[g] + k] = T(0);
      }
    ++row_;
    return std::exchange(size_, 0) * width_;
  }

 private:
  template <int fixed>
  void add_groups(T a, std::int32_t const* c, T const* v, std::int64_t n) {
    std::int32_t const width = fixed > 0 ? fixed : width_, row = row_;
    T* const ASTERISM_RESTRICT sums = sums_.data();
    std::int32_t* const ASTERISM_RESTRICT rows = rows_.data();
    std::int32_t* const ASTERISM_RESTRICT groups = groups_.data();
    std::int32_t end = size_;
    for (std::int64_t g = 0; g < n; g += width) {
      std::int32_t const group = c[g];
      groups[end] = group;
      end += rows[group] != row;
      rows[group] = row;
      T* const ASTERISM_RESTRICT to = sums + group;
      T const* const from = v + g;
#pragma omp simd
      for (std::int32_t k = 0; k < width; ++k) to[k] += a * from[k];
    }
    size_ = end;
  }

  std::int32_t width_;
  Buffer<T> sums_;
  Buffer<std::int32_t> rows_;              // that a group occurred in last, at its first column
  Buffer<std::int32_t> groups_, ordered_;  // their first columns
  std::int32_t size_ = 0, row_ = 1;
};

}  // namespace asterism::la
