#include "asterism/direct/foreign/taken_factors.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/error.hpp"
#include "asterism/direct/condition.hpp"
#include "asterism/direct/foreign/peer.hpp"
#include "asterism/direct/multifrontal/panel.kernels.hpp"
#include "asterism/direct/permutations.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct::foreign {
namespace {

constexpr std::int32_t widest_panel = 128;

void require_permutation(std::vector<std::int32_t> const& p, std::int32_t n, char const* name) {
  ASTERISM_REQUIRE(p.size() == std::size_t(n), shape, "factors: {} has {} entries for {} rows.", name, p.size(), n);
  std::vector<char> seen(p.size(), false);
  for (auto const i : p) {
    ASTERISM_REQUIRE(i >= 0 && i < n && !seen[std::size_t(i)], value,
                     "factors: {} is not a permutation: {} is there twice, or out of range.", name, i);
    seen[std::size_t(i)] = true;
  }
}

}  // namespace

SupernodalTriangle::SupernodalTriangle(la::Csr const& columns, char const* name) : dtype_(columns.dtype) {
  auto const ptr = columns.row_offsets();
  auto const row = columns.column_indices();
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const v = columns.entries<T>();
    for (std::int32_t j = 0; j < columns.rows; ++j) {
      auto const first = std::size_t(ptr[std::size_t(j)]);
      bool const empty = ptr[std::size_t(j)] == ptr[std::size_t(j) + 1];
      ASTERISM_REQUIRE(empty || row[first] >= j, value, "factors: {} is not triangular: it has an entry in row {} and column {}.", name,
                       name[0] == 'L' ? row[first] : j, name[0] == 'L' ? j : row[first]);
      ASTERISM_REQUIRE(!empty && row[first] == j && v[first] != T(0), value, "factors: the diagonal entry of {} in row {} is zero.", name,
                       j);
    }
  });
  // Columns join the panel before them while at most a fifth of what it stores is zero, or it is small.
  std::vector<std::vector<std::int32_t>> lists;
  std::vector<std::int32_t> below, joined;
  std::int32_t first = 0;
  std::int64_t entries = 0, total = 0;
  auto const finish = [&](std::int32_t end) {
    panels_.push_back({first, end - first, std::int32_t(below.size()), total, std::int64_t(rows_.size())});
    rows_.insert(rows_.end(), below.begin(), below.end());
    total += std::int64_t(end - first) * (end - first + std::int64_t(below.size()));
    first = end;
  };
  for (std::int32_t j = 0; j < columns.rows; ++j) {
    auto const own = row.subspan(std::size_t(ptr[std::size_t(j)]) + 1, std::size_t(ptr[std::size_t(j) + 1] - ptr[std::size_t(j)] - 1));
    auto const width = std::int64_t(j - first);
    if (width > 0) {
      joined.clear();
      auto const from = std::upper_bound(below.begin(), below.end(), j);
      std::set_union(from, below.end(), own.begin(), own.end(), std::back_inserter(joined));
      auto const stored = (width + 1) * (width + 2) / 2 + (width + 1) * std::int64_t(joined.size());
      auto const zeros = stored - entries - 1 - std::int64_t(own.size());
      bool const fits = width < widest_panel && (5 * zeros <= stored || (width < 4 && 2 * zeros <= stored));
      if (fits) {
        below.swap(joined);
        entries += 1 + std::int64_t(own.size());
        continue;
      }
      finish(j);
    }
    below.assign(own.begin(), own.end());
    entries = 1 + std::int64_t(own.size());
  }
  if (columns.rows > 0) finish(columns.rows);
  values_ = la::Array(std::size_t(total) * size_of(dtype_));
  std::fill_n(values_.as<std::byte>(), values_.bytes(), std::byte(0));
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const v = columns.entries<T>();
    for (auto const& p : panels_) {
      auto const list = std::span(rows_).subspan(std::size_t(p.rows), std::size_t(p.below));
      for (std::int32_t c = 0; c < p.width; ++c) {
        T* const to = values_.as<T>() + p.values + std::int64_t(c) * (p.width + p.below);
        auto at = list.begin();
        for (auto e = std::size_t(ptr[std::size_t(p.first + c)]); e < std::size_t(ptr[std::size_t(p.first + c) + 1]); ++e) {
          auto const i = row[e];
          if (i < p.first + p.width) {
            to[i - p.first] = v[e];
            continue;
          }
          at = std::lower_bound(at, list.end(), i);
          to[p.width + (at - list.begin())] = v[e];
        }
      }
    }
  });
}

template <class T>
void SupernodalTriangle::solve(bool transposed, std::int64_t k, T* x) const {
  std::int64_t largest = 0;
  for (auto const& p : panels_) largest = std::max(largest, std::int64_t(p.width) + p.below);
  std::vector<T> work(std::size_t(largest * std::min(k, kernel::most_columns)));
  auto const one = [&](Panel const& p) {
    kernel::FrontPanel<T> const panel{
        p.first, p.width, p.below, values_.as<T>() + p.values, std::int64_t(p.width) + p.below, nullptr, rows_.data() + p.rows};
    kernel::solve_front(panel, false, transposed, false, k, x, work.data());
  };
  if (!transposed) std::for_each(panels_.begin(), panels_.end(), one);
  else std::for_each(panels_.rbegin(), panels_.rend(), one);
}

TakenFactors::TakenFactors(la::Csr l, la::Csr u, std::vector<std::int32_t> const& perm_r, std::vector<std::int32_t> const& perm_c,
                           std::vector<double> row_scale)
    : l_(std::move(l)), u_(std::move(u)), row_scale_(std::move(row_scale)) {
  auto const n = l_.rows;
  ASTERISM_REQUIRE(l_.cols == n && u_.rows == n && u_.cols == n && l_.dtype == u_.dtype, shape,
                   "factors: L is {} x {} and {}, U is {} x {} and {}; square ones of one size and dtype are needed.", l_.cols, n,
                   name_of(l_.dtype), u_.rows, u_.cols, name_of(u_.dtype));
  require_permutation(perm_r, n, "perm_r");
  require_permutation(perm_c, n, "perm_c");
  rows_ = la::inverse_permutation(perm_r), columns_ = la::inverse_permutation(perm_c);
  ASTERISM_REQUIRE(row_scale_.size() == std::size_t(n), shape, "factors: R has {} entries for {} rows.", row_scale_.size(), n);
  for (auto const r : row_scale_) ASTERISM_REQUIRE(r != 0 && std::isfinite(r), value, "factors: R has the entry {}.", r);
  L_ = SupernodalTriangle(l_, "L");
  U_ = SupernodalTriangle(u_, "U");
}

template <class T>
void TakenFactors::solve_triangles(bool transposed, std::int64_t k, T* x) const {
  auto const &first = transposed ? U_ : L_, &second = transposed ? L_ : U_;
  first.solve(false, k, x);
  second.solve(true, k, x);
}

void TakenFactors::solve(char trans, std::int64_t k, void* b) const {
  if (size() == 0 || k == 0) return;
  with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* const x = static_cast<T*>(b);
    auto const n = std::size_t(size()), width = std::size_t(k);
    bool const transposed = trans != 'N';
    auto const &from = transposed ? columns_ : rows_, &to = transposed ? rows_ : columns_;
    auto const scaled = [&](T v, std::int32_t i) { return la::scaled_by(v, row_scale_[std::size_t(i)]); };
    std::vector<T> w(n * width);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; ++c) {
        T const v = x[std::size_t(from[i]) * width + c];
        w[i * width + c] = transposed ? (trans == 'C' ? conj(v) : v) : scaled(v, from[i]);
      }
    solve_triangles(transposed, k, w.data());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; ++c) {
        T const v = w[i * width + c];
        x[std::size_t(to[i]) * width + c] = transposed ? scaled(trans == 'C' ? conj(v) : v, to[i]) : v;
      }
  });
}

Determinant TakenFactors::determinant() const {
  PivotProduct p;
  p.times(is_odd(rows_) != is_odd(columns_));
  for (auto const* triangle : {&l_, &u_})
    with_dtype(dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::size_t j = 0; j < std::size_t(size()); ++j)
        p.times(to_complex(triangle->entries<T>()[std::size_t(triangle->row_offsets()[j])]));
    });
  for (auto const r : row_scale_) p.times(std::complex<double>(1 / r));
  return p.value();
}

double TakenFactors::condition() const {
  return with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const n = std::size_t(size());
    auto const by_rows = [&](la::Csr const& a, std::vector<T>& x) {  // a x
      std::vector<T> y(n, T(0));
      for (std::size_t i = 0; i < n; ++i)
        for (auto e = std::size_t(a.row_offsets()[i]); e < std::size_t(a.row_offsets()[i + 1]); ++e)
          y[i] += a.entries<T>()[e] * x[std::size_t(a.column_indices()[e])];
      x.swap(y);
    };
    auto const by_columns = [&](la::Csr const& a, std::vector<T>& x) {  // a^T x
      std::vector<T> y(n, T(0));
      for (std::size_t i = 0; i < n; ++i)
        for (auto e = std::size_t(a.row_offsets()[i]); e < std::size_t(a.row_offsets()[i + 1]); ++e)
          y[std::size_t(a.column_indices()[e])] += a.entries<T>()[e] * x[i];
      x.swap(y);
    };
    auto const conjugated = [](std::vector<T>& x) {
      for (auto& v : x) v = conj(v);
    };
    // permutations do not change the norm
    double const norm = estimate_norm1<T>(
        std::int64_t(n), [&](std::vector<T>& x) { by_rows(u_, x), by_columns(l_, x); },
        [&](std::vector<T>& x) { conjugated(x), by_rows(l_, x), by_columns(u_, x), conjugated(x); });
    return norm * estimate_inverse_norm1<T>(std::int64_t(n), [&](bool transposed, T* x) { solve_triangles(transposed, 1, x); });
  });
}

}  // namespace asterism::direct::foreign
