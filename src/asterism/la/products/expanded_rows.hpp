// Short rows of a product, summed in registers: values of a row on the right go to their places as vectors. For *.kernels.cpp alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>
#endif

#include "asterism/la/products/row_shapes.hpp"

namespace asterism::la {
namespace {  // each file's own, so that the compiler inlines what has one caller

constexpr std::int64_t most_expanded = 64;  // columns of a row

/// Columns in a vector.
template <class T>
constexpr int lanes = int(64 / sizeof(T));

/// Values of rows. Behind each row as many may be read as a row that is expanded takes: the last ones of all are a copy.
template <class T>
class RoomyValues {
 public:
  RoomyValues(T const* from, std::int64_t n) : from_(from), limit_(std::max(std::int64_t(0), n - room)) {
    std::fill(std::copy(from + limit_, from + n, last_), last_ + 2 * room, T(0));
  }
  /// Values from there on are where they were.
  std::int64_t limit() const { return limit_; }
  T const* data() const { return from_; }
  T const* at(std::int64_t p) const { return p < limit_ ? from_ + p : last_ + (p - limit_); }

 private:
  static constexpr std::int64_t room = most_expanded + lanes<T>;
  T const* from_;
  std::int64_t limit_;
  T last_[2 * room];
};

/// How vectors are spread to their places.
template <class T>
struct Expansion {
  static constexpr bool exists = false;
};
#if defined(__AVX512F__) && defined(__AVX512DQ__)
template <>
struct Expansion<double> {
  static constexpr bool exists = true;
  using Mask = __mmask8;
  using Vector = __m512d;
  static Vector all(double a) { return _mm512_set1_pd(a); }
  static Vector load(double const* p) { return _mm512_loadu_pd(p); }
  static void store(Vector s, Mask m, double* to) { _mm512_mask_storeu_pd(to, m, s); }
  /// s + a b, where b has the values of the places that the mask has, one after the other. Not by an intrinsic: the compiler fuses here
  /// what it fuses where terms are added one by one, or neither.
  static Vector sum(Vector s, Mask m, Vector a, Vector b) {
    asm("" : "+v"(b));  // in a register: AMD's processors take some 20 cycles to spread what is in memory
    return _mm512_mask_mov_pd(s, m, s + a * _mm512_maskz_expand_pd(m, b));
  }
  /// s + a b[index], where the byte of a place is not 0 but 128 and the index
  static Vector sum(Vector s, std::uint8_t const* indices, Vector a, Vector b) {
    auto const index = _mm512_maskz_cvtepi8_epi64(-1, _mm_loadl_epi64(reinterpret_cast<__m128i const*>(indices)));
    return _mm512_mask_mov_pd(s, _mm512_movepi64_mask(index), s + a * _mm512_maskz_permutexvar_pd(-1, index, b));
  }
};
template <>
struct Expansion<float> {
  static constexpr bool exists = true;
  using Mask = __mmask16;
  using Vector = __m512;
  static Vector all(float a) { return _mm512_set1_ps(a); }
  static Vector load(float const* p) { return _mm512_loadu_ps(p); }
  static void store(Vector s, Mask m, float* to) { _mm512_mask_storeu_ps(to, m, s); }
  static Vector sum(Vector s, Mask m, Vector a, Vector b) {
    asm("" : "+v"(b));
    return _mm512_mask_mov_ps(s, m, s + a * _mm512_maskz_expand_ps(m, b));
  }
  static Vector sum(Vector s, std::uint8_t const* indices, Vector a, Vector b) {
    auto const index = _mm512_maskz_cvtepi8_epi32(-1, _mm_loadu_si128(reinterpret_cast<__m128i const*>(indices)));
    return _mm512_mask_mov_ps(s, _mm512_movepi32_mask(index), s + a * _mm512_maskz_permutexvar_ps(-1, index, b));
  }
};
#endif

/// How the places of a row's terms are written. Vectors of the row follow each other: of each term a mask, or an index for each place;
/// and, unless all of the term's values are in one vector that indices lead to, where in the term's row those of each vector begin.
template <class T>
constexpr std::int64_t bytes_of_vector(PlaceForm form) {
  return form == PlaceForm::masks ? lanes<T> / 8 + 1 : lanes<T> + (form == PlaceForm::indices_from ? 1 : 0);
}

/// f(form, vectors), as constants. Rows that have masks have at most four vectors.
template <class T, class F>
void with_vectors(PlaceForm form, std::int64_t length, F const& f) {
  auto const vectors = (length + lanes<T> - 1) / lanes<T>;
  auto const with = [&]<PlaceForm is, int... n>(std::integral_constant<PlaceForm, is> tag, std::integer_sequence<int, n...>) {
    (void)((vectors == n + 1 && (f(tag, std::integral_constant<int, n + 1>()), true)) || ...);
  };
  constexpr int most = int(most_expanded / lanes<T>);
  using Most = std::make_integer_sequence<int, most>;
  if (form == PlaceForm::indices) return with(std::integral_constant<PlaceForm, PlaceForm::indices>(), Most());
  if (form == PlaceForm::masks)
    return with(std::integral_constant<PlaceForm, PlaceForm::masks>(), std::make_integer_sequence<int, std::min(most, 4)>());
  with(std::integral_constant<PlaceForm, PlaceForm::indices_from>(), Most());
}

/// A row of the product. Each sum goes one term after the other, and a place that a term has not is left alone.
template <PlaceForm form, int vectors, class T, class Right>
void sum_vectors(std::uint8_t const* place, std::int64_t terms, std::int32_t const* rows, std::int32_t shift, T const* factors,
                 std::int64_t stride, Right const& right, T* to, std::int64_t length) {
  using E = Expansion<T>;
  using Mask = typename E::Mask;
  typename E::Vector sums[vectors] = {};
  for (std::int64_t t = 0; t < terms; ++t, place += vectors * bytes_of_vector<T>(form)) {
    T const* const b = right.roomy_values(rows[t] + shift);
    auto const a = E::all(factors[t * stride]);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      if constexpr (form == PlaceForm::masks) {
        Mask mask;
        std::memcpy(&mask, place + v * sizeof mask, sizeof mask);
        sums[v] = E::sum(sums[v], mask, a, E::load(b + place[vectors * sizeof mask + v]));
      } else {
        auto const from = form == PlaceForm::indices ? 0 : place[vectors * lanes<T> + v];
        sums[v] = E::sum(sums[v], place + v * lanes<T>, a, E::load(b + from));
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    auto const left = length - v * lanes<T>;
    E::store(sums[v], v + 1 < vectors ? Mask(-1) : Mask(Mask(-1) >> (lanes<T> - left)), to + v * lanes<T>);
  }
}

/// The places of a term: those of the values of its row, ascending.
template <class T>
class TermPlaces {
 public:
  /// f(q) is the place of value q of n. False if they do not ascend.
  template <class F>
  bool set(PlaceForm form, std::int64_t n, F const& f) {
    bool const indices = form != PlaceForm::masks;
    if (indices) std::memset(numbers_, 0, sizeof numbers_);
    std::memset(masks_, 0, sizeof masks_);
    std::memset(from_, 0, sizeof from_);
    for (std::int64_t q = 0, last = -1; q < n; ++q) {
      std::int64_t const place = f(q), v = place / lanes<T>;
      if (place <= last) return false;
      if (masks_[v] == 0) from_[v] = std::uint8_t(q);
      masks_[v] |= Mask(1u << place % lanes<T>);
      if (indices) numbers_[place] = std::uint8_t(128 + q);
      last = place;
    }
    return true;
  }
  /// Writes them for so many vectors, and returns what is behind them.
  std::uint8_t* write(PlaceForm form, std::int64_t vectors, std::uint8_t* to) const {
    if (form == PlaceForm::masks) {
      auto const bytes = vectors * std::int64_t(sizeof(Mask));
      std::memcpy(to, masks_, std::size_t(bytes));
      return std::copy_n(from_, vectors, to + bytes);
    }
    to = std::copy_n(numbers_, vectors * lanes<T>, to);
    if (form == PlaceForm::indices) return to;
    auto* const numbers = to - vectors * lanes<T>;
    for (std::int64_t l = 0; l < vectors * lanes<T>; ++l)
      if (numbers[l] != 0) numbers[l] = std::uint8_t(numbers[l] - from_[l / lanes<T>]);
    return std::copy_n(from_, vectors, to);
  }

 private:
  using Mask = std::conditional_t<lanes<T> == 8, std::uint8_t, std::uint16_t>;
  static constexpr int most = int(most_expanded / lanes<T>);
  std::uint8_t numbers_[most_expanded], from_[most];  // of values, from 128 on, at their places; of the first value in each vector
  Mask masks_[most];
};

}  // namespace
}  // namespace asterism::la
