#include "asterism/la/products/row_shapes.hpp"

#include <algorithm>
#include <atomic>

namespace asterism::la {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

u64 mixed(u64 x) {
  x *= 0x9e3779b97f4a7c15u;
  return x ^ x >> 32;
}

/// Returns nothing if equal rows are asked for and few are equal: products would look in vain, and find fewer that are alike.
template <bool equal, class T>
Buffer<RowShape> shapes(WideRows<T> const& B) {
  Buffer<RowShape> out(B.count());
  std::atomic<bool> few{false};
  in_shares(B.own.count, B.own.ptr.data(), [&](i32 begin, i32 end) {
    constexpr std::size_t slots = 4096;
    struct Shape {
      i32 row, next;  // the newest row; the shape that came after it
    };
    std::vector<Shape> known;
    std::vector<i32> of_hash(slots, -1);
    auto const* const ptr = B.own.ptr.data();
    auto const* const col = B.own.col.data();
    [[maybe_unused]] auto const* const val = B.own.val.data();
    auto* const to = out.data() + B.below;
    auto const same = [=](i32 i, i32 k) {
      auto const *const x = col + ptr[i], *const y = col + ptr[k];
      i64 const n = ptr[i + 1] - ptr[i];
      if (n != ptr[k + 1] - ptr[k]) return false;
      i32 const shift = x[0] - y[0];
      i32 other = 0;
      for (i64 e = 0; e < n; ++e) other |= (x[e] - y[e]) ^ shift;
      if constexpr (!equal) return other == 0;
      ValueWords<T> const mine(val + ptr[i], n), its(val + ptr[k], n);
      u64 differ = 0;
      for (i64 w = 0; w < mine.size; ++w) differ |= mine[w] ^ its[w];
      return other == 0 && differ == 0;
    };
    i64 hits = 0, misses = 0;
    i32 last = -1;
    for (i32 i = begin; i < end; ++i) {
      auto const *const c = col + ptr[i], *const c_end = col + ptr[i + 1];
      if (c == c_end) {
        to[i] = {RowShape::empty, 0};
        continue;
      }
      if (equal && (few || 16 * misses > hits + 4096)) return (void)(few = true);
      if (misses >= hits + 1024) {
        to[i] = {i + B.below, *c};
        continue;
      }
      i32 number = last >= 0 ? known[std::size_t(last)].next : -1;
      if (number >= 0 && same(i, known[std::size_t(number)].row)) {
        ++hits;
      } else {
        u64 h = 0;
        for (auto const* at = c; at < c_end; ++at) h += mixed(u64(*at - *c) + (u64(at - c) << 32) + 1);
        if (equal) {
          ValueWords<T> const words(val + ptr[i], c_end - c);
          for (i64 w = 0; w < words.size; ++w) h += mixed(words[w] ^ u64(w) << 48);
        }
        auto& found = of_hash[std::size_t(mixed(h) % slots)];
        if (found >= 0 && same(i, known[std::size_t(found)].row)) {
          ++hits;
        } else {
          ++misses;
          found = i32(known.size());
          known.push_back({i, -1});
        }
        number = found;
        if (last >= 0) known[std::size_t(last)].next = number;
      }
      last = number;
      to[i] = {known[std::size_t(number)].row + B.below, *c};
    }
  });
  if (few) return {};
  if (B.far.count == 0) return out;
  auto const own_end = B.below + B.own.count;
  for (i32 k = 0; k < B.count(); ++k) {
    if (k == B.below) k = own_end;
    if (k == B.count()) break;
    auto const row = B.row(k);
    out[k] = row.size == 0 ? RowShape{RowShape::empty, 0} : RowShape{k, row.columns[0]};
  }
  return out;
}

}  // namespace

template <class T>
Buffer<RowShape> shapes_of(WideRows<T> const& B) {
  return shapes<false>(B);
}
template <class T>
Buffer<RowShape> equal_rows_of(WideRows<T> const& B) {
  return shapes<true>(B);
}

i32 ProductShapes::find_row() {
  u64 h = 0;
  for (std::size_t t = 0; t < row_.size(); ++t) h += mixed(row_[t] ^ u64(t) << 24);
  slot_ = std::size_t(mixed(h) % slots);
  auto const found = of_hash_[slot_];
  auto const same = [&](Key const& k) {
    return k.is_of(terms_, i64(row_.size()) - terms_) && std::equal(row_.begin(), row_.end(), keys_.begin() + k.begin);
  };
  if (found < 0 || !same(known_[std::size_t(found)])) {
    ++misses_;
    return -1;
  }
  ++hits_;
  if (last_ >= 0) known_[std::size_t(last_)].next = found;
  last_ = found;
  return known_[std::size_t(found)].shape;
}

void ProductShapes::append(i32 const* columns, i64 length, i32 shift) {
  columns_.resize(columns_.size() - chunk);
  for (i64 l = 0; l < length; ++l) columns_.push_back(columns[l] - shift);
  columns_.resize(columns_.size() + chunk);
}

i32 ProductShapes::add(i32 const* columns, i64 length, Places places) {
  auto const number = i32(known_.size());
  shapes_.push_back({i64(columns_.size() - chunk), places.begin, i32(length), places.form});
  append(columns, length, shift_);
  known_.push_back({i64(keys_.size()), terms_, i32(row_.size()) - terms_, i32(shapes_.size()) - 1, -1});
  keys_.insert(keys_.end(), row_.begin(), row_.end());
  of_hash_[slot_] = number;
  if (last_ >= 0) known_[std::size_t(last_)].next = number;
  last_ = number;
  return i32(shapes_.size()) - 1;
}

i32 ProductShapes::add_alone(i32 const* columns, i64 length, Places places) {
  shift_ = 0;
  shapes_.push_back({i64(columns_.size() - chunk), places.begin, i32(length), places.form});
  if (columns) append(columns, length, 0);
  return i32(shapes_.size()) - 1;
}

void ProductShapes::forget(bool keep) {
  keys_.clear();
  known_.clear();
  of_hash_.assign(slots, -1);
  last_ = -1;
  if (!keep) {
    forgotten_ += i32(shapes_.size());
    columns_.assign(chunk, 0);
    shapes_.clear();
  }
  columns_before_ = columns_.size();
}

void ProductShapes::forget_keys() {
  keys_ = row_ = {};
  known_ = {};
  of_hash_ = {};
  columns_.shrink_to_fit();
  shapes_.shrink_to_fit();
}

#define INSTANTIATE(T)                                     \
  template Buffer<RowShape> shapes_of(WideRows<T> const&); \
  template Buffer<RowShape> equal_rows_of(WideRows<T> const&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
