// Rows that are to be done one after the other, in an order in which many need not wait: Saad (2003), sec. 11.6, level scheduling.
//
// In the rows' own order each mostly needs the one before and waits for its last addition; the rows of a level need none of each
// other, so that one core does several at a time (1.6 to 2.7 times as fast for ilu of an elasticity problem), and threads share them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "asterism/base/options.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/formats/csr.hpp"

namespace asterism::precond {

/// Level of a row: one more than the highest of the rows it needs. Rows of a level need none of each other.
class Levels {
 public:
  Levels() = default;
  /// needs(i, f) calls f(j) for each row j that must be done before row i; all are below i, or, backward, above. O(entries).
  template <class Needs>
  Levels(std::int64_t rows, bool backward, Needs const& needs) : rows_(std::size_t(rows)) {
    std::vector<std::int32_t> level(static_cast<std::size_t>(rows), 0);
    std::int32_t most = -1;
    for (std::int64_t r = 0; r < rows; ++r) {
      auto const i = backward ? rows - 1 - r : r;
      std::int32_t mine = 0;
      needs(i, [&](std::int64_t j) { mine = std::max(mine, level[std::size_t(j)] + 1); });
      level[std::size_t(i)] = mine;
      most = std::max(most, mine);
    }
    starts_.assign(std::size_t(most) + 2, 0);
    for (auto const l : level) ++starts_[std::size_t(l) + 1];
    for (std::size_t l = 1; l < starts_.size(); ++l) starts_[l] += starts_[l - 1];
    auto next = starts_;
    for (std::int64_t i = 0; i < rows; ++i) rows_[std::size_t(next[std::size_t(level[std::size_t(i)])]++)] = std::int32_t(i);
  }
  std::int64_t count() const { return starts_.empty() ? 0 : std::int64_t(starts_.size()) - 1; }
  /// The rows, level by level, ascending in each.
  std::vector<std::int32_t> const& rows() const { return rows_; }
  /// Where the levels begin in rows(), and its end.
  std::vector<std::int64_t> const& starts() const { return starts_; }
  /// row(p, i), i = rows()[p], for all rows, each after those that it needs, in parallel within a level. from_last: levels descend, so
  /// that each row comes before those that it needs.
  template <class F>
  void each(device::Executor& executor, F const& row, bool from_last = false) const {
    for (std::int64_t n = 0; n < count(); ++n) {
      auto const l = std::size_t(from_last ? count() - 1 - n : n);
      device::parallel_ranges(
          executor, starts_[l + 1] - starts_[l],
          [&row, rows = rows_.data(), first = starts_[l]](std::int64_t b, std::int64_t e) {
            for (auto p = first + b; p < first + e; ++p) row(p, std::int64_t(rows[p]));
          },
          few_);
    }
  }

 private:
  static constexpr std::int64_t few_ = 128;  // rows that are not worth waking the team for
  std::vector<std::int32_t> rows_;           // by level
  std::vector<std::int64_t> starts_;         // of the levels
};

/// Of sweeps over all rows in their order, or in the reverse one: row i waits for the rows before it that it has entries in, or that have
/// one in it, for these read its old value.
inline Levels levels_of_sweep(la::Csr const& a) {
  auto const other = la::transpose(a, false);
  return Levels(a.rows, false, [&](std::int64_t i, auto const& f) {
    for (auto const* m : {&a, &other}) {
      auto const ptr = m->row_offsets();
      auto const col = m->column_indices();
      for (auto p = std::size_t(ptr[std::size_t(i)]); p < std::size_t(ptr[std::size_t(i) + 1]) && col[p] < i; ++p) f(col[p]);
    }
  });
}

/// Parts of a matrix's rows in the order of their levels, so that a level reads them one behind the other.
struct RowsByLevel {
  Levels levels;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  la::Array values;

  /// The entries [first(i), end(i)) of row i of a.
  template <class T, class First, class End>
  void copy(la::Csr const& a, First const& first, End const& end) {
    auto const col = a.column_indices();
    auto const val = a.entries<T>();
    offsets.assign(1, 0);
    for (auto const i : levels.rows()) offsets.push_back(offsets.back() + end(i) - first(i));
    columns.resize(std::size_t(offsets.back()));
    values = la::Array(columns.size() * sizeof(T));
    std::size_t at = 0;
    for (auto const i : levels.rows())
      for (auto p = first(i); p < end(i); ++p, ++at) columns[at] = col[std::size_t(p)], values.as<T>()[at] = val[std::size_t(p)];
  }

  /// z_i = b_i - (the row's entries times z) for all rows, k columns; pivot_first: the first entry is the inverse pivot, which multiplies
  /// that. b may be z.
  template <class T>
  void sweep(device::Executor& executor, bool pivot_first, T const* b, T* z, std::int64_t k) const {
    auto const with = [&, ptr = offsets.data(), col = columns.data(), val = values.as<T>()](auto has_pivot) {
      levels.each(executor, [=](std::int64_t at, std::int64_t i) {
        for (std::int64_t j = 0; j < k; ++j) {
          T s = b[i * k + j];
          for (auto p = ptr[at] + std::int64_t(has_pivot()); p < ptr[at + 1]; ++p) s -= val[p] * z[std::int64_t(col[p]) * k + j];
          z[i * k + j] = has_pivot() ? s * val[ptr[at]] : s;
        }
      });
    };
    pivot_first ? with(std::true_type()) : with(std::false_type());
  }
};

inline OptionSpec order_option(std::string name, std::string const& of_what) {
  return choice_option(std::move(name), "auto", {"auto", "natural", "levels"},
                       "order of the " + of_what +
                           ": the rows', or levels of rows that need none of each other (the same bits, more memory); auto: what is "
                           "measured to be faster");
}

/// Whether it is worth while to look for levels, and to measure them.
inline bool may_pay(std::int64_t rows) { return rows >= 2000; }
inline bool may_pay(Levels const& l) { return std::int64_t(l.rows().size()) >= 4 * l.count(); }

/// The shorter time of two runs of f.
template <class F>
double seconds_of(F const& f) {
  double best = 1e300;
  for (int turn = 0; turn < 2; ++turn) {
    double const start = profile::now();
    f();
    best = std::min(best, profile::now() - start);
  }
  return best;
}

}  // namespace asterism::precond
