// Positions in an array that one neighbour's data comes from or goes to, recognised where they are regular.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "asterism/comm/items.hpp"

namespace asterism::comm {

/// Three kinds: contiguous; strided, first + X Y k + X j + i for i < dx, j < dy, k < dz (a face, edge or corner of a box; paper ii,
/// section 5.2); or a list. Only a list keeps its indices. The order of the positions is the given one in all kinds.
class IndexSet {
 public:
  enum class Kind : std::uint8_t { contiguous, strided, list };
  IndexSet() = default;
  explicit IndexSet(std::vector<std::int64_t> positions);
  static IndexSet range(std::int64_t first, std::int64_t count) {
    IndexSet s;
    s.first_ = first;
    s.count_ = count;
    return s;
  }

  Kind kind() const { return kind_; }
  bool contiguous() const { return kind_ == Kind::contiguous; }
  std::int64_t count() const { return count_; }
  std::int64_t first() const { return first_; }
  std::int64_t operator[](std::int64_t i) const {
    switch (kind_) {
      case Kind::contiguous: return first_ + i;
      case Kind::strided: return first_ + X_ * Y_ * (i / (dx_ * dy_)) + X_ * (i / dx_ % dy_) + i % dx_;
      default: return list_[std::size_t(i)];
    }
  }
  /// Neighbouring positions that follow each other: all, a row's, or 1.
  std::int64_t row_length() const { return kind_ == Kind::contiguous ? count_ : kind_ == Kind::strided ? dx_ : 1; }
  /// The largest position, -1 if there is none.
  std::int64_t largest() const;
  /// Whether a strided set may come to a position twice.
  bool overlaps() const { return kind_ == Kind::strided && (X_ < dx_ || (dz_ > 1 && X_ * Y_ < X_ * (dy_ - 1) + dx_)); }
  /// To bytes, appended, and back: a regular set takes 64 bytes whatever its size.
  void write(std::vector<std::byte>& out) const;
  static IndexSet read(std::vector<std::byte> const& bytes);
  std::size_t memory_bytes() const { return list_.capacity() * sizeof(std::int64_t); }
  /// "contiguous", "strided 4 x 3 x 1", "list".
  std::string describe() const;

  // for the items first ... first + n - 1 of the set, whose values stand one behind the other in buffer; `unit` bytes each

  /// buffer[i] = data[position first + i].
  void pack(void const* data, void* buffer, std::int64_t unit, std::int64_t first, std::int64_t n) const;
  void pack(void const* data, void* buffer, std::int64_t unit) const { pack(data, buffer, unit, 0, count_); }
  /// data[position first + i] = buffer[i].
  void unpack(void const* buffer, void* data, std::int64_t unit, std::int64_t first, std::int64_t n) const;
  void unpack(void const* buffer, void* data, std::int64_t unit) const { unpack(buffer, data, unit, 0, count_); }
  /// data[position first + i] = op(data[position first + i], buffer[i]), in order.
  void combine(Combine const& op, void const* buffer, void* data, std::int64_t unit, std::int64_t first, std::int64_t n) const;
  void combine(Combine const& op, void const* buffer, void* data, std::int64_t unit) const { combine(op, buffer, data, unit, 0, count_); }

 private:
  template <class F>
  void blocks(std::int64_t first, std::int64_t n, F const& f) const;
  template <bool Pack>
  void move(std::byte* dense, std::byte* spread, std::int64_t unit, std::int64_t first, std::int64_t n) const;
  bool find_strides(std::vector<std::int64_t> const& positions);
  Kind kind_ = Kind::contiguous;
  std::int64_t first_ = 0, count_ = 0;
  std::int64_t dx_ = 0, dy_ = 0, dz_ = 0, X_ = 0, Y_ = 0;
  std::vector<std::int64_t> list_;
};

}  // namespace asterism::comm
