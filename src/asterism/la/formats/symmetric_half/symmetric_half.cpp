#include "asterism/la/formats/symmetric_half/symmetric_half.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/la/formats/symmetric_half/symmetric_half.kernels.hpp"

namespace asterism::la {

using kernel::HalfBlock;
using kernel::HalfReceived;

namespace {

/// Entries and their mirror images are the same, up to rounding.
template <class T>
void check_mirrored(Csr const& a, bool conjugates, std::int64_t first_row) {
  auto const mirror = transpose(a, conjugates);
  auto const ap = a.row_offsets(), mp = mirror.row_offsets();
  auto const ac = a.column_indices(), mc = mirror.column_indices();
  auto const av = a.entries<T>(), mv = mirror.entries<T>();
  double const rounding = 100 * epsilon_of(a.dtype);
  std::vector<double> largest(std::size_t(a.rows), 0.0);
  for (std::size_t r = 0; r < largest.size(); ++r)
    for (auto p = ap[r]; p < ap[r + 1]; ++p) largest[r] = std::max(largest[r], double(magnitude(av[std::size_t(p)])));
  char const* const hint = conjugates ? "A^H = A" : "A^T = A";
  for (std::int32_t r = 0; r < a.rows; ++r) {
    auto p = std::size_t(ap[std::size_t(r)]), m = std::size_t(mp[std::size_t(r)]);
    auto const pe = std::size_t(ap[std::size_t(r) + 1]), me = std::size_t(mp[std::size_t(r) + 1]);
    for (; p < pe || m < me; ++p, ++m) {
      bool const here = p < pe && (m == me || ac[p] <= mc[m]), there = m < me && (p == pe || mc[m] <= ac[p]);
      auto const c = here ? ac[p] : mc[m];
      ASTERISM_REQUIRE(
          here && there, value,
          "symmetric storage needs {}, but of ({}, {}) and ({}, {}) only one has an entry. Store the zero too, or keep the general "
          "storage.",
          hint, first_row + r, first_row + c, first_row + c, first_row + r);
      double const size = std::min(largest[std::size_t(r)], largest[std::size_t(c)]), off = double(magnitude(av[p] - mv[m]));
      ASTERISM_REQUIRE(std::isfinite(off), value,
                       "symmetric storage: the matrix has an entry that is NaN or infinite at ({}, {}) or ({}, {}).", first_row + r,
                       first_row + c, first_row + c, first_row + r);
      ASTERISM_REQUIRE(
          off <= rounding * size, value,
          "symmetric storage needs {}, but entry ({}, {}) and its mirror image differ by {}, where their rows have entries up to {}. "
          "Keep the general storage.",
          hint, first_row + r, first_row + c, off, size);
    }
  }
}

}  // namespace

SymmetricHalf::SymmetricHalf(Csr const& a, Kind kind, std::int64_t first_row) : SparseFormat(a), kind_(kind) {
  ASTERISM_REQUIRE(a.rows == a.cols, shape, "symmetric storage needs a square block; this one is {} x {}.", a.rows, a.cols);
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  auto const right_of_diagonal = [&](std::int32_t r) {
    auto const begin = col.begin() + ptr[std::size_t(r)], end = col.begin() + ptr[std::size_t(r) + 1];
    return std::upper_bound(begin, end, r) - col.begin();
  };
  // as many rows as keep columns within 16 bits; the cut does not depend on the number of threads
  std::vector<HalfBlock> blocks;
  std::vector<std::int32_t> halo, wanted;
  std::int64_t entries = 0, column_bytes = 0;
  constexpr std::int32_t most = 16384, fewest = 512, within_16_bits = 1 << 16;
  auto const usual = std::clamp(rows_ / 16, fewest, most);
  for (std::int32_t first = 0; first < rows_;) {
    for (auto n = std::min(usual, rows_ - first);; n /= 2) {
      wanted.clear();
      std::int64_t mine = 0;
      for (auto r = first; r < first + n; ++r)
        for (auto p = right_of_diagonal(r); p < ptr[std::size_t(r) + 1]; ++p, ++mine)
          if (auto const c = col[std::size_t(p)]; c >= first + n) wanted.push_back(c);
      std::sort(wanted.begin(), wanted.end());
      wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
      bool const narrow = n + std::int64_t(wanted.size()) <= within_16_bits;
      if (!(narrow || n <= fewest) || mine >= std::int64_t(1) << 32) {
        ASTERISM_REQUIRE(n > 1, unsupported, "symmetric storage: row {} alone has more than 2^32 entries.", first_row + first);
        continue;
      }
      blocks.push_back({first, n, std::int32_t(wanted.size()), !narrow, entries, column_bytes, std::int64_t(halo.size()), 0, 0});
      entries += mine;
      column_bytes += mine * (narrow ? 2 : 4);
      column_bytes += column_bytes % 4;  // the next block's may be wide
      halo.insert(halo.end(), wanted.begin(), wanted.end());
      first += n;
      break;
    }
  }
  checked_local_index(std::int64_t(halo.size()), "rows in halos of symmetric storage");
  // where the sums of halos go: by block, in the order of the halos
  std::vector<HalfReceived> received(halo.size());
  auto const block_of = [&](std::int32_t row) {
    return std::size_t(std::partition_point(blocks.begin(), blocks.end(), [row](auto const& b) { return b.first <= row; }) -
                       blocks.begin() - 1);
  };
  for (auto const row : halo) ++blocks[block_of(row)].received_end;
  std::int64_t at = 0;
  for (auto& b : blocks) {
    b.received_at = at;
    at += std::exchange(b.received_end, at);
  }
  for (std::size_t h = 0; h < halo.size(); ++h)
    received[std::size_t(blocks[block_of(halo[h])].received_end++)] = {halo[h], std::int32_t(h)};
  block_count_ = std::int32_t(blocks.size());
  blocks_ = Array::of(std::span<HalfBlock const>(blocks));
  halo_ = Array::of(std::span<std::int32_t const>(halo));
  received_ = Array::of(std::span<HalfReceived const>(received));
  diagonal_ = Array(std::size_t(rows_) * size_of(dtype_));
  ends_ = Array(std::size_t(rows_) * sizeof(std::uint32_t));
  columns_ = Array(std::size_t(column_bytes));
  values_ = Array(std::size_t(entries) * size_of(dtype_));
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    check_mirrored<T>(a, conjugates(), first_row);
    auto const val = a.entries<T>();
    auto* const diagonal = diagonal_.as<T>();
    auto* const values = values_.template as<T>();
    for (auto const& b : blocks) {
      std::int64_t e = 0;
      auto* const narrow = reinterpret_cast<std::uint16_t*>(columns_.as<std::byte>() + b.column_at);
      auto* const wide = reinterpret_cast<std::uint32_t*>(columns_.as<std::byte>() + b.column_at);
      auto const halo_begin = halo.begin() + b.halo_at;
      for (auto r = b.first; r < b.first + b.rows; ++r) {
        auto p = right_of_diagonal(r);
        bool const has_diagonal = p > ptr[std::size_t(r)] && col[std::size_t(p) - 1] == r;
        diagonal[r] = has_diagonal ? val[std::size_t(p) - 1] : T(0);
        if (!has_diagonal) without_diagonal_.push_back(r);
        for (; p < ptr[std::size_t(r) + 1]; ++p, ++e) {
          auto const c = col[std::size_t(p)];
          auto const place =
              c < b.first + b.rows ? c - b.first : b.rows + std::int32_t(std::lower_bound(halo_begin, halo_begin + b.halo, c) - halo_begin);
          if (b.wide) wide[e] = std::uint32_t(place);
          else narrow[e] = std::uint16_t(place);
          values[b.entry_at + e] = val[std::size_t(p)];
        }
        ends_.as<std::uint32_t>()[r] = std::uint32_t(e);
      }
    }
  });
}

template <class T>
kernel::HalfRows<T> SymmetricHalf::view() const {
  return {blocks_.as<HalfBlock>(),
          block_count_,
          conjugates(),
          diagonal_.as<T>(),
          ends_.as<std::uint32_t>(),
          columns_.as<std::byte>(),
          values_.as<T>(),
          halo_.as<std::int32_t>(),
          received_.as<HalfReceived>()};
}

template <class T, class F>
void SymmetricHalf::each(F const& f) const {
  auto const a = view<T>();
  auto missing = without_diagonal_.begin();
  for (std::int32_t n = 0; n < block_count_; ++n) {
    auto const& b = a.blocks[n];
    auto const* const narrow = reinterpret_cast<std::uint16_t const*>(a.columns + b.column_at);
    auto const* const wide = reinterpret_cast<std::uint32_t const*>(a.columns + b.column_at);
    std::uint32_t e = 0;
    for (auto i = b.first; i < b.first + b.rows; ++i) {
      if (missing != without_diagonal_.end() && *missing == i) ++missing;
      else f(i, i, a.diagonal[i]);
      for (; e < a.ends[i]; ++e) {
        auto const place = b.wide ? std::int32_t(wide[e]) : std::int32_t(narrow[e]);
        auto const j = place < b.rows ? b.first + place : a.halo[b.halo_at + place - b.rows];
        T const v = a.values[b.entry_at + e];
        f(i, j, v);
        f(j, i, conjugates() ? conj(v) : v);
      }
    }
  }
}

Csr SymmetricHalf::expanded() const {
  Csr out(dtype_, rows_, rows_, nnz_);
  auto const ptr = out.row_offsets();
  auto const col = out.column_indices();
  std::fill(ptr.begin(), ptr.end(), std::int64_t(0));
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const val = out.entries<T>();
    each<T>([&](std::int32_t i, std::int32_t, T) { ++ptr[std::size_t(i) + 1]; });
    for (std::size_t r = 0; r < std::size_t(rows_); ++r) ptr[r + 1] += ptr[r];
    std::vector<std::int64_t> next(ptr.begin(), ptr.end() - 1);
    // rows come in ascending order, so what is left of a row's diagonal comes first, and ascending
    each<T>([&](std::int32_t i, std::int32_t j, T v) {
      auto const at = std::size_t(next[std::size_t(i)]++);
      col[at] = j;
      val[at] = v;
    });
  });
  return out;
}

std::vector<double> SymmetricHalf::absolute_row_sums() const {
  std::vector<double> out(std::size_t(rows_), 0.0);
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    each<T>([&](std::int32_t i, std::int32_t, T v) { out[std::size_t(i)] += double(magnitude(v)); });
  });
  return out;
}

void SymmetricHalf::run(device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y, Array const& b,
                        Array const& w) const {
  auto const half = std::static_pointer_cast<SymmetricHalf const>(shared_from_this());
  auto const scalar = size_of(dtype_) * std::size_t(k);
  auto const sums = e == Epilogue::assign ? y : Array::fresh(queue, std::size_t(rows_) * scalar);
  auto const spilled = Array::fresh(queue, halo_.bytes() / sizeof(std::int32_t) * scalar);
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // on a GPU's queue both run on the host, which is counted: they are no functions of their own
    device::submit(
        queue,
        [half, k](device::Executor& executor, T const* from, T* to, T* over) {
          kernel::half_sums<T>(executor, half->view<T>(), k, from, to, over);
        },
        device::read<T>(x), device::write<T>(sums), device::write<T>(spilled));
    if (e == Epilogue::assign) {
      device::submit(
          queue,
          [half, k](device::Executor& executor, T* to, T const* over) {
            kernel::half_finish<T>(executor, half->view<T>(), Epilogue::assign, k, nullptr, to, nullptr, nullptr, to, over);
          },
          device::update<T>(sums), device::read<T>(spilled));
      return;
    }
    device::submit(
        queue,
        [half, e, k](device::Executor& executor, T const* from, T* to, T const* right, T const* weights, T* s, T const* over) {
          kernel::half_finish<T>(executor, half->view<T>(), e, k, from, to, right, weights, s, over);
        },
        device::read<T>(x), device::ArrayArgument<T>{y, written_by(e) == Writes::all_rows ? device::Access::write : device::Access::update},
        device::read<T>(b), device::read<T>(w), device::update<T>(sums), device::read<T>(spilled));
  });
}

double SymmetricHalf::bytes(std::int64_t k) const {
  auto const halo = double(halo_.bytes()) / sizeof(std::int32_t);
  return double(memory_bytes()) + double(k) * double(size_of(dtype_)) * (2 * double(rows_) + 3 * halo);  // read, written, read again
}

std::size_t SymmetricHalf::memory_bytes() const {
  return blocks_.bytes() + diagonal_.bytes() + ends_.bytes() + columns_.bytes() + values_.bytes() + halo_.bytes() + received_.bytes();
}

}  // namespace asterism::la
