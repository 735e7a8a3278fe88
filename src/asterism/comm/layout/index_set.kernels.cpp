#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/comm/layout/index_set.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::comm {
namespace {

using i64 = std::int64_t;

constexpr i64 shared_from = 512 << 10;  // bytes that are worth waking the team for

struct Sixteen {
  std::uint64_t a, b;
};

/// From the positions in an array to a dense buffer, or back.
enum class Move : std::uint8_t { pack, unpack };

template <Move W, class Item>
void move_one(Item* dense, Item* spread) {
  if constexpr (W == Move::pack) *dense = *spread;
  else *spread = *dense;
}

template <Move W>
void move_bytes(std::byte* dense, std::byte* spread, i64 n) {
  if constexpr (W == Move::pack) std::memcpy(dense, spread, std::size_t(n));
  else std::memcpy(spread, dense, std::size_t(n));
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

void IndexSet::write(std::vector<std::byte>& out) const {
  i64 const head[8] = {i64(kind_) | i64(wide_.empty()) << 8, kind_ == Kind::list ? largest_ : first_, count_, dx_, dy_, dz_, X_, Y_};
  auto const put = [&](void const* from, std::size_t bytes) {
    auto const* const b = static_cast<std::byte const*>(from);
    out.insert(out.end(), b, b + bytes);
  };
  out.reserve(out.size() + sizeof head + narrow_.size() * 4 + wide_.size() * 8 + 8);
  put(head, sizeof head);
  put(narrow_.data(), narrow_.size() * 4);
  put(wide_.data(), wide_.size() * 8);
}

IndexSet IndexSet::read(std::vector<std::byte> const& bytes) {
  i64 head[8];
  ASTERISM_ASSERT(bytes.size() >= sizeof head);
  std::memcpy(head, bytes.data(), sizeof head);
  IndexSet s;
  s.kind_ = Kind(head[0] & 255);
  s.first_ = head[1], s.count_ = head[2], s.dx_ = head[3], s.dy_ = head[4], s.dz_ = head[5], s.X_ = head[6], s.Y_ = head[7];
  if (s.kind_ != Kind::list) return s;
  s.largest_ = std::exchange(s.first_, 0);
  auto const* const from = bytes.data() + sizeof head;
  auto const n = std::size_t(s.count_);
  bool const narrow = head[0] >> 8;
  ASTERISM_ASSERT(bytes.size() >= sizeof head + n * (narrow ? 4 : 8));
  if (narrow) {
    s.narrow_.resize(n);
    std::memcpy(s.narrow_.data(), from, n * 4);
  } else {
    s.wide_.resize(n);
    std::memcpy(s.wide_.data(), from, n * 8);
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

/// The items first ... first + n - 1 of a strided set as blocks of rows: f(position, length of a row, number of rows), the rows
/// X_ apart.
template <class F>
void IndexSet::blocks(i64 first, i64 n, F const& f) const {
  i64 i = first % dx_, j = first / dx_ % dy_, k = first / (dx_ * dy_);
  while (n > 0) {
    i64 const at = first_ + X_ * (Y_ * k + j) + i;
    if (i > 0 || n < dx_) {  // a part of a row
      i64 const length = std::min(dx_ - i, n);
      f(at, length, i64(1));
      n -= length;
      i = 0;
      ++j;
    } else {
      i64 const rows = std::min(n / dx_, dy_ - j);
      f(at, dx_, rows);
      n -= rows * dx_;
      j += rows;
    }
    if (j == dy_) j = 0, ++k;
  }
}

template <bool Pack>
void IndexSet::move(std::byte* dense, std::byte* spread, i64 unit, i64 first, i64 n) const {
  static constexpr auto W = Pack ? Move::pack : Move::unpack;
  if (n == 0) return;
  if (kind_ == Kind::contiguous) return move_bytes<W>(dense, spread + (first_ + first) * unit, n * unit);
  if (kind_ == Kind::strided && dx_ * unit >= 256) {  // rows worth a call of memcpy
    blocks(first, n, [&](i64 position, i64 length, i64 rows) {
      for (i64 r = 0; r < rows; ++r, dense += length * unit) move_bytes<W>(dense, spread + (position + r * X_) * unit, length * unit);
    });
    return;
  }
  bool const done = with_item(unit, [&](auto item) {
    using Item = decltype(item);
    auto* d = reinterpret_cast<Item*>(dense);
    auto* const s = reinterpret_cast<Item*>(spread);
    if (kind_ == Kind::list) {
      auto const with_list = [&](auto const* at) {
        for (i64 i = 0; i < n; ++i) move_one<W>(d + i, s + at[i]);
      };
      if (wide_.empty()) with_list(narrow_.data() + first);
      else with_list(wide_.data() + first);
    } else {
      blocks(first, n, [&d, s, X = X_](i64 position, i64 length, i64 rows) {
        auto const with_length = [&](auto of) {
          for (i64 r = 0; r < rows; ++r, d += of)
            for (i64 i = 0; i < of; ++i) move_one<W>(d + i, s + position + r * X + i);
        };
        switch (length) {  // short rows, as ghost points have them across the fastest direction, in loops that unroll
          case 1: return with_length(std::integral_constant<i64, 1>{});
          case 2: return with_length(std::integral_constant<i64, 2>{});
          case 3: return with_length(std::integral_constant<i64, 3>{});
          case 4: return with_length(std::integral_constant<i64, 4>{});
          case 5: return with_length(std::integral_constant<i64, 5>{});
          case 6: return with_length(std::integral_constant<i64, 6>{});
          default: return with_length(length);
        }
      });
    }
  });
  if (done) return;
  for (i64 i = 0; i < n; ++i) move_bytes<W>(dense + i * unit, spread + (*this)[first + i] * unit, unit);
}

// one loop for both ways, which leaves the side it reads from as it is
void IndexSet::pack(void const* data, void* buffer, i64 unit, i64 first, i64 n) const {
  auto* const dense = static_cast<std::byte*>(buffer);
  auto* const spread = static_cast<std::byte*>(const_cast<void*>(data));
  if (n * unit < shared_from) return move<true>(dense, spread, unit, first, n);
  device::Executor executor;
  device::parallel_ranges(executor, n, [=, this](i64 b, i64 e) { move<true>(dense + b * unit, spread, unit, first + b, e - b); });
}
void IndexSet::unpack(void const* buffer, void* data, i64 unit, i64 first, i64 n, bool distinct) const {
  auto* const dense = static_cast<std::byte*>(const_cast<void*>(buffer));
  auto* const spread = static_cast<std::byte*>(data);
  if (n * unit < shared_from || !distinct) return move<false>(dense, spread, unit, first, n);
  device::Executor executor;
  device::parallel_ranges(executor, n, [=, this](i64 b, i64 e) { move<false>(dense + b * unit, spread, unit, first + b, e - b); });
}

void IndexSet::combine(Combine const& op, void const* buffer, void* data, i64 unit, i64 first, i64 n) const {
  auto const* b = static_cast<std::byte const*>(buffer);
  auto* d = static_cast<std::byte*>(data);
  if (kind_ == Kind::contiguous) return op(d + (first_ + first) * unit, b, nullptr, n);
  if (!wide_.empty()) return op(data, buffer, wide_.data() + first, n);
  if (kind_ == Kind::strided && dx_ >= 16) {
    blocks(first, n, [&](i64 position, i64 length, i64 rows) {
      for (i64 r = 0; r < rows; ++r, b += length * unit) op(d + (position + r * X_) * unit, b, nullptr, length);
    });
    return;
  }
  constexpr i64 most = 1024;
  i64 block[most];
  i64 m = 0;
  auto const flush = [&] {
    op(data, b, block, m);
    b += m * unit;
    m = 0;
  };
  if (kind_ == Kind::list) {
    for (i64 done = 0; done < n; done += m) {
      m = std::min(most, n - done);
      std::copy_n(narrow_.data() + first + done, m, block);
      op(data, b + done * unit, block, m);
    }
    return;
  }
  i64 const apart = X_;
  blocks(first, n, [&](i64 position, i64 length, i64 rows) {
    if (length == 1 && m == 0 && op.strided(d + position * unit, b, apart, rows)) {
      b += rows * unit;
      return;
    }
    for (i64 r = 0; r < rows;) {
      if (m + length > most) flush();
      i64 const together = std::min(rows - r, (most - m) / length);
      for (i64 t = 0; t < together; ++t)
        for (i64 l = 0; l < length; ++l) block[m + t * length + l] = position + t * apart + l;
      m += together * length;
      position += together * apart;
      r += together;
    }
  });
  flush();
}

}  // namespace asterism::comm
