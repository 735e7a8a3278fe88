// Rows of a product that are alike but for a shift of their columns. On grids, and where points have several unknowns, most are: what is
// found of one holds for the others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "asterism/la/products/wide_rows.hpp"

namespace asterism::la {

/// Rows with one number have the same columns but for a shift. `column` is one of them, or another one that is shifted with them.
struct RowShape {
  static constexpr std::int32_t empty = -1;
  std::int32_t number, column;
};
/// Of each row. Some that are alike may have different numbers. Time and memory: a few passes over the columns, 8 bytes a row.
template <class T>
Buffer<RowShape> shapes_of(WideRows<T> const& B);
/// Rows with one number have the same values too, to the bit. Empty: more than a sixteenth of the rows are like no others.
template <class T>
Buffer<RowShape> equal_rows_of(WideRows<T> const& B);

/// Values as ProductShapes compares them.
template <class T>
struct ValueWords {
  using Word = std::conditional_t<sizeof(T) % 8 == 0, std::uint64_t, std::uint32_t>;
  T const* values = nullptr;
  std::int64_t size = 0;  ///< in words

  ValueWords() = default;
  ValueWords(T const* from, std::int64_t n) : values(from), size(n * std::int64_t(sizeof(T) / sizeof(Word))) {}
  std::uint64_t operator[](std::int64_t w) const {
    Word word;
    std::memcpy(&word, reinterpret_cast<std::byte const*>(values) + w * std::int64_t(sizeof word), sizeof word);
    return word;
  }
};

/// How the places of a row's terms are written: one after the other (row_product.hpp), or as vectors (expanded_rows.hpp).
enum class PlaceForm : std::uint8_t { each, masks, indices, indices_from };
struct Places {
  std::int64_t begin;
  PlaceForm form = PlaceForm::each;
};

/// Rows that one thread has multiplied, by the shapes of their factors' rows. The newest of each hash are found again.
class ProductShapes {
 public:
  struct Shape {
    std::int64_t columns, places;  ///< where each begins
    std::int32_t length;           ///< columns
    PlaceForm form;                ///< of places
  };
  ProductShapes() : columns_(chunk, 0), of_hash_(slots, -1) {}

  /// The number of the shape of a row with n terms, or -1: shape_of(t) is that of the row on the right of term t. Its columns are those of
  /// the shape plus shift(). With factors a shape is that of rows with these ones.
  template <class F, class T = double>
  std::int32_t find(std::int64_t n, F const& shape_of, ValueWords<T> const& factors = {}) {
    std::int64_t first = 0;
    while (first < n && shape_of(first).number == RowShape::empty) ++first;
    shift_ = first < n ? shape_of(first).column : 0;
    auto const key = [&, shift = shift_](std::int64_t t) {
      auto const s = shape_of(t);
      return std::uint64_t(std::uint32_t(s.number)) << 32 | std::uint32_t(s.number == RowShape::empty ? 0 : s.column - shift);
    };
    if (auto const guess = last_ >= 0 ? known_[std::size_t(last_)].next : -1;
        guess >= 0 && known_[std::size_t(guess)].is_of(n, factors.size)) {
      auto const* const keys = keys_.data() + known_[std::size_t(guess)].begin;
      std::uint64_t other = 0;
      for (std::int64_t t = 0; t < n; ++t) other |= keys[t] ^ key(t);
      for (std::int64_t w = 0; w < factors.size; ++w) other |= keys[n + w] ^ factors[w];
      if (other == 0) {
        last_ = guess;
        ++hits_;
        return known_[std::size_t(guess)].shape;
      }
    }
    row_.resize(std::size_t(n + factors.size));
    for (std::int64_t t = 0; t < n; ++t) row_[std::size_t(t)] = key(t);
    for (std::int64_t w = 0; w < factors.size; ++w) row_[std::size_t(n + w)] = factors[w];
    terms_ = std::int32_t(n);
    return find_row();
  }
  std::int32_t shift() const { return shift_; }
  Shape const* data() const { return shapes_.data(); }
  Shape const& operator[](std::int32_t shape) const { return shapes_[std::size_t(shape)]; }
  /// Eight more may be read.
  std::int32_t const* columns(Shape const& s) const { return columns_.data() + s.columns; }
  /// Whether rows are alike so often that it pays to look.
  bool pays() const { return 4 * misses_ < hits_ + 1024; }
  /// The row that find() did not find.
  std::int32_t add(std::int32_t const* columns, std::int64_t length, Places places);
  /// One that will not be looked for, with its columns if they are there.
  std::int32_t add_alone(std::int32_t const* columns, std::int64_t length, Places places);
  /// Whether so much is held that it would leave the cache.
  bool is_full() const { return keys_.size() + columns_.size() - columns_before_ > most_held; }
  /// Finds none of them any more; they stay if they are kept. Later ones have other identities.
  void forget(bool keep);
  /// The same, and whether it pays is open again.
  void start_again() { forget(false), hits_ = misses_ = 0; }
  /// Of rows of that shape; 0 and above.
  std::int32_t identity(std::int32_t shape) const { return forgotten_ + shape; }
  /// What a plan keeps.
  void forget_keys();

 private:
  static constexpr std::size_t slots = 4096, most_held = std::size_t(1) << 19;
  struct Key {
    std::int64_t begin;
    std::int32_t terms, words, shape, next;  ///< next: the one that came after it, which is a good guess
    bool is_of(std::int64_t n, std::int64_t factor_words) const { return terms == n && words == factor_words; }
  };
  static constexpr std::size_t chunk = 8;
  std::int32_t find_row();
  void append(std::int32_t const* columns, std::int64_t length, std::int32_t shift);
  std::vector<std::uint64_t> keys_, row_;  // of the shapes; of the row that is looked for
  std::vector<Key> known_;
  std::vector<std::int32_t> columns_, of_hash_;
  std::vector<Shape> shapes_;
  std::size_t slot_ = 0, columns_before_ = 0;
  std::int32_t last_ = -1, shift_ = 0, forgotten_ = 0, terms_ = 0;  // terms_: of row_, factors follow
  std::int64_t hits_ = 0, misses_ = 0;
};

}  // namespace asterism::la
