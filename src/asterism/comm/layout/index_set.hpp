// Positions in an array that one neighbour's data comes from or goes to, recognised where they are regular.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "asterism/base/unset.hpp"
#include "asterism/comm/layout/items.hpp"

namespace asterism::comm {

/// Four kinds: contiguous; strided, first + X Y k + X j + i for i < dx, j < dy, k < dz (a face, edge or corner of a box; Zhang et al.
/// 2022, section 5.2); several such pieces, one after the other; or a list. Only a list keeps its indices. The order of the positions is
/// the given one in all kinds.
class IndexSet {
 public:
  enum class Kind : std::uint8_t { contiguous, strided, list, pieces };
  IndexSet() = default;
  explicit IndexSet(std::vector<std::int64_t> const& p)
      : IndexSet(of(std::int64_t(p.size()), [&](std::int64_t i) { return p[std::size_t(i)]; })) {}
  /// The positions f(0) ... f(n - 1), which are not negative.
  template <class F>
  static IndexSet of(std::int64_t n, F const& f);
  static IndexSet range(std::int64_t first, std::int64_t count) {
    IndexSet s;
    s.first_ = first;
    s.count_ = count;
    return s;
  }

  /// A box of size[0] x size[1] x size[2] positions, the last direction the fastest, in an array with rows of `row` positions and planes of
  /// `rows` rows. No position is looked at.
  static IndexSet box(std::int64_t first, std::array<std::int64_t, 3> const& size, std::int64_t row, std::int64_t rows);
  /// Sets that are no lists, one after the other.
  static IndexSet joined(std::vector<IndexSet> const& sets);
  /// Whether two sets have a position in common, found without looking at positions: of ranges and of boxes of one array. Nothing: it
  /// takes a look to know.
  static std::optional<bool> meet(IndexSet const& a, IndexSet const& b);
  /// Whether a position comes twice in these sets, in one of them or in two; nothing: as for meet().
  static std::optional<bool> repeat(std::span<IndexSet const* const> sets);

  Kind kind() const { return kind_; }
  bool contiguous() const { return kind_ == Kind::contiguous; }
  /// Of a set of several; else 1.
  std::size_t pieces() const { return kind_ == Kind::pieces ? pieces_.size() : 1; }
  std::int64_t count() const { return count_; }
  std::int64_t first() const { return first_; }
  std::int64_t operator[](std::int64_t i) const {
    switch (kind_) {
      case Kind::contiguous: return first_ + i;
      case Kind::strided: return first_ + X_ * Y_ * (i / (dx_ * dy_)) + X_ * (i / dx_ % dy_) + i % dx_;
      case Kind::pieces: {
        std::size_t p = 0;
        for (; i >= pieces_[p].count_; ++p) i -= pieces_[p].count_;
        return pieces_[p][i];
      }
      default: return wide_.empty() ? narrow_[std::size_t(i)] : wide_[std::size_t(i)];
    }
  }
  /// f(position) for all of them, in order.
  template <class F>
  void each(F const& f) const {
    if (kind_ == Kind::list) {
      for (auto const p : narrow_) f(std::int64_t(p));
      for (auto const p : wide_) f(p);
    } else if (kind_ == Kind::pieces) {
      for (auto const& p : pieces_) p.each(f);
    } else {
      for (std::int64_t i = 0; i < count_; ++i) f((*this)[i]);
    }
  }
  /// Neighbouring positions that follow each other: all, a row's, or 1.
  std::int64_t row_length() const {
    if (kind_ != Kind::pieces) return kind_ == Kind::contiguous ? count_ : kind_ == Kind::strided ? dx_ : 1;
    auto shortest = count_;
    for (auto const& p : pieces_) shortest = std::min(shortest, p.row_length());
    return shortest;
  }
  /// The largest position, -1 if there is none.
  std::int64_t largest() const {
    if (kind_ == Kind::list || kind_ == Kind::pieces) return largest_;
    return count_ == 0 ? -1 : (*this)[count_ - 1];  // strides are positive
  }
  /// Whether a strided set may come to a position twice.
  bool overlaps() const { return kind_ == Kind::strided && (X_ < dx_ || (dz_ > 1 && X_ * Y_ < X_ * (dy_ - 1) + dx_)); }
  /// To bytes, appended, and back: a regular set, or piece, takes 64 bytes whatever its size.
  void write(std::vector<std::byte>& out) const;
  static IndexSet read(std::span<std::byte const> bytes);
  std::size_t memory_bytes() const {
    return narrow_.capacity() * sizeof(std::int32_t) + wide_.capacity() * sizeof(std::int64_t) + pieces_.capacity() * sizeof(IndexSet);
  }
  /// "contiguous", "strided 4 x 3 x 1", "3 pieces", "list".
  std::string describe() const;

  // for the items first ... first + n - 1 of the set, whose values stand one behind the other in buffer; `unit` bytes each

  /// buffer[i] = data[position first + i]. By all threads of the team if there is much to do.
  void pack(void const* data, void* buffer, std::int64_t unit, std::int64_t first, std::int64_t n) const;
  void pack(void const* data, void* buffer, std::int64_t unit) const { pack(data, buffer, unit, 0, count_); }
  /// data[position first + i] = buffer[i], in order; by all threads if no position comes twice.
  void unpack(void const* buffer, void* data, std::int64_t unit, std::int64_t first, std::int64_t n, bool distinct = false) const;
  void unpack(void const* buffer, void* data, std::int64_t unit) const { unpack(buffer, data, unit, 0, count_); }
  /// data[position first + i] = op(data[position first + i], buffer[i]), in order.
  void combine(Combine const& op, void const* buffer, void* data, std::int64_t unit, std::int64_t first, std::int64_t n) const;
  void combine(Combine const& op, void const* buffer, void* data, std::int64_t unit) const { combine(op, buffer, data, unit, 0, count_); }

 private:
  /// f(piece, first of it, how many of it, how many came before) for those that hold the items first ... first + n - 1.
  template <class F>
  void in_pieces(std::int64_t first, std::int64_t n, F const& f) const {
    std::int64_t done = 0;
    for (auto const& p : pieces_) {
      if (done == n) return;
      if (first < p.count_) {
        auto const m = std::min(n - done, p.count_ - first);
        f(p, first, m, done);
        done += m;
      }
      first = std::max<std::int64_t>(0, first - p.count_);
    }
  }
  template <class F>
  void blocks(std::int64_t first, std::int64_t n, F const& f) const;
  template <bool Pack>
  void move(std::byte* dense, std::byte* spread, std::int64_t unit, std::int64_t first, std::int64_t n) const;
  template <class F>
  bool find_strides(F const& f);
  Kind kind_ = Kind::contiguous;
  std::int64_t first_ = 0, count_ = 0;
  std::int64_t dx_ = 0, dy_ = 0, dz_ = 0, X_ = 0, Y_ = 0;
  std::int64_t largest_ = -1;  // of a list or pieces
  // a list, in the shorter type that holds it
  UnsetVector<std::int32_t> narrow_;
  UnsetVector<std::int64_t> wide_;
  std::vector<IndexSet> pieces_;  // none of them empty, a list or of pieces
};

template <class F>
IndexSet IndexSet::of(std::int64_t n, F const& f) {
  IndexSet s;
  s.count_ = n;
  if (n == 0) return s;
  s.first_ = f(0);
  std::int64_t run = 1;
  while (run < n && f(run) == s.first_ + run) ++run;
  if (run == n) return s;
  if (s.find_strides(f)) {
    s.kind_ = Kind::strided;
    return s;
  }
  s.kind_ = Kind::list;
  s.narrow_.resize(std::size_t(n));
  std::int64_t high = 0;
  auto* const narrow = s.narrow_.data();
  for (std::int64_t i = 0; i < n; ++i) {
    auto const p = f(i);
    high = p > high ? p : high;
    narrow[i] = std::int32_t(p);
  }
  s.largest_ = high;
  if (high > INT32_MAX) {
    s.narrow_ = {};
    s.wide_.resize(std::size_t(n));
    for (std::int64_t i = 0; i < n; ++i) s.wide_[std::size_t(i)] = f(i);
  }
  return s;
}

/// The only candidate follows from the first positions; then all are compared.
template <class F>
bool IndexSet::find_strides(F const& f) {
  dx_ = 1;
  while (dx_ < count_ && f(dx_) == first_ + dx_) ++dx_;
  if (count_ % dx_) return false;
  X_ = f(dx_) - first_;
  if (X_ <= 0) return false;
  std::int64_t const rows = count_ / dx_, step = dx_, apart = X_;
  std::int64_t row = 1;
  for (std::int64_t before = first_; row < rows; ++row) {
    std::int64_t const at = f(row * step);
    if (at - before != apart) break;
    before = at;
  }
  dy_ = row;
  if (rows % dy_) return false;
  dz_ = rows / dy_;
  Y_ = dy_;
  if (dz_ > 1) {
    std::int64_t const plane = f(dy_ * dx_) - first_;
    if (plane <= 0 || plane % X_) return false;
    Y_ = plane / X_;
    std::int64_t last;
    if (__builtin_mul_overflow(X_, Y_, &last) || __builtin_mul_overflow(last, dz_, &last)) return false;
  }
  if (dx_ == 1 && dz_ == 1) return true;  // every one was compared
  std::int64_t const dx = dx_, dy = dy_, dz = dz_, X = X_, XY = X_ * Y_, first = first_;
  for (std::int64_t k = 0, i = 0; k < dz; ++k)
    for (std::int64_t j = 0; j < dy; ++j)
      for (std::int64_t l = 0; l < dx; ++l, ++i)
        if (f(i) != first + XY * k + X * j + l) return false;
  return true;
}

}  // namespace asterism::comm
