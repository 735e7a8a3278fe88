#include "asterism/la/products/row_shapes.hpp"

namespace asterism::la {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

u64 mixed(u64 x) {
  x *= 0x9e3779b97f4a7c15u;
  return x ^ x >> 32;
}

}  // namespace

template <class T>
Buffer<RowShape> shapes_of(Rows<T> const& B) {
  Buffer<RowShape> out(B.count);
  in_shares(B.count, B.ptr.data(), [&](i32 begin, i32 end) {
    constexpr std::size_t slots = 4096;
    std::vector<i32> of_hash(slots, -1);  // the newest row
    auto const* const ptr = B.ptr.data();
    auto const* const col = B.col.data();
    auto const same = [=](i32 i, i32 k) {
      auto const *const x = col + ptr[i], *const y = col + ptr[k];
      i64 const n = ptr[i + 1] - ptr[i];
      if (n != ptr[k + 1] - ptr[k]) return false;
      i32 const shift = x[0] - y[0];
      i32 other = 0;
      for (i64 e = 0; e < n; ++e) other |= (x[e] - y[e]) ^ shift;
      return other == 0;
    };
    i64 hits = 0, misses = 0;
    i32 last = -1;
    for (i32 i = begin; i < end; ++i) {
      auto const *const c = col + ptr[i], *const c_end = col + ptr[i + 1];
      if (c == c_end) {
        out[i] = {-1, 0};
        continue;
      }
      i32 number = i;
      if (last >= 0 && same(i, last)) {
        number = last;
        ++hits;
      } else if (misses < hits + 1024) {
        u64 h = 0;
        for (auto const* at = c; at < c_end; ++at) h += mixed(u64(*at - *c) + (u64(at - c) << 32) + 1);
        auto& found = of_hash[std::size_t(mixed(h) % slots)];
        if (found >= 0 && same(i, found)) number = found, ++hits;
        else found = i, ++misses;
      }
      last = number;
      out[i] = {number, *c};
    }
  });
  return out;
}

bool ProductShapes::is(i32 shape) const {
  auto const& s = shapes_[std::size_t(shape)];
  auto const n = row_.size();
  if (std::size_t(s.terms) != n) return false;
  auto const *const x = keys_.data() + s.keys, *const y = row_.data();
  u64 other = 0;
  for (std::size_t t = 0; t < n; ++t) other |= x[t] ^ y[t];
  return other == 0;
}

ProductShapes::Shape const* ProductShapes::find(i32 const* columns, i64 n, RowShape const* right) {
  row_.resize(std::size_t(n));
  i64 t = 0;
  while (t < n && right[columns[t]].number < 0) ++t;
  shift_ = t < n ? right[columns[t]].first_column : 0;
  for (t = 0; t < n; ++t) {
    auto const s = right[columns[t]];
    row_[std::size_t(t)] = u64(std::uint32_t(s.number)) << 32 | std::uint32_t(s.number < 0 ? 0 : s.first_column - shift_);
  }
  i32 found = -1;
  if (last_ >= 0) {
    auto const next = shapes_[std::size_t(last_)].next;
    if (is(last_)) found = last_;
    else if (next >= 0 && is(next)) found = next;
  }
  if (found < 0) {
    u64 h = 0;
    for (t = 0; t < n; ++t) h += mixed(row_[std::size_t(t)] ^ u64(t) << 24);
    slot_ = std::size_t(mixed(h) % slots);
    auto const newest = of_hash_[slot_];
    if (newest >= 0 && is(newest)) found = newest;
  }
  if (found < 0) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  if (last_ >= 0 && found != last_) shapes_[std::size_t(last_)].next = found;
  last_ = found;
  return &shapes_[std::size_t(found)];
}

void ProductShapes::add(i32 const* columns, i64 length, i64 places) {
  auto const number = i32(shapes_.size());
  shapes_.push_back({i64(keys_.size()), i64(columns_.size()), places, i32(row_.size()), i32(length), -1});
  keys_.insert(keys_.end(), row_.begin(), row_.end());
  for (i64 l = 0; l < length; ++l) columns_.push_back(columns[l] - shift_);
  of_hash_[slot_] = number;
  if (last_ >= 0) shapes_[std::size_t(last_)].next = number;
  last_ = number;
}

void ProductShapes::clear() {
  keys_.clear();
  columns_.clear();
  shapes_.clear();
  of_hash_.assign(slots, -1);
  last_ = -1;
}

#define INSTANTIATE(T) template Buffer<RowShape> shapes_of(Rows<T> const&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
