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
  i64 const head[8] = {i64(kind_) | i64(wide_.empty()) << 8,
                       kind_ == Kind::list     ? largest_
                       : kind_ == Kind::pieces ? i64(pieces_.size())
                                               : first_,
                       count_,
                       dx_,
                       dy_,
                       dz_,
                       X_,
                       Y_};
  auto const put = [&](void const* from, std::size_t bytes) {
    auto const* const b = static_cast<std::byte const*>(from);
    out.insert(out.end(), b, b + bytes);
  };
  out.reserve(out.size() + sizeof head + narrow_.size() * 4 + wide_.size() * 8 + 8);
  put(head, sizeof head);
  put(narrow_.data(), narrow_.size() * 4);
  put(wide_.data(), wide_.size() * 8);
  for (auto const& p : pieces_) p.write(out);
}

IndexSet IndexSet::read(std::span<std::byte const> bytes) {
  i64 head[8];
  ASTERISM_ASSERT(bytes.size() >= sizeof head);
  std::memcpy(head, bytes.data(), sizeof head);
  IndexSet s;
  s.kind_ = Kind(head[0] & 255);
  s.first_ = head[1], s.count_ = head[2], s.dx_ = head[3], s.dy_ = head[4], s.dz_ = head[5], s.X_ = head[6], s.Y_ = head[7];
  if (s.kind_ == Kind::pieces) {
    std::vector<IndexSet> pieces;
    for (i64 p = 1; p <= head[1]; ++p) pieces.push_back(read(bytes.subspan(std::size_t(p) * sizeof head)));
    return joined(pieces);
  }
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

IndexSet IndexSet::box(i64 first, std::array<i64, 3> const& size, i64 row, i64 rows) {
  auto const [dz, dy, dx] = size;
  bool const whole_rows = dx == row, whole_planes = whole_rows && dy == rows;
  if (dx * dy * dz == 0) return range(first, 0);
  if ((dy == 1 && dz == 1) || (dz == 1 && whole_rows) || whole_planes) return range(first, dx * dy * dz);
  IndexSet s;
  s.kind_ = Kind::strided;
  s.first_ = first, s.count_ = dx * dy * dz;
  s.dx_ = dx, s.dy_ = dy, s.dz_ = dz, s.X_ = row, s.Y_ = rows;
  return s;
}

IndexSet IndexSet::joined(std::vector<IndexSet> const& sets) {
  IndexSet out;
  out.pieces_.reserve(sets.size());
  for (auto const& s : sets) {
    ASTERISM_ASSERT(s.kind_ != Kind::list);
    if (s.kind_ == Kind::pieces) out.pieces_.insert(out.pieces_.end(), s.pieces_.begin(), s.pieces_.end());
    else if (s.count_ > 0) out.pieces_.push_back(s);
  }
  if (out.pieces_.empty()) return {};
  if (out.pieces_.size() == 1) return IndexSet(out.pieces_.front());
  out.kind_ = Kind::pieces;
  for (auto const& p : out.pieces_) out.count_ += p.count_, out.largest_ = std::max(out.largest_, p.largest());
  out.first_ = out.pieces_.front().first_;
  return out;
}

std::optional<bool> IndexSet::meet(IndexSet const& a, IndexSet const& b) {
  if (a.kind_ == Kind::pieces) {
    std::optional<bool> any = false;
    for (auto const& p : a.pieces_) {
      auto const one = meet(p, b);
      if (one && *one) return true;
      if (!one) any = std::nullopt;
    }
    return any;
  }
  if (b.kind_ == Kind::pieces) return meet(b, a);
  if (a.count_ == 0 || b.count_ == 0) return false;
  if (a.kind_ == Kind::list || b.kind_ == Kind::list) return std::nullopt;
  if (a.largest() < b.first_ || b.largest() < a.first_) return false;
  if (a.kind_ == Kind::contiguous && b.kind_ == Kind::contiguous) return true;
  // as boxes of one array, with rows of X and planes of Y rows
  i64 const X = std::max(a.X_, b.X_), Y = a.dz_ > 1 ? a.Y_ : b.dz_ > 1 ? b.Y_ : std::max(a.Y_, b.Y_);
  struct Corners {
    i64 low[3], high[3];
  };
  auto const corners = [&](IndexSet const& s, Corners& c) {
    i64 const x = s.first_ % X, y = s.first_ / X % Y, z = s.first_ / (X * Y);
    i64 dx = s.dx_, dy = s.dy_, dz = s.dz_;
    if (s.kind_ == Kind::contiguous) {
      dx = s.count_, dy = dz = 1;
      if (x == 0 && dx % X == 0) dy = dx / X, dx = X;
      if (dx == X && y == 0 && dy % Y == 0) dz = dy / Y, dy = Y;
    } else if (s.X_ != X || (dz > 1 && s.Y_ != Y)) {
      return false;
    }
    c = {{z, y, x}, {z + dz, y + dy, x + dx}};
    return x + dx <= X && y + dy <= Y;
  };
  Corners p, q;
  if (!corners(a, p) || !corners(b, q)) return std::nullopt;
  for (int d = 0; d < 3; ++d)
    if (p.high[d] <= q.low[d] || q.high[d] <= p.low[d]) return false;
  return true;
}

std::optional<bool> IndexSet::repeat(std::span<IndexSet const* const> sets) {
  std::optional<bool> any = false;
  auto const take = [&any](std::optional<bool> one) {
    if (!one && any == false) any = std::nullopt;
    if (one && *one) any = true;
  };
  for (std::size_t i = 0; i < sets.size() && any != true; ++i) {
    auto const& s = *sets[i];
    if (s.kind_ == Kind::list || s.overlaps()) any = std::nullopt;
    std::vector<IndexSet const*> pieces;
    for (auto const& p : s.pieces_) pieces.push_back(&p);
    if (!pieces.empty()) take(repeat(pieces));
    for (std::size_t j = 0; j < i; ++j) take(meet(*sets[j], s));
  }
  return any;
}

std::string IndexSet::describe() const {
  switch (kind_) {
    case Kind::contiguous: return "contiguous";
    case Kind::strided: return format("strided {} x {} x {}", dx_, dy_, dz_);
    case Kind::pieces: return format("{} pieces", pieces_.size());
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
  if (kind_ == Kind::pieces)
    return in_pieces(first, n, [&](IndexSet const& p, i64 at, i64 m, i64 done) { p.move<Pack>(dense + done * unit, spread, unit, at, m); });
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
  if (kind_ == Kind::pieces)
    return in_pieces(first, n, [&](IndexSet const& p, i64 at, i64 m, i64 done) { p.combine(op, b + done * unit, data, unit, at, m); });
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
