#include "asterism/la/ordering/matching.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "asterism/base/error.hpp"
#include "asterism/base/progress.hpp"

namespace asterism::la {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Columns by their distance, the nearest first; distances may become shorter.
class NearestFirst {
 public:
  NearestFirst(std::size_t columns, std::vector<double> const& distance) : place_(columns, -1), distance_(distance) {}
  bool empty() const { return heap_.empty(); }
  std::int32_t nearest() const { return heap_.front(); }
  /// New, or nearer than before.
  void put(std::int32_t j) {
    auto at = place_[std::size_t(j)];
    if (at < 0) at = std::int32_t(heap_.size()), heap_.push_back(j);
    for (; at > 0 && less(j, heap_[std::size_t((at - 1) / 2)]); at = (at - 1) / 2) set(at, heap_[std::size_t((at - 1) / 2)]);
    set(at, j);
  }
  std::int32_t take() {
    auto const out = heap_.front(), last = heap_.back();
    heap_.pop_back();
    place_[std::size_t(out)] = -1;
    auto const n = std::int32_t(heap_.size());
    if (n == 0) return out;
    std::int32_t at = 0;
    for (std::int32_t child; (child = 2 * at + 1) < n; at = child) {
      if (child + 1 < n && less(heap_[std::size_t(child) + 1], heap_[std::size_t(child)])) ++child;
      if (!less(heap_[std::size_t(child)], last)) break;
      set(at, heap_[std::size_t(child)]);
    }
    set(at, last);
    return out;
  }
  void clear() {
    for (auto const j : heap_) place_[std::size_t(j)] = -1;
    heap_.clear();
  }

 private:
  // ties by number: the same matching whatever the order of insertion was
  bool less(std::int32_t a, std::int32_t b) const {
    auto const u = distance_[std::size_t(a)], v = distance_[std::size_t(b)];
    return u < v || (u == v && a < b);
  }
  void set(std::int32_t at, std::int32_t j) { heap_[std::size_t(at)] = j, place_[std::size_t(j)] = at; }
  std::vector<std::int32_t> heap_, place_;
  std::vector<double> const& distance_;
};

double in_double(float v) { return v; }
double in_double(double v) { return v; }
template <class R>
Complex<double> in_double(Complex<R> v) {
  return {double(v.re), double(v.im)};
}

/// The assignment problem with costs c_ij = log(largest of row i) - log |a_ij| >= 0, and its dual: u_i + v_j <= c_ij, equal for pairs.
template <class T>
class Search {
 public:
  explicit Search(Csr const& a)
      : ptr_(a.row_offsets()),
        col_(a.column_indices()),
        cost_(std::size_t(a.nnz())),
        rows_(std::size_t(a.rows)),
        columns_(std::size_t(a.cols)),
        log_largest_(rows_, -infinity),
        u_(rows_, 0),
        v_(columns_, infinity) {
    m_.column_of_row.assign(rows_, -1);
    m_.row_of_column.assign(columns_, -1);
    auto const val = a.entries<T>();
    for (std::size_t i = 0; i < rows_; ++i) {
      for (auto p = ptr_[i]; p < ptr_[i + 1]; ++p) {
        double const size = log_of(val[std::size_t(p)]);
        ASTERISM_REQUIRE(size < infinity, value, "matching: row {} has an entry that is NaN or infinite.", i);
        log_largest_[i] = std::max(log_largest_[i], size);
        cost_[std::size_t(p)] = size;
      }
      for (auto p = ptr_[i]; p < ptr_[i + 1]; ++p) {
        auto& cost = cost_[std::size_t(p)];
        cost = cost == -infinity ? infinity : log_largest_[i] - cost;
      }
      if (log_largest_[i] == -infinity && m_.empty_row < 0) m_.empty_row = std::int32_t(i);
    }
  }

  Matching run() {
    start();
    distance_.assign(columns_, infinity);
    came_from_.assign(columns_, -1);
    closed_.assign(columns_, 0);
    failed_.assign(rows_, 0);
    if (!search(20 * std::int64_t(cost_.size()))) {
      auto const before = std::tuple(m_, u_, v_, closed_, failed_, failures_);
      bid();
      search();
      if (m_.structural_rank < std::int32_t(std::min(rows_, columns_))) {  // prices may be without limit
        std::tie(m_, u_, v_, closed_, failed_, failures_) = before;
        search();
      }
    }
    if (failures_ > 0) settle();
    scale();
    return std::move(m_);
  }

 private:
  /// For each row without a column. False: it looked at more entries than `most` before it came to the end.
  bool search(std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    Progress progress("matching of rows to columns", double(rows_));
    NearestFirst open(columns_, distance_);
    for (std::size_t i = 0; i < rows_; ++i) {
      progress.at(double(i));
      if (m_.column_of_row[i] < 0) augment(std::int32_t(i), open);
      if (m_.searched > most) return false;
    }
    m_.structural_rank = std::int32_t(std::ranges::count_if(m_.column_of_row, [](auto j) { return j >= 0; }));
    return true;
  }

  /// NaN becomes infinite.
  static double log_of(T v) {
    double const size = magnitude(in_double(v));
    return size == 0 ? -infinity : std::isfinite(size) ? std::log(size) : infinity;
  }
  double cost(std::int64_t p) const { return cost_[std::size_t(p)]; }
  void pair(std::int32_t i, std::int32_t j) { m_.column_of_row[std::size_t(i)] = j, m_.row_of_column[std::size_t(j)] = i; }

  /// A feasible dual, and pairs at no reduced cost: at once, or where a pair can move to another column at no cost.
  void start() {
    for (std::size_t i = 0; i < rows_; ++i)
      for (auto p = ptr_[i]; p < ptr_[i + 1]; ++p) {
        auto& least = v_[std::size_t(col_[std::size_t(p)])];
        least = std::min(least, cost(p));
      }
    for (std::size_t j = 0; j < columns_; ++j)
      if (v_[j] == infinity) {
        v_[j] = 0;
        if (m_.empty_column < 0) m_.empty_column = std::int32_t(j);
      }
    for (std::size_t i = 0; i < rows_; ++i) {
      double least = infinity;
      for (auto p = ptr_[i]; p < ptr_[i + 1]; ++p) least = std::min(least, cost(p) - v_[std::size_t(col_[std::size_t(p)])]);
      u_[i] = least == infinity ? 0 : least;
      std::int32_t found = -1;
      for (auto p = ptr_[i]; p < ptr_[i + 1] && found != std::int32_t(i); ++p)
        if (auto const j = col_[std::size_t(p)]; m_.row_of_column[std::size_t(j)] < 0 && is_tight(i, p))
          if (found < 0 || std::size_t(j) == i) found = j;  // of equals the diagonal: a symmetric pattern stays one
      if (found >= 0) pair(std::int32_t(i), found);
    }
    for (std::size_t i = 0; i < rows_; ++i)
      for (auto p = ptr_[i]; p < ptr_[i + 1] && m_.column_of_row[i] < 0; ++p) {
        if (!is_tight(i, p)) continue;
        auto const j = col_[std::size_t(p)];
        auto const other = std::size_t(m_.row_of_column[std::size_t(j)]);
        for (auto q = ptr_[other]; q < ptr_[other + 1]; ++q)
          if (auto const k = col_[std::size_t(q)]; m_.row_of_column[std::size_t(k)] < 0 && is_tight(other, q)) {
            pair(std::int32_t(other), k);
            pair(std::int32_t(i), j);
            break;
          }
      }
  }
  double reduced(std::size_t i, std::int64_t p) const { return std::max(0.0, cost(p) - u_[i] - v_[std::size_t(col_[std::size_t(p)])]); }
  bool is_tight(std::size_t i, std::int64_t p) const { return reduced(i, p) == 0; }

  /// Rows without a column take the one that costs them least, and lower its v by what the second one costs more (Jonker and Volgenant
  /// 1987). Who had it bids next. Where most rows want the same few columns, as those of full constraints, searches alone look at the full
  /// rows again and again. Where the rank is not full bids have no end: four times all entries are looked at.
  void bid() {
    std::vector<std::int32_t> free;
    for (auto i = rows_; i-- > 0;)
      if (m_.column_of_row[i] < 0) free.push_back(std::int32_t(i));
    auto left = 4 * std::int64_t(cost_.size());
    while (!free.empty() && left > 0) {
      auto const i = free.back();
      free.pop_back();
      std::int32_t best = -1;
      double least = infinity, second = infinity;
      for (auto p = ptr_[std::size_t(i)]; p < ptr_[std::size_t(i) + 1]; ++p) {
        auto const j = col_[std::size_t(p)];
        auto const d = cost(p) - v_[std::size_t(j)];
        if (d < least) second = least, least = d, best = j;
        else second = std::min(second, d);
      }
      left -= ptr_[std::size_t(i) + 1] - ptr_[std::size_t(i)];
      if (best < 0 || closed_[std::size_t(best)] || second == infinity) continue;  // left to a search
      auto const before = m_.row_of_column[std::size_t(best)];
      if (before >= 0 && least == second) continue;
      u_[std::size_t(i)] = second;
      v_[std::size_t(best)] -= second - least;
      pair(i, best);
      if (before < 0) continue;
      m_.column_of_row[std::size_t(before)] = -1;
      free.push_back(before);
    }
  }

  /// The cheapest way from row `first` to a column without a row, along which pairs change; none if there is no way at all.
  void augment(std::int32_t first, NearestFirst& open) {
    bool way = false;
    for (auto p = ptr_[std::size_t(first)]; p < ptr_[std::size_t(first) + 1] && !way; ++p)
      way = cost(p) < infinity && !closed_[std::size_t(col_[std::size_t(p)])];
    if (!way) {
      failed_[std::size_t(first)] = ++failures_;
      return;
    }
    double shortest = infinity;
    std::int32_t end = -1;
    reached_.clear();
    done_.clear();
    auto const look_from = [&](std::int32_t i, double so_far) {
      m_.searched += ptr_[std::size_t(i) + 1] - ptr_[std::size_t(i)];
      for (auto p = ptr_[std::size_t(i)]; p < ptr_[std::size_t(i) + 1]; ++p) {
        auto const j = col_[std::size_t(p)];
        if (closed_[std::size_t(j)]) continue;  // no way leads out of there; settle() makes up for it
        auto const d = so_far + reduced(std::size_t(i), p);
        if (!(d < distance_[std::size_t(j)]) || !(d < shortest)) continue;
        if (distance_[std::size_t(j)] == infinity) reached_.push_back(j);
        distance_[std::size_t(j)] = d;
        came_from_[std::size_t(j)] = i;
        if (m_.row_of_column[std::size_t(j)] < 0) shortest = d, end = j;
        else open.put(j);
      }
    };
    look_from(first, 0);
    while (!open.empty() && distance_[std::size_t(open.nearest())] < shortest) {
      auto const j = open.take();
      done_.push_back(j);
      look_from(m_.row_of_column[std::size_t(j)], distance_[std::size_t(j)]);
    }
    open.clear();
    if (end >= 0) {
      for (auto const j : done_) {
        double const by = shortest - distance_[std::size_t(j)];
        v_[std::size_t(j)] -= by;
        u_[std::size_t(m_.row_of_column[std::size_t(j)])] += by;
      }
      u_[std::size_t(first)] += shortest;
      for (auto j = end; j >= 0;) {
        auto const i = came_from_[std::size_t(j)];
        auto const before = m_.column_of_row[std::size_t(i)];
        pair(i, j);
        j = before;
      }
    }
    if (end < 0) failed_[std::size_t(first)] = ++failures_;
    for (auto const j : reached_) {
      distance_[std::size_t(j)] = infinity;
      if (end < 0) closed_[std::size_t(j)] = failures_;  // a search that fails has seen all that can be reached from there
    }
  }

  /// What a failed search has seen, and its rows, have no entries in columns that are open or were closed later. So all u there may rise by
  /// what all v fall. They do until u_i + v_j <= c_ij for the rows of searches that came later and did not look there.
  void settle() {
    auto const of_row = [&](std::size_t i) {
      auto const j = m_.column_of_row[i];
      return j >= 0 ? closed_[std::size_t(j)] : failed_[i];
    };
    std::vector<std::vector<std::int32_t>> rows(std::size_t(failures_) + 1);
    for (std::size_t i = 0; i < rows_; ++i) rows[std::size_t(of_row(i))].push_back(std::int32_t(i));
    std::vector<double> by(rows.size(), 0);  // 0: open
    auto const look_from = [&](std::int32_t of) {
      for (auto const i : rows[std::size_t(of)])
        for (auto p = ptr_[std::size_t(i)]; p < ptr_[std::size_t(i) + 1]; ++p) {
          auto const j = std::size_t(col_[std::size_t(p)]);
          auto const to = closed_[j];
          if (to == 0 || to == of) continue;
          by[std::size_t(to)] = std::max(by[std::size_t(to)], by[std::size_t(of)] + u_[std::size_t(i)] + v_[j] - cost(p));
        }
    };
    look_from(0);
    for (auto of = failures_; of > 0; --of) look_from(of);
    for (std::size_t i = 0; i < rows_; ++i) u_[i] += by[std::size_t(of_row(i))];
    for (std::size_t j = 0; j < columns_; ++j) v_[j] -= by[std::size_t(closed_[j])];
  }

  /// exp(u_i) / (largest of row i) and exp(v_j), both near 1 in the geometric mean of rows and columns.
  void scale() {
    std::vector<double> log_row(rows_, 0);
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < rows_; ++i)
      if (log_largest_[i] > -infinity) log_row[i] = u_[i] - log_largest_[i], sum += log_row[i], ++count;
    double const middle = count > 0 ? sum / count : 0;
    double other = 0;
    for (auto const v : v_) other += v / double(std::max<std::size_t>(columns_, 1));
    double const shift = (other - middle) / 2;
    for (std::size_t i = 0; i < rows_; ++i) m_.row_scale.push_back(log_largest_[i] > -infinity ? std::exp(log_row[i] + shift) : 1);
    for (auto const v : v_) m_.column_scale.push_back(std::exp(v - shift));
  }

  std::span<std::int64_t> ptr_;
  std::span<std::int32_t> col_;
  std::vector<double> cost_;  // of each entry; infinite for a zero, also in a row of zeros
  std::size_t rows_, columns_;
  std::vector<double> log_largest_, u_, v_, distance_;
  std::vector<std::int32_t> came_from_, reached_, done_;
  std::int32_t failures_ = 0;                  // of searches
  std::vector<std::int32_t> closed_, failed_;  // 0, or the failure after which no column without a row can be reached from a column, or row
  Matching m_;
};

}  // namespace

Matching maximum_product_matching(Csr const& a) {
  Matching out;
  with_dtype(a.dtype, [&](auto tag) { out = Search<typename decltype(tag)::type>(a).run(); });
  return out;
}

}  // namespace asterism::la
