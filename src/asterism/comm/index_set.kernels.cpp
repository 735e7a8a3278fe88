#include <algorithm>
#include <cstdint>
#include <cstring>

#include "asterism/base/error.hpp"
#include "asterism/comm/index_set.hpp"

namespace asterism::comm {
namespace {

using i64 = std::int64_t;

struct Sixteen {
  std::uint64_t a, b;
};

/// Which of the two sides has the positions.
enum class Way : std::uint8_t { pack, unpack };

template <Way W, class Item>
void move_list(i64 const* index, i64 n, Item const* from, Item* to) {
  for (i64 i = 0; i < n; ++i) {
    if constexpr (W == Way::pack) to[i] = from[index[i]];
    else to[index[i]] = from[i];
  }
}

/// A box whose runs are too short to be worth a call of memcpy.
template <Way W, class Item>
void move_box(i64 dx, i64 dy, i64 dz, i64 X, i64 Y, Item const* from, Item* to) {
  for (i64 k = 0; k < dz; ++k)
    for (i64 j = 0; j < dy; ++j)
      for (i64 i = 0; i < dx; ++i) {
        i64 const dense = (k * dy + j) * dx + i, spread = X * Y * k + X * j + i;
        if constexpr (W == Way::pack) to[dense] = from[spread];
        else to[spread] = from[dense];
      }
}

/// Calls f with the item type of this size, or returns false.
template <class F>
bool with_item(i64 unit, F const& f) {
  switch (unit) {
    case 1: f(std::uint8_t{}); return true;
    case 2: f(std::uint16_t{}); return true;
    case 4: f(std::uint32_t{}); return true;
    case 8: f(std::uint64_t{}); return true;
    case 16: f(Sixteen{}); return true;
    default: return false;
  }
}

}  // namespace

IndexSet::IndexSet(std::vector<i64> positions) : count_(i64(positions.size())) {
  first_ = count_ ? positions[0] : 0;
  i64 run = 1;
  while (run < count_ && positions[std::size_t(run)] == first_ + run) ++run;
  if (run >= count_) return;
  if (find_strides(positions)) {
    kind_ = Kind::strided;
    return;
  }
  kind_ = Kind::list;
  list_ = std::move(positions);
  list_.shrink_to_fit();
}

/// The only candidate follows from the first positions; then all are compared.
bool IndexSet::find_strides(std::vector<i64> const& p) {
  auto const at = [&](i64 i) { return p[std::size_t(i)]; };
  dx_ = 1;
  while (dx_ < count_ && at(dx_) == first_ + dx_) ++dx_;
  if (count_ % dx_) return false;
  X_ = at(dx_) - first_;
  if (X_ <= 0) return false;
  i64 const rows = count_ / dx_;
  dy_ = 1;
  while (dy_ < rows && at(dy_ * dx_) - first_ == X_ * dy_) ++dy_;
  if (rows % dy_) return false;
  dz_ = rows / dy_;
  Y_ = dy_;
  if (dz_ > 1) {
    i64 const plane = at(dy_ * dx_) - first_;
    if (plane <= 0 || plane % X_) return false;
    Y_ = plane / X_;
    i64 last;
    if (__builtin_mul_overflow(X_, Y_, &last) || __builtin_mul_overflow(last, dz_, &last)) return false;
  }
  for (i64 k = 0, i = 0; k < dz_; ++k)
    for (i64 j = 0; j < dy_; ++j)
      for (i64 l = 0; l < dx_; ++l, ++i)
        if (at(i) != first_ + X_ * Y_ * k + X_ * j + l) return false;
  return true;
}

i64 IndexSet::largest() const {
  if (count_ == 0) return -1;
  if (kind_ != Kind::list) return (*this)[count_ - 1];  // strides are positive
  return *std::max_element(list_.begin(), list_.end());
}

void IndexSet::write(std::vector<std::byte>& out) const {
  bool const narrow = largest() <= INT32_MAX;
  i64 const head[8] = {i64(kind_) | i64(narrow) << 8, first_, count_, dx_, dy_, dz_, X_, Y_};
  auto at = out.size();
  out.resize(at + sizeof head + list_.size() * (narrow ? 4 : 8));
  std::memcpy(out.data() + at, head, sizeof head);
  at += sizeof head;
  if (narrow) {
    auto* to = out.data() + at;
    for (auto const p : list_) {
      auto const small = std::int32_t(p);
      std::memcpy(to, &small, 4);
      to += 4;
    }
  } else {
    std::memcpy(out.data() + at, list_.data(), list_.size() * 8);
  }
}

IndexSet IndexSet::read(std::vector<std::byte> const& bytes) {
  i64 head[8];
  ASTERISM_ASSERT(bytes.size() >= sizeof head);
  std::memcpy(head, bytes.data(), sizeof head);
  IndexSet s;
  s.kind_ = Kind(head[0] & 255);
  s.first_ = head[1], s.count_ = head[2], s.dx_ = head[3], s.dy_ = head[4], s.dz_ = head[5], s.X_ = head[6], s.Y_ = head[7];
  if (s.kind_ != Kind::list) return s;
  s.list_.resize(std::size_t(s.count_));
  auto const* from = bytes.data() + sizeof head;
  if (head[0] >> 8) {
    for (auto& p : s.list_) {
      std::int32_t small;
      std::memcpy(&small, from, 4);
      p = small;
      from += 4;
    }
  } else {
    std::memcpy(s.list_.data(), from, s.list_.size() * 8);
  }
  return s;
}

std::string IndexSet::describe() const {
  switch (kind_) {
    case Kind::contiguous: return "contiguous";
    case Kind::strided: return format("strided {} x {} x {}", dx_, dy_, dz_);
    default: return "list";
  }
}

void IndexSet::pack(void const* data, void* buffer, i64 unit) const {
  auto const* d = static_cast<std::byte const*>(data) + first_ * unit;
  auto* b = static_cast<std::byte*>(buffer);
  if (kind_ == Kind::contiguous) {
    if (count_ > 0) std::memcpy(b, d, std::size_t(count_ * unit));
    return;
  }
  if (kind_ == Kind::strided && dx_ * unit < 256 &&
      with_item(
          unit,
          [&](auto item) {
            using Item = decltype(item);
            move_box<Way::pack>(dx_, dy_, dz_, X_, Y_, reinterpret_cast<Item const*>(d), reinterpret_cast<Item*>(b));
          }))
    return;
  if (kind_ == Kind::strided) {
    auto const run = std::size_t(dx_ * unit);
    for (i64 k = 0; k < dz_; ++k)
      for (i64 j = 0; j < dy_; ++j, b += run) std::memcpy(b, d + (X_ * Y_ * k + X_ * j) * unit, run);
    return;
  }
  if (with_item(unit, [&](auto item) {
        using Item = decltype(item);
        move_list<Way::pack>(list_.data(), count_, static_cast<Item const*>(data), static_cast<Item*>(buffer));
      }))
    return;
  for (i64 i = 0; i < count_; ++i)
    std::memcpy(b + i * unit, static_cast<std::byte const*>(data) + list_[std::size_t(i)] * unit, std::size_t(unit));
}

void IndexSet::unpack(void const* buffer, void* data, i64 unit) const {
  auto* d = static_cast<std::byte*>(data) + first_ * unit;
  auto const* b = static_cast<std::byte const*>(buffer);
  if (kind_ == Kind::contiguous) {
    if (count_ > 0) std::memcpy(d, b, std::size_t(count_ * unit));
    return;
  }
  if (kind_ == Kind::strided && dx_ * unit < 256 &&
      with_item(
          unit,
          [&](auto item) {
            using Item = decltype(item);
            move_box<Way::unpack>(dx_, dy_, dz_, X_, Y_, reinterpret_cast<Item const*>(b), reinterpret_cast<Item*>(d));
          }))
    return;
  if (kind_ == Kind::strided) {
    auto const run = std::size_t(dx_ * unit);
    for (i64 k = 0; k < dz_; ++k)
      for (i64 j = 0; j < dy_; ++j, b += run) std::memcpy(d + (X_ * Y_ * k + X_ * j) * unit, b, run);
    return;
  }
  if (with_item(unit, [&](auto item) {
        using Item = decltype(item);
        move_list<Way::unpack>(list_.data(), count_, static_cast<Item const*>(buffer), static_cast<Item*>(data));
      }))
    return;
  for (i64 i = 0; i < count_; ++i)
    std::memcpy(static_cast<std::byte*>(data) + list_[std::size_t(i)] * unit, b + i * unit, std::size_t(unit));
}

void IndexSet::combine(Combine const& op, void const* buffer, void* data, i64 unit) const {
  auto const* b = static_cast<std::byte const*>(buffer);
  auto* d = static_cast<std::byte*>(data);
  if (kind_ == Kind::contiguous) return op(d + first_ * unit, b, nullptr, count_);
  if (kind_ == Kind::list) return op(data, buffer, list_.data(), count_);
  if (dx_ >= 16) {
    for (i64 k = 0; k < dz_; ++k)
      for (i64 j = 0; j < dy_; ++j, b += dx_ * unit) op(d + (first_ + X_ * Y_ * k + X_ * j) * unit, b, nullptr, dx_);
    return;
  }
  i64 block[256];
  for (i64 done = 0; done < count_;) {
    i64 const n = std::min<i64>(256, count_ - done);
    for (i64 i = 0; i < n; ++i) block[i] = (*this)[done + i];
    op(data, b + done * unit, block, n);
    done += n;
  }
}

}  // namespace asterism::comm
