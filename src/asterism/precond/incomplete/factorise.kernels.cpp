#include "asterism/precond/incomplete/factorise.kernels.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "asterism/base/progress.hpp"

namespace asterism::precond::kernel {

template <class T>
void factor_on_places(std::string const& name, la::Csr const& f, std::vector<std::int64_t> const& diagonal, Pivots& pivots) {
  auto const ptr = f.row_offsets();
  auto const col = f.column_indices();
  auto const val = f.entries<T>();
  auto const n = std::size_t(f.rows);
  std::vector<std::int64_t> where(n, -1);  // position of a column in the row at hand
  auto const bytes = f.values.bytes() + f.columns.bytes() + f.offsets.bytes();
  Progress progress(format("{}: factors of {} entries, {}", name, f.nnz(), megabytes(double(bytes))), double(n));
  for (std::size_t i = 0; i < n; ++i) {
    progress.at(double(i));
    double largest = 0;
    for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
      where[std::size_t(col[p])] = std::int64_t(p);
      largest = std::max(largest, double(magnitude(val[p])));
    }
    for (auto p = std::size_t(ptr[i]); p < std::size_t(diagonal[i]); ++p) {
      auto const k = std::size_t(col[p]);
      val[p] *= val[std::size_t(diagonal[k])];  // l_ik = a_ik / u_kk
      for (auto q = std::size_t(diagonal[k]) + 1; q < std::size_t(ptr[k + 1]); ++q)
        if (auto const at = where[std::size_t(col[q])]; at >= 0) val[std::size_t(at)] -= val[p] * val[q];
    }
    auto& pivot = val[std::size_t(diagonal[i])];
    pivot = pivots.inverse(pivot, largest, i);
    for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) where[std::size_t(col[p])] = -1;
  }
}

namespace {

/// Row by row. A column has a number, a's, and a place, which it may exchange with a later one until that place's row is done. Rows of L
/// are by places, since those are final; rows of U by numbers, and by places once all is done.
template <class T>
class BySize {
 public:
  BySize(la::Csr const& a, SizeRule const& rule, Pivots& pivots)
      : a_(a), rule_(rule), pivots_(pivots), n_(std::size_t(a.rows)), place_(n_), column_at_(n_), row_(n_, T(0)), here_(n_, 0) {
    std::iota(place_.begin(), place_.end(), 0);
    std::iota(column_at_.begin(), column_at_.end(), 0);
    mean_ = n_ ? double(a.nnz()) / double(n_) : 0;
  }

  FactorsBySize run() {
    double const most_memory = std::min(std::max(1.0, rule_.fill) * double(a_.nnz()), double(n_) * double(n_));
    Progress progress(format("ilut: factors of up to {}", megabytes(most_memory * double(sizeof(T) + sizeof(std::int32_t)))), double(n_));
    diagonal_.resize(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      progress.at(double(i));
      load(i);
      eliminate(i);
      finish(i);
    }
    return packed();
  }

 private:
  void load(std::size_t i) {
    auto const ptr = a_.row_offsets();
    auto const col = a_.column_indices();
    auto const val = a_.template entries<T>();
    lower_.clear();
    kept_.clear();
    upper_.clear();
    double norm2 = 0;
    largest_ = 0;
    for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
      auto const c = std::size_t(col[p]);
      row_[c] = val[p];
      here_[c] = 1;
      sort_in(i, c);
      norm2 += double(magnitude(val[p])) * double(magnitude(val[p]));
      largest_ = std::max(largest_, double(magnitude(val[p])));
    }
    small_ = rule_.drop * std::sqrt(norm2);
    most_ = std::size_t(std::ceil(rule_.fill * std::max(double(ptr[i + 1] - ptr[i]), mean_) / 2));
  }
  void sort_in(std::size_t i, std::size_t c) {
    auto const at = std::size_t(place_[c]);
    if (at < i) {
      lower_.push_back(std::int32_t(at));
      std::push_heap(lower_.begin(), lower_.end(), std::greater<>());
    } else if (at > i) {
      upper_.push_back(std::int32_t(c));
    }
  }

  /// The places left of the diagonal in ascending order; eliminations add some, further right.
  void eliminate(std::size_t i) {
    while (!lower_.empty()) {
      std::pop_heap(lower_.begin(), lower_.end(), std::greater<>());
      auto const k = std::size_t(lower_.back());
      auto const column = std::size_t(column_at_[k]);
      lower_.pop_back();
      if (double(magnitude(row_[column])) < small_) {
        clear(column);
        continue;
      }
      T const factor = row_[column] *= values_[std::size_t(diagonal_[k])];  // l_ik = w_k / u_kk
      kept_.push_back(std::int32_t(column));
      for (auto q = std::size_t(diagonal_[k]) + 1; q < std::size_t(offsets_[k + 1]); ++q) {
        auto const c = std::size_t(columns_[q]);
        row_[c] -= factor * values_[q];
        if (std::exchange(here_[c], 1) == 0) sort_in(i, c);
      }
    }
  }

  /// The largest of each part, but no small ones; the pivot between them.
  void finish(std::size_t i) {
    shorten(kept_, 0);
    choose_pivot(i);
    shorten(upper_, small_);
    for (auto const c : kept_) put(place_[std::size_t(c)], c);
    diagonal_[i] = std::int64_t(columns_.size());
    auto const c = column_at_[i];
    row_[std::size_t(c)] = pivots_.inverse(row_[std::size_t(c)], largest_, i);
    put(c, c);
    for (auto const u : upper_) put(u, u);
    offsets_.push_back(std::int64_t(columns_.size()));
  }
  void choose_pivot(std::size_t i) {
    if (rule_.pivoting == 0 || upper_.empty()) return;
    auto const best = std::min_element(upper_.begin(), upper_.end(), [&](std::int32_t x, std::int32_t y) { return is_larger(x, y); });
    auto const now = column_at_[i], other = *best;
    if (!(double(magnitude(row_[std::size_t(now)])) < rule_.pivoting * double(magnitude(row_[std::size_t(other)])))) return;
    *best = now;
    std::swap(place_[std::size_t(now)], place_[std::size_t(other)]);
    column_at_[std::size_t(place_[std::size_t(now)])] = now;
    column_at_[i] = other;
    exchanged_ = true;
    here_[std::size_t(now)] = 1;
  }
  bool is_larger(std::int32_t x, std::int32_t y) const {
    auto const u = magnitude(row_[std::size_t(x)]), v = magnitude(row_[std::size_t(y)]);
    return u > v || (u == v && place_[std::size_t(x)] < place_[std::size_t(y)]);
  }
  void shorten(std::vector<std::int32_t>& part, double least) {
    auto const end = std::remove_if(part.begin(), part.end(), [&](std::int32_t c) {
      bool const out = double(magnitude(row_[std::size_t(c)])) < least;
      if (out) clear(std::size_t(c));
      return out;
    });
    part.erase(end, part.end());
    if (part.size() > most_) {
      std::nth_element(part.begin(), part.begin() + std::int64_t(most_), part.end(),
                       [&](std::int32_t x, std::int32_t y) { return is_larger(x, y); });
      std::for_each(part.begin() + std::int64_t(most_), part.end(), [&](std::int32_t c) { clear(std::size_t(c)); });
      part.resize(most_);
    }
    std::sort(part.begin(), part.end(), [&](std::int32_t x, std::int32_t y) { return place_[std::size_t(x)] < place_[std::size_t(y)]; });
  }
  void clear(std::size_t c) { row_[c] = T(0), here_[c] = 0; }
  void put(std::int32_t named, std::int32_t c) {
    columns_.push_back(named);
    values_.push_back(row_[std::size_t(c)]);
    clear(std::size_t(c));
  }

  /// U's columns by their places at last.
  FactorsBySize packed() {
    FactorsBySize out;
    if (exchanged_) {
      std::vector<std::pair<std::int32_t, T>> part;
      for (std::size_t i = 0; i < n_; ++i) {
        part.clear();
        auto const begin = std::size_t(diagonal_[i]), end = std::size_t(offsets_[i + 1]);
        for (auto p = begin; p < end; ++p) part.emplace_back(place_[std::size_t(columns_[p])], values_[p]);
        std::sort(part.begin(), part.end(), [](auto const& x, auto const& y) { return x.first < y.first; });
        for (auto p = begin; p < end; ++p) std::tie(columns_[p], values_[p]) = part[p - begin];
      }
      out.column_at = column_at_;
    }
    out.rows = la::Csr(a_.dtype, a_.rows, a_.cols, std::int64_t(columns_.size()));
    std::copy(offsets_.begin(), offsets_.end(), out.rows.row_offsets().begin());
    std::copy(columns_.begin(), columns_.end(), out.rows.column_indices().begin());
    std::copy(values_.begin(), values_.end(), out.rows.template entries<T>().begin());
    out.diagonal = std::move(diagonal_);
    return out;
  }

  la::Csr const& a_;
  SizeRule rule_;
  Pivots& pivots_;
  std::size_t n_;
  double mean_ = 0;                                 // entries of a row
  std::vector<std::int32_t> place_, column_at_;     // of each column; and back
  std::vector<T> row_;                              // at hand, by columns
  std::vector<char> here_;                          // whether it has the column
  std::vector<std::int32_t> lower_, kept_, upper_;  // places to be eliminated; columns of L, of U
  double largest_ = 0, small_ = 0;
  std::size_t most_ = 0;
  std::vector<std::int64_t> offsets_{0}, diagonal_;
  std::vector<std::int32_t> columns_;
  std::vector<T> values_;
  bool exchanged_ = false;
};

}  // namespace

template <class T>
FactorsBySize factor_by_size(la::Csr const& a, SizeRule const& rule, Pivots& pivots) {
  return BySize<T>(a, rule, pivots).run();
}

#define INSTANTIATE(T)                                                                                              \
  template void factor_on_places<T>(std::string const&, la::Csr const&, std::vector<std::int64_t> const&, Pivots&); \
  template FactorsBySize factor_by_size<T>(la::Csr const&, SizeRule const&, Pivots&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::precond::kernel
