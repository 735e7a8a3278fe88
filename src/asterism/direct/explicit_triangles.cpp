#include "asterism/direct/explicit_triangles.hpp"

#include <algorithm>
#include <vector>

namespace asterism::direct {
namespace {

template <class T>
struct Entry {
  std::int32_t i, j;
  T v;
};

template <class T>
la::Csr csr_of(std::int32_t n, std::vector<Entry<T>> const& entries) {
  la::Csr out(dtype_v<T>, n, n, std::int64_t(entries.size()));
  auto const ptr = out.row_offsets();
  std::fill(ptr.begin(), ptr.end(), 0);
  for (auto const& e : entries) ++ptr[std::size_t(e.i) + 1];
  for (std::size_t i = 0; i < std::size_t(n); ++i) ptr[i + 1] += ptr[i];
  std::vector<std::int64_t> next(ptr.begin(), ptr.end() - 1);
  auto const col = out.column_indices();
  auto const val = out.entries<T>();
  for (auto const& e : entries) {
    auto const p = std::size_t(next[std::size_t(e.i)]++);
    col[p] = e.j;
    val[p] = e.v;
  }
  return la::transpose(la::transpose(out));  // columns ascending
}

template <class T>
std::pair<la::Csr, la::Csr> triangles(NumericFactors const& f, std::int32_t n) {
  std::vector<Entry<T>> lower, upper;
  auto const put = [](std::vector<Entry<T>>& to, std::int32_t i, std::int32_t j, T v) {
    if (v != T(0) || i == j) to.push_back({i, j, v});
  };
  for (auto const& front : f.fronts)
    for (std::int32_t k = 0; k < front.pivots; ++k) {
      auto const j = front.first + k;
      T const* const column = front.panel.as<T>() + std::int64_t(k) * front.size;
      put(lower, j, j, f.kind == FactorKind::cholesky ? column[k] : T(1));
      for (std::int32_t i = k + 1; i < front.size; ++i)
        put(lower, i < front.pivots ? front.first + i : front.rows[std::size_t(i - front.pivots)], j, column[i]);
      if (f.kind != FactorKind::lu) continue;
      for (std::int32_t i = 0; i <= k; ++i) put(upper, front.first + i, j, column[i]);
      for (std::int32_t c = 0; c < front.below(); ++c)
        put(upper, j, front.columns[std::size_t(c)], front.right.as<T>()[std::int64_t(k) * front.below() + c]);
    }
  if (f.kind == FactorKind::cholesky)
    for (auto const& e : lower) upper.push_back({e.j, e.i, conj(e.v)});
  if (f.kind == FactorKind::hermitian) {  // D L^H; rows of a block of two have entries of both columns of L
    auto const* const d = f.diagonal.as<T>();
    auto const* const below = f.lower.as<T>();
    std::vector<std::vector<std::pair<std::int32_t, T>>> rows(static_cast<std::size_t>(n));
    for (auto const& e : lower) {
      T const v = conj(e.v);
      rows[std::size_t(e.j)].emplace_back(e.i, d[e.j] * v);
      if (below[e.j] != T(0)) rows[std::size_t(e.j) + 1].emplace_back(e.i, below[e.j] * v);
      if (e.j > 0 && below[e.j - 1] != T(0)) rows[std::size_t(e.j) - 1].emplace_back(e.i, conj(below[e.j - 1]) * v);
    }
    for (std::int32_t i = 0; i < n; ++i) {
      auto& row = rows[std::size_t(i)];
      std::sort(row.begin(), row.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
      for (std::size_t p = 0; p < row.size();) {
        T sum(0);
        auto const j = row[p].first;
        for (; p < row.size() && row[p].first == j; ++p) sum += row[p].second;
        put(upper, i, j, sum);
      }
    }
  }
  return {csr_of(n, lower), csr_of(n, upper)};
}

}  // namespace

std::pair<la::Csr, la::Csr> explicit_triangles(NumericFactors const& f, std::int32_t n, Dtype dtype) {
  return with_dtype(dtype, [&](auto tag) { return triangles<typename decltype(tag)::type>(f, n); });
}

}  // namespace asterism::direct
