#include "asterism/la/formats/sell/sell_format.kernels.hpp"

#include <algorithm>
#include <utility>

#include "asterism/base/dtype.hpp"
#include "asterism/la/formats/simd_group.hpp"

namespace asterism::la::kernel {
namespace {

using i64 = std::int64_t;

/// Lanes of an index of two or four in one load: the loads of x are what the loop is bound by. Word by word: for an array of them on the
/// stack g++ 12 writes aligned vectors where a leaf function's frame is not aligned.
template <class W>
inline W load_word(void const* p) {
  W word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}
template <class G, class I, std::size_t... L, class T>
inline typename G::type gather_register(std::index_sequence<L...>, T const* x, I const* c) {
  constexpr std::size_t per_word = 8 / sizeof(I) < sizeof...(L) ? 8 / sizeof(I) : sizeof...(L);
  using Word = std::conditional_t<per_word * sizeof(I) == 8, std::uint64_t, std::uint32_t>;
  return typename G::type{x[I(load_word<Word>(c + L / per_word * per_word) >> (8 * sizeof(I) * (L % per_word)))]...};
}

// Scalar loads put together: the processor's own gathers are up to twice as slow, since the microcode of 2023 on Intel's.
template <class G, class I, class T>
inline typename G::type gather_group(T const* x, I const* c) {
  if constexpr (requires { typename G::Half; })
    return {gather_group<typename G::Half>(x, c), gather_group<typename G::Half>(x, c + G::half)};
  else return gather_register<G>(std::make_index_sequence<sizeof(typename G::type) / sizeof(T)>(), x, c);
}
template <class I, class T>
inline typename Group<T>::type gather(T const* x, I const* c) {
  return gather_group<Group<T>>(x, c);
}

// What becomes of the sums of a group: as with rows in csr_format.kernels.cpp.
constexpr std::int32_t kept_groups = 32;
template <class T>
struct Keep {
  typename Group<T>::type* sums;
  void operator()(std::int32_t g, typename Group<T>::type s) const { sums[g] = s; }
};
template <class T>
struct Assign {
  T* y;
  std::int32_t const* id;
  bool consecutive;
  void operator()(std::int32_t g, typename Group<T>::type s) const {
    auto const* const rows = id + g * group_rows<T>;
    if (consecutive) {
      Group<T>::store(s, y + *rows);
    } else {
      T lanes[group_rows<T>];
      Group<T>::store(s, lanes);
#pragma GCC unroll 16
      for (std::int32_t l = 0; l < group_rows<T>; ++l) y[rows[l]] = lanes[l];
    }
  }
};

/// Sums of some groups' rows; x from the run's base on. L: entries of a row, known to the compiler (the end of a loop over few
/// entries is mispredicted with each change of length); 0: any.
template <int L, bool Scattered, class I, class T, class V, class Out>
void sell_sums(std::int32_t groups, std::int32_t length, I const* c, V const* v, T const* xb, Out out) {
  constexpr std::int32_t W = group_rows<T>;
  for (std::int32_t g = 0; g < groups; ++g) {
    typename Group<T>::type s = {};
    if constexpr (L > 0) {
#pragma GCC unroll 16
      for (int p = 0; p < L; ++p) s += Group<T>::load(v + p * W) * gather(xb, c + p * W);
      c += L * W;
      v += L * W;
    } else {
      for (std::int32_t p = 0; p < length; ++p, c += W, v += W) {
        if constexpr (Scattered)
          for (std::int32_t l = 0; l < W; ++l) __builtin_prefetch(xb + c[ahead - W + l]);
        __builtin_prefetch(v + 32 * W);  // two streams from the third cache: a tenth faster than left to the hardware
        __builtin_prefetch(c + 32 * W);
        s += Group<T>::load(v) * gather(xb, c);
      }
    }
    out(g, s);
  }
}

template <class I, class T, class V, class Out>
auto sell_sums_of(std::int32_t length, bool scattered) {
  if constexpr (sizeof(I) == 4)
    if (scattered) return &sell_sums<0, true, I, T, V, Out>;
  switch (length) {
    case 1: return &sell_sums<1, false, I, T, V, Out>;
    case 2: return &sell_sums<2, false, I, T, V, Out>;
    case 3: return &sell_sums<3, false, I, T, V, Out>;
    case 4: return &sell_sums<4, false, I, T, V, Out>;
    default: break;
  }
  if constexpr (sizeof(T) == 8)  // 16 lanes of so many entries are long by themselves
    switch (length) {
      case 5: return &sell_sums<5, false, I, T, V, Out>;
      case 6: return &sell_sums<6, false, I, T, V, Out>;
      case 7: return &sell_sums<7, false, I, T, V, Out>;
      case 8: return &sell_sums<8, false, I, T, V, Out>;
      default: break;
    }
  return &sell_sums<0, false, I, T, V, Out>;
}

/// The rows of one group for several columns: row(l) is lane l's row, source(p, l) the row of x that its entry p takes. Not inlined: the
/// loops for one column lose a tenth when this shares their registers.
template <Epilogue E, class T, class V, class Row, class Source>
[[gnu::noinline]] void group_columns(std::int32_t length, V const* v, Row const& row, Source const& source, std::int64_t k, T const* x,
                                     T* y, T const* b, T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  for (std::int32_t l = 0; l < W; ++l)
    row_of_columns<E>(
        length, [=](std::int64_t p) { return T(v[p * W + l]); }, [=](std::int64_t p) { return std::int64_t(source(std::int32_t(p), l)); },
        std::int64_t(row(l)), k, x, y, b, w);
}

template <Epilogue E, class I, class T, class V>
void sell_run(SliceRun const& run, bool scattered, std::int32_t const* id, I const* c, V const* v, i64 k, T const* x, T* y, T const* b,
              T const* w) {
  constexpr std::int32_t W = group_rows<T>;
  i64 const base = run.base == SliceRun::wide ? 0 : run.base;
  if (k != 1) {
    for (std::int32_t g = 0; g < run.groups; ++g, id += W, c += i64(W) * run.length, v += i64(W) * run.length) {
      auto const row = [=](std::int32_t l) { return id[l]; };
      auto const source = [=](std::int32_t p, std::int32_t l) { return base + i64(c[p * W + l]); };
      group_columns<E>(run.length, v, row, source, k, x, y, b, w);
    }
    return;
  }
  if constexpr (E == Epilogue::assign) {
    auto const sum = sell_sums_of<I, T, V, Assign<T>>(run.length, scattered);
    return sum(run.groups, run.length, c, v, x + base, {y, id, run.consecutive != 0});
  }
  typename Group<T>::type sums[kept_groups];
  auto const sum = sell_sums_of<I, T, V, Keep<T>>(run.length, scattered);
  for (std::int32_t g = 0; g < run.groups; g += kept_groups) {
    auto const groups = run.groups - g < kept_groups ? run.groups - g : kept_groups;
    auto const at = i64(g) * W * run.length;
    sum(groups, run.length, c + at, v + at, x + base, {sums});
    for (std::int32_t i = 0; i < groups; ++i, id += W) {
      if (run.consecutive) {
        finish_group<E, T>(sums[i], *id, x, y, b, w);
      } else {
        T lanes[W];
        Group<T>::store(sums[i], lanes);
#pragma GCC unroll 16
        for (std::int32_t l = 0; l < W; ++l) finish<E>(lanes[l], id[l], 1, 0, x, y, b, w);
      }
    }
  }
}

template <Epilogue E, class T, class V>
void sell_with(Executor& executor, SellRows<T, V> const& a, i64 k, T const* x, T* y, T const* b, T const* w) {
  constexpr i64 W = group_rows<T>, serial = 1 << 14;
  auto const* const runs_end = a.runs + a.run_count;
  // shares of equal work: a group is in the one where its entries begin
  device::parallel_ranges(
      executor, runs_end[-1].entry_at + runs_end[-1].groups * W * runs_end[-1].length,
      [=](i64 begin, i64 end) {
        auto const* run = std::upper_bound(a.runs, runs_end, begin, [](i64 at, SliceRun const& r) { return at < r.entry_at; }) - 1;
        for (; run < runs_end && run->entry_at < end; ++run) {
          i64 const size = W * run->length;
          auto const groups_before = [&](i64 entry) {
            return std::min(i64(run->groups), (std::max(entry - run->entry_at, i64(0)) + size - 1) / size);
          };
          auto part = *run;
          auto const first = groups_before(begin);
          part.groups = std::int32_t(groups_before(end) - first);
          if (part.groups == 0) continue;
          auto const* const id = a.row_ids + run->first + first * W;
          auto const* const c = a.columns + run->column_at;
          auto const* const v = a.values + run->entry_at + first * size;
          if (run->base == SliceRun::wide)
            sell_run<E>(part, a.scattered, id, reinterpret_cast<std::uint32_t const*>(c) + first * size, v, k, x, y, b, w);
          else sell_run<E>(part, false, id, reinterpret_cast<std::uint16_t const*>(c) + first * size, v, k, x, y, b, w);
        }
      },
      serial);
}

}  // namespace

template <class T, class V>
void sell_product(Executor& executor, SellBlock<T, V> a, Epilogue e, i64 k, T const* x, T* y, T const* b, T const* w) {
  if constexpr (!is_complex_v<T>)
    if (a.grouped.run_count > 0)
      with_epilogue(e, [&](auto known) { sell_with<decltype(known)::value>(executor, a.grouped, k, x, y, b, w); });
  csr_product(executor, a.rest, e, k, x, y, b, w);
}

#define INSTANTIATE(T, V) template void sell_product(Executor&, SellBlock<T, V>, Epilogue, i64, T const*, T*, T const*, T const*);
ASTERISM_FOR_STORED(INSTANTIATE)
#undef INSTANTIATE

}  // namespace asterism::la::kernel
