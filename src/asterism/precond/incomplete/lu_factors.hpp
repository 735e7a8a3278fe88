// Incomplete factors and the solves with them.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "asterism/precond/incomplete/arrangement.hpp"
#include "asterism/precond/levels.hpp"

namespace asterism::precond {

/// L below, U above, inverse pivots on the diagonal; and, if rows are taken by levels, L and U once more in their order.
struct LuFactors {
  la::Csr rows;
  std::shared_ptr<std::vector<std::int64_t> const> diagonal;  // place of each row's
  ArrangementPtr arrangement;                                 // of the block that they factor
  struct Schedule {
    RowsByLevel down, up;  // up: with the inverse pivot first
  };
  std::shared_ptr<Schedule const> schedule;

  std::shared_ptr<Schedule> find_levels() const {
    auto const ptr = rows.row_offsets();
    auto const col = rows.column_indices();
    auto s = std::make_shared<Schedule>();
    s->down.levels = Levels(rows.rows, false, [&](std::int64_t i, auto const& f) {
      for (auto p = ptr[std::size_t(i)]; p < (*diagonal)[std::size_t(i)]; ++p) f(col[std::size_t(p)]);
    });
    s->up.levels = Levels(rows.rows, true, [&](std::int64_t i, auto const& f) {
      for (auto p = (*diagonal)[std::size_t(i)] + 1; p < ptr[std::size_t(i) + 1]; ++p) f(col[std::size_t(p)]);
    });
    return s;
  }
  /// Into a schedule whose levels are known.
  void copy_values(Schedule& s) const {
    auto const ptr = rows.row_offsets();
    auto const start = [&](std::int32_t i) { return ptr[std::size_t(i)]; };
    auto const middle = [&](std::int32_t i) { return (*diagonal)[std::size_t(i)]; };
    auto const end = [&](std::int32_t i) { return ptr[std::size_t(i) + 1]; };
    with_dtype(rows.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      s.down.copy<T>(rows, start, middle);
      s.up.copy<T>(rows, middle, end);
    });
  }

  /// z = M b, k columns.
  template <class T>
  void solve(device::Executor& executor, T const* b, T* z, std::int64_t k) const {
    if (!arrangement) return solve_arranged(executor, b, z, k);
    auto const& a = *arrangement;
    std::vector<T> w(a.rows.size() * std::size_t(k));
    gather(a.rows, a.row_factor, b, w.data(), k);
    solve_arranged(executor, w.data(), w.data(), k);
    scatter(a.columns, a.column_factor, w.data(), z, k);
  }
  /// z = M^T b, or M^H b.
  template <class T>
  void solve_transpose(bool conjugate, T const* b, T* z, std::int64_t k) const {
    if (!arrangement) {
      std::copy_n(b, rows.rows * k, z);
      return solve_transpose_arranged(conjugate, z, k);
    }
    auto const& a = *arrangement;
    std::vector<T> w(a.rows.size() * std::size_t(k));
    gather(a.columns, a.column_factor, b, w.data(), k);
    solve_transpose_arranged(conjugate, w.data(), k);
    scatter(a.rows, a.row_factor, w.data(), z, k);
  }
  std::size_t memory_bytes() const {
    auto const one = rows.values.bytes() + rows.columns.bytes() + rows.offsets.bytes();
    return (schedule ? 2 * one : one) + (arrangement ? arrangement->memory_bytes() : 0);
  }

 private:
  template <class T>
  static void gather(std::vector<std::int32_t> const& order, std::vector<double> const& factor, T const* from, T* to, std::int64_t k) {
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::int64_t j = 0; j < k; ++j) {
        T const v = from[std::int64_t(order[i]) * k + j];
        to[std::int64_t(i) * k + j] = factor.empty() ? v : v * T(real_t<T>(factor[i]));
      }
  }
  template <class T>
  static void scatter(std::vector<std::int32_t> const& order, std::vector<double> const& factor, T const* from, T* to, std::int64_t k) {
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::int64_t j = 0; j < k; ++j) {
        T const v = from[std::int64_t(i) * k + j];
        to[std::int64_t(order[i]) * k + j] = factor.empty() ? v : v * T(real_t<T>(factor[i]));
      }
  }

  /// z = inv(L U) b. b may be z.
  template <class T>
  void solve_arranged(device::Executor& executor, T const* b, T* z, std::int64_t k) const {
    if (schedule) {
      schedule->down.sweep<T>(executor, false, b, z, k);
      return schedule->up.sweep<T>(executor, true, z, z, k);
    }
    auto const ptr = rows.row_offsets();
    auto const col = rows.column_indices();
    auto const val = rows.entries<T>();
    auto const down = [&](std::int64_t i) {
      for (std::int64_t j = 0; j < k; ++j) {
        T s = b[i * k + j];
        for (auto p = std::size_t(ptr[std::size_t(i)]); p < std::size_t((*diagonal)[std::size_t(i)]); ++p)
          s -= val[p] * z[std::int64_t(col[p]) * k + j];
        z[i * k + j] = s;
      }
    };
    auto const up = [&](std::int64_t i) {
      for (std::int64_t j = 0; j < k; ++j) {
        T s = z[i * k + j];
        auto const d = std::size_t((*diagonal)[std::size_t(i)]);
        for (auto p = d + 1; p < std::size_t(ptr[std::size_t(i) + 1]); ++p) s -= val[p] * z[std::int64_t(col[p]) * k + j];
        z[i * k + j] = s * val[d];  // the inverse pivot is stored
      }
    };
    for (std::int64_t i = 0; i < rows.rows; ++i) down(i);
    for (std::int64_t i = rows.rows; i-- > 0;) up(i);
  }
  /// In place. U^T by columns, then L^T: the rows of the factors are scattered instead of gathered, by one thread.
  template <class T>
  void solve_transpose_arranged(bool conjugate, T* z, std::int64_t k) const {
    auto const ptr = rows.row_offsets();
    auto const col = rows.column_indices();
    auto const val = rows.entries<T>();
    auto const n = std::size_t(rows.rows);
    auto const entry = [&](std::size_t p) { return conjugate ? conj(val[p]) : val[p]; };
    for (std::size_t i = 0; i < n; ++i) {
      auto const d = std::size_t((*diagonal)[i]);
      auto* const zi = z + std::int64_t(i) * k;
      for (std::int64_t j = 0; j < k; ++j) zi[j] *= entry(d);  // the inverse pivot
      for (auto p = d + 1; p < std::size_t(ptr[i + 1]); ++p)
        for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= entry(p) * zi[j];
    }
    for (std::size_t i = n; i-- > 0;)
      for (auto p = std::size_t(ptr[i]); p < std::size_t((*diagonal)[i]); ++p)
        for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= entry(p) * z[std::int64_t(i) * k + j];
  }
};

}  // namespace asterism::precond
