#include "asterism/direct/multifrontal/explicit_triangles.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/device/host/memory.hpp"

namespace asterism::direct {
namespace {

/// D L^H; rows of a block of two have entries of both columns of L.
template <class T>
la::Csr product_with_pivots(std::int32_t n, std::vector<Entry<T>> const& lower, kernel::BlockDiagonal<T> const& d) {
  std::vector<std::vector<std::pair<std::int32_t, T>>> rows(static_cast<std::size_t>(n));
  for (auto const& e : lower) {
    T const v = conj(e.value);
    auto const j = e.column;
    rows[std::size_t(j)].emplace_back(e.row, d.diagonal[j] * v);
    if (d.lower[j] != T(0)) rows[std::size_t(j) + 1].emplace_back(e.row, d.lower[j] * v);
    if (j > 0 && d.lower[j - 1] != T(0)) rows[std::size_t(j) - 1].emplace_back(e.row, conj(d.lower[j - 1]) * v);
  }
  TriangleEntries<T> out;
  for (std::int32_t i = 0; i < n; ++i) {
    auto& row = rows[std::size_t(i)];
    std::sort(row.begin(), row.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    for (std::size_t p = 0; p < row.size();) {
      T sum(0);
      auto const j = row[p].first;
      for (; p < row.size() && row[p].first == j; ++p) sum += row[p].second;
      out.put_upper(i, j, sum);
    }
  }
  return csr_of(n, out.upper);
}

}  // namespace

void require_memory_for_triangles(std::string const& name, std::int64_t entries, Dtype dtype) {
  auto const there = device::host::available_memory();
  // all entries, as they come and in order; L and U, and one of them transposed
  double const bytes = double(entries) * double(3 * (size_of(dtype) + 8));
  ASTERISM_REQUIRE(there == 0 || bytes <= double(there), memory,
                   "{}: L and U on a rank need {} for their {} entries, and {} are there. Solves need no L and U; a larger machine, fewer "
                   "ranks on it, or float32 may have room.",
                   name, megabytes(bytes), entries, megabytes(double(there)));
}

template <class T>
void add_fronts(NumericFactors const& f, std::span<std::int32_t const> rows, std::span<std::int32_t const> columns,
                TriangleEntries<T>& to) {
  auto const row = [&](std::int32_t i) { return rows[std::size_t(i)]; };
  auto const column = [&](std::int32_t j) { return columns[std::size_t(j)]; };
  for (auto const& front : f.fronts)
    for (std::int32_t k = 0; k < front.pivots; ++k) {
      auto const p = front.first + k;
      T const* const values = front.panel.as<T>() + std::int64_t(k) * front.size;
      to.put_lower(row(p), column(p), f.kind == FactorKind::cholesky ? values[k] : T(1));
      for (std::int32_t i = k + 1; i < front.size; ++i)
        to.put_lower(row(i < front.pivots ? front.first + i : front.rows[std::size_t(i - front.pivots)]), column(p), values[i]);
      if (f.kind != FactorKind::lu) continue;
      for (std::int32_t i = 0; i <= k; ++i) to.put_upper(row(front.first + i), column(p), values[i]);
      for (std::int32_t c = 0; c < front.beside(); ++c)
        to.put_upper(row(p), column(front.columns[std::size_t(c)]), front.right.as<T>()[std::int64_t(k) * front.beside() + c]);
    }
}

template <class T>
std::pair<la::Csr, la::Csr> triangles_of(FactorKind kind, std::int32_t n, TriangleEntries<T> const& entries,
                                         kernel::BlockDiagonal<T> const& d) {
  auto L = csr_of(n, entries.lower);
  if (kind == FactorKind::lu) return {std::move(L), csr_of(n, entries.upper)};
  auto U = kind == FactorKind::cholesky ? la::transpose(L, true) : product_with_pivots(n, entries.lower, d);
  return {std::move(L), std::move(U)};
}

std::pair<la::Csr, la::Csr> explicit_triangles(NumericFactors const& f, std::int32_t n, Dtype dtype) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TriangleEntries<T> entries;
    add_fronts<T>(f, places, places, entries);
    return triangles_of<T>(f.kind, n, entries, {n, f.diagonal.as<T>(), f.lower.as<T>()});
  });
}

#define ASTERISM_INSTANTIATE(T)                                                                                                       \
  template void add_fronts(NumericFactors const&, std::span<std::int32_t const>, std::span<std::int32_t const>, TriangleEntries<T>&); \
  template std::pair<la::Csr, la::Csr> triangles_of(FactorKind, std::int32_t, TriangleEntries<T> const&, kernel::BlockDiagonal<T> const&);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct
