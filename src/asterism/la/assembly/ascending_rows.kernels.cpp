#include "asterism/la/assembly/ascending_rows.kernels.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "asterism/base/dtype.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;
using u64 = std::uint64_t;

/// Two ascending halves of n keys as one: from both ends at once, so that neither half ends before the loop does. There are no branches,
/// which columns in any order would have the processor guess wrong.
void merge(u64 const* from, i64 n, u64* to) {
  i64 low = 0, high = n / 2, last_low = n / 2 - 1, last_high = n - 1;
  for (i64 k = 0; k < n / 2; ++k) {
    u64 const a = from[low], b = from[high], c = from[last_low], d = from[last_high];
    bool const first = a <= b, last = c > d;
    to[k] = first ? a : b;
    low += first;
    high += !first;
    to[n - 1 - k] = last ? c : d;
    last_low -= last;
    last_high -= !last;
  }
}

/// The places of a row's columns in ascending order; equal ones stay in theirs.
template <class I>
class Order {
 public:
  template <class F>
  void each(I const* columns, i64 n, F const& f) {
    if (n == 0) return;
    I least = columns[0], most = columns[0];
    for (i64 k = 1; k < n; ++k) {
      least = std::min(least, columns[k]);
      most = std::max(most, columns[k]);
    }
    if (u64(most) - u64(least) >= u64(1) << 32 || n >= i64(1) << 31) {
      pairs_.clear();
      for (i64 k = 0; k < n; ++k) pairs_.emplace_back(columns[k], k);
      std::sort(pairs_.begin(), pairs_.end());
      for (auto const& [column, place] : pairs_) f(place);
      return;
    }
    auto const size = i64(std::bit_ceil(u64(n)));
    if (std::ssize(keys_) < 2 * size) keys_.resize(std::size_t(2 * size));
    u64 *from = keys_.data(), *to = from + size;
    for (i64 k = 0; k < n; ++k) from[k] = (u64(columns[k]) - u64(least)) << 32 | u64(k);
    std::fill(from + n, from + size, ~u64(0));
    for (i64 length = 2; length <= size; length *= 2) {
      for (i64 at = 0; at < size; at += length) merge(from + at, length, to + at);
      std::swap(from, to);
    }
    for (i64 k = 0; k < n; ++k) f(i64(from[k] & 0xffffffff));
  }

 private:
  std::vector<u64> keys_;
  std::vector<std::pair<I, i64>> pairs_;
};

}  // namespace

template <class I, class T>
void ascending_rows(device::Executor& executor, i64 n, I const* offsets, I const* columns, T const* values, I* lengths, I* out_columns,
                    T* out_values) {
  device::parallel_ranges(
      executor, n,
      [=](i64 begin, i64 end) {
        Order<I> order;
        for (i64 r = begin; r < end; ++r) {
          i64 const first = offsets[r];
          i64 to = first;
          order.each(columns + first, offsets[r + 1] - first, [&](i64 place) {
            auto const column = columns[first + place];
            if (to > first && out_columns[to - 1] == column) out_values[to - 1] += values[first + place];
            else out_columns[to] = column, out_values[to++] = values[first + place];
          });
          lengths[r] = I(to - first);
        }
      },
      256);
}

#define INSTANTIATE_FOR(I, T) template void ascending_rows(device::Executor&, i64, I const*, I const*, T const*, I*, I*, T*);
#define INSTANTIATE(T)             \
  INSTANTIATE_FOR(std::int32_t, T) \
  INSTANTIATE_FOR(std::int64_t, T)
ASTERISM_FOR_DTYPES(INSTANTIATE)
#undef INSTANTIATE
#undef INSTANTIATE_FOR

}  // namespace asterism::la::kernel
