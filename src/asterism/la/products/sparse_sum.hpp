// Rows of a product, each a sum of multiples of sparse rows.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "asterism/la/products/rows.hpp"

namespace asterism::la {

/// n different columns c in ascending order: up to some hundred by counting the smaller ones, which has no branch to mispredict.
inline void sort_columns(std::int32_t const* c, std::int32_t n, std::int32_t* out) {
  if (n > 200) {
    std::copy_n(c, n, out);
    std::sort(out, out + n);
    return;
  }
  for (std::int32_t l = 0; l < n; ++l) {
    std::int32_t const column = c[l];
    std::int32_t smaller = 0;
#pragma omp simd reduction(+ : smaller)
    for (std::int32_t m = 0; m < n; ++m) smaller += c[m] < column;
    out[smaller] = column;
  }
}

/// A row as a sum of multiples of sparse rows (Gustavson 1978). The terms of short rows wait in a list, copied as whole vectors, since
/// the end of a loop over a few entries is a coin toss for the branch predictor. If there are few in all, vectors of them are compared.
/// Else sums stand at their columns, so no address waits for a load of another table, and a list has the columns that occur.
template <class T>
class SparseSum {
 public:
  explicit SparseSum(std::int32_t columns)
      : sums_(columns, T(0)),
        rows_(columns, std::int32_t(0)),
        columns_(columns + 1),
        waiting_columns_(most_waiting),
        waiting_factors_(most_waiting),
        waiting_values_(most_waiting) {}

  /// a times the row c, v of n entries; `room` entries may be read. Inlined, so that what is rare may not be: g++ 12 decides otherwise.
  [[gnu::always_inline]] void add(T a, std::int32_t const* c, T const* v, std::int64_t n, std::int64_t room) {
    if (n > 2 * width || n + width > room) return add_long(a, c, v, n);
    if (waiting_ + 3 * width > most_waiting) add_waiting();
    for (std::int64_t r = 0; r < n; r += width) {
      auto const at = waiting_ + r;
      std::memcpy(waiting_columns_.data() + at, c + r, width * sizeof *c);
      std::memcpy(static_cast<void*>(waiting_values_.data() + at), v + r, width * sizeof *v);
      T* const factors = waiting_factors_.data() + at;
#pragma omp simd
      for (int k = 0; k < width; ++k) factors[k] = a;
    }
    waiting_ += std::int32_t(n);
  }

  struct Terms {
    std::int32_t* columns;
    T *factors, *values;
  };
  /// Where n terms may be written; those that count are added().
  Terms room_for(std::int64_t n) {
    if (n > most_waiting) {
      add_waiting();
      waiting_columns_ = Buffer<std::int32_t>(n);
      waiting_factors_ = Buffer<T>(n);
      waiting_values_ = Buffer<T>(n);
    } else if (waiting_ + n > most_waiting) {
      add_waiting();
    }
    return {waiting_columns_.data() + waiting_, waiting_factors_.data() + waiting_, waiting_values_.data() + waiting_};
  }
  void added(std::int32_t n) { waiting_ += n; }

  /// No row is longer.
  std::int64_t most() const { return std::int64_t(size_) + waiting_; }
  /// Writes the row, ascending if asked for, and returns its length. A new row begins.
  std::int32_t take(std::int32_t* columns, T* values, bool ascending) {
#if defined(__AVX2__)
    if (size_ == 0 && waiting_ <= 16) return take_few<16>(columns, values, ascending);  // half of the comparisons
    if (size_ == 0 && waiting_ <= 32) return take_few<32>(columns, values, ascending);
#endif
    add_waiting();
    if (ascending) sort_columns(columns_.data(), size_, columns);
    else std::copy_n(columns_.data(), size_, columns);
    T* const sums = sums_.data();
    for (std::int32_t l = 0; l < size_; ++l) {
      values[l] = sums[columns[l]];
      sums[columns[l]] = T(0);
    }
    ++row_;  // a rank has fewer than 2^31 rows
    return std::exchange(size_, 0);
  }

 private:
  static constexpr int width = 8;
  static constexpr std::int32_t most_waiting = 512;

  [[gnu::noinline]] void add_long(T a, std::int32_t const* c, T const* v, std::int64_t n) {
    add_waiting();
    add_terms(n, [=](std::int64_t r) { return c[r]; }, [=](std::int64_t) { return a; }, [=](std::int64_t r) { return v[r]; });
  }
  [[gnu::noinline]] void add_waiting() {
    add_terms(
        waiting_, [c = waiting_columns_.data()](std::int64_t r) { return c[r]; },
        [a = waiting_factors_.data()](std::int64_t r) { return a[r]; }, [v = waiting_values_.data()](std::int64_t r) { return v[r]; });
    waiting_ = 0;
  }

  /// Without branches: whether a column is new is a coin toss too.
  template <class Column, class Factor, class Value>
  void add_terms(std::int64_t n, Column const& c, Factor const& a, Value const& v) {
    T* const ASTERISM_RESTRICT sums = sums_.data();
    std::int32_t* const ASTERISM_RESTRICT rows = rows_.data();
    std::int32_t* const ASTERISM_RESTRICT columns = columns_.data();
    std::int32_t const row = row_;
    std::int32_t end = size_;
    for (std::int64_t r = 0; r < n; ++r) {
      std::int32_t const column = c(r);
      columns[end] = column;
      end += rows[column] != row;
      rows[column] = row;
      sums[column] += a(r) * v(r);
    }
    size_ = end;
  }

#if defined(__AVX2__)  // else few comparisons an instruction
  /// The row, of the waiting terms alone: terms with equal columns are added to the first one's. What is behind them counts nowhere.
  template <int most>
  std::int32_t take_few(std::int32_t* columns, T* values, bool ascending) {
    auto const* const c = waiting_columns_.data();
    auto const* const a = waiting_factors_.data();
    auto const* const v = waiting_values_.data();
    std::int32_t const n = std::exchange(waiting_, 0);
    std::uint32_t firsts = 0;
    T sums[most];
    Lanes<most> const all(c);
    for (std::int32_t k = 0; k < n; ++k) {
      auto const first = std::countr_zero(all.equal(c[k]));
      firsts |= std::uint32_t(first == k) << k;
      sums[k] = T(0);
      sums[first] += a[k] * v[k];
    }
    std::int32_t at = 0;
    for (auto left = firsts; left != 0; left &= left - 1, ++at) {
      auto const k = std::countr_zero(left);
      auto const to = ascending ? std::popcount(all.smaller(c[k]) & firsts) : at;
      columns[to] = c[k];
      values[to] = sums[k];
    }
    return at;
  }

  /// So many columns in registers.
  template <int count>
  struct Lanes {
#if defined(__AVX512F__)
    static constexpr int of_register = 16;
    using Register = __m512i;
    static Register load(std::int32_t const* c) { return _mm512_loadu_si512(c); }
    static Register all(std::int32_t column) { return _mm512_set1_epi32(column); }
    static std::uint32_t is_equal(Register x, Register y) { return _mm512_cmpeq_epi32_mask(x, y); }
    static std::uint32_t is_less(Register x, Register y) { return _mm512_cmplt_epi32_mask(x, y); }
#else
    static constexpr int of_register = 8;
    using Register = __m256i;
    static Register load(std::int32_t const* c) { return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(c)); }
    static Register all(std::int32_t column) { return _mm256_set1_epi32(column); }
    static std::uint32_t is_equal(Register x, Register y) { return bits(_mm256_cmpeq_epi32(x, y)); }
    static std::uint32_t is_less(Register x, Register y) { return bits(_mm256_cmpgt_epi32(y, x)); }
    static std::uint32_t bits(Register x) { return std::uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(x))); }
#endif
    static constexpr int registers = count / of_register;
    explicit Lanes(std::int32_t const* c) {
      for (int q = 0; q < registers; ++q) part[q] = load(c + of_register * q);
    }
    std::uint32_t equal(std::int32_t column) const {
      return each([x = all(column)](Register y) { return is_equal(y, x); });
    }
    std::uint32_t smaller(std::int32_t column) const {
      return each([x = all(column)](Register y) { return is_less(y, x); });
    }
    template <class F>
    std::uint32_t each(F const& f) const {
      std::uint32_t out = 0;
      for (int q = 0; q < registers; ++q) out |= f(part[q]) << (of_register * q);
      return out;
    }
    Register part[registers];
  };
#endif

  Buffer<T> sums_;
  Buffer<std::int32_t> rows_;     // that a column occurred in last
  Buffer<std::int32_t> columns_;  // one more is written to than there are
  Buffer<std::int32_t> waiting_columns_;
  Buffer<T> waiting_factors_, waiting_values_;
  std::int32_t waiting_ = 0, size_ = 0, row_ = 1;
};

template <class T, class Sum>
void add_row(Sum& sum, Rows<T> const& A, std::int32_t i, Rows<T> const& B) {
  auto const* const bp = B.ptr.data();
  auto const entries = B.nnz();
  for (auto p = A.ptr[i], last = A.ptr[i + 1]; p < last; ++p) {
    auto const k = A.col[p];
    sum.add(A.val[p], B.col.data() + bp[k], B.val.data() + bp[k], bp[k + 1] - bp[k], entries - bp[k]);
  }
}

template <class T, class Sum>
void append_row(Piece<T>& piece, Sum& sum, std::int64_t& length, bool ascending) {
  piece.make_room(sum.most());
  length = sum.take(piece.col.data() + piece.size, piece.val.data() + piece.size, ascending);
  piece.size += length;
}

}  // namespace asterism::la
