// Rows of a product that are alike but for a shift of their columns. On grids, and where points have several unknowns, most are: what is
// found of one holds for the others.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// Rows with one number have the same columns but for a shift; the number is negative where there are no columns.
struct RowShape {
  std::int32_t number, first_column;
};
/// Of each row. Some that are alike may have different numbers. Time and memory: a few passes over the columns, 8 bytes a row.
template <class T>
Buffer<RowShape> shapes_of(Rows<T> const& B);

/// Rows that one thread has multiplied, by the shapes of their factors' rows. The newest of each hash are found again.
class ProductShapes {
 public:
  struct Shape {
    std::int64_t keys, columns, places;  ///< where each begins
    std::int32_t terms, length;          ///< rows of the right factor; columns
    std::int32_t next;                   ///< the shape that came after it, which is a good guess
  };
  ProductShapes() : of_hash_(slots, -1) {}

  /// The shape of the row with these n columns, or nothing. Its columns are those of the shape plus shift().
  Shape const* find(std::int32_t const* columns, std::int64_t n, RowShape const* right);
  std::int32_t shift() const { return shift_; }
  std::int32_t const* columns(Shape const& s) const { return columns_.data() + s.columns; }
  /// Whether rows are alike so often that it pays to look, and to add().
  bool pays() const { return misses_ < hits_ + 1024; }
  /// The row that find() did not find has these columns, and its places begin there.
  void add(std::int32_t const* columns, std::int64_t length, std::int64_t places);
  /// Whether so much is held that it would leave the cache.
  bool is_full() const { return keys_.size() + columns_.size() > most_held; }
  void clear();

 private:
  static constexpr std::size_t slots = 4096, most_held = std::size_t(1) << 19;
  bool is(std::int32_t shape) const;
  std::vector<std::uint64_t> keys_, row_;  // of the shapes; of the row that is looked for
  std::vector<std::int32_t> columns_, of_hash_;
  std::vector<Shape> shapes_;
  std::size_t slot_ = 0;
  std::int32_t last_ = -1, shift_ = 0;
  std::int64_t hits_ = 0, misses_ = 0;
};

}  // namespace asterism::la
