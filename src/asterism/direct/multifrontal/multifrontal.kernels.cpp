#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "asterism/base/dtype.hpp"
#include "asterism/device/host/this_thread.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/direct/multifrontal/subtrees.hpp"
#include "asterism/direct/permutations.hpp"

namespace asterism::direct::kernel {
namespace {

device::Array zeroed(device::Array const& a) {
  if (a.bytes() > 0) std::memset(a.raw(), 0, a.bytes());
  return a;
}
template <class T>
device::Array zeros(std::int64_t rows, std::int64_t columns) {
  return zeroed(device::Array(std::size_t(rows) * std::size_t(columns) * sizeof(T)));
}

/// What a front leaves for its parent: columns and rows that were delayed, then those below.
struct Update {
  std::int32_t delayed = 0, below = 0;
  std::vector<std::int32_t> rows, columns;   // of the delayed ones: numbers of B
  std::span<std::int32_t const> below_rows;  // the same of the others
  device::Array panel;                       // (delayed + below) x delayed
  device::Array right;                       // below x delayed, of LU
  device::Array square;                      // below x below
};

/// Memory that fronts take one after the other.
class Chunks {
 public:
  device::Array take(std::size_t bytes) {
    constexpr std::size_t least = std::size_t(1) << 18, line = 64;
    if (bytes > chunk_.bytes() - used_) chunk_ = device::Array(std::max(bytes, least)), used_ = 0;
    auto out = chunk_.view(used_, bytes);
    used_ = std::min(chunk_.bytes(), (used_ + bytes + line - 1) / line * line);
    return out;
  }

 private:
  device::Array chunk_;
  std::size_t used_ = 0;
};

/// Rows of a column-major matrix with an entry that is not zero, from the first one on, and the last ones, whatever they have.
template <class T>
std::vector<std::int32_t> rows_with_entries(std::int32_t first, std::int32_t last, std::int32_t rows, std::int32_t columns, T const* a) {
  auto const count = rows - first;
  std::vector<char> has(at(count), false);
  std::fill(has.end() - last, has.end(), true);
  std::int32_t found = last;
  for (std::int64_t j = 0; j < columns && found < count; ++j) {
    T const* const column = a + j * rows + first;
    for (std::int32_t i = 0; i < count; ++i)
      if (!has[at(i)] && column[i] != T(0)) has[at(i)] = true, ++found;
  }
  std::vector<std::int32_t> out;
  out.reserve(at(found));
  for (std::int32_t i = 0; i < count; ++i)
    if (has[at(i)]) out.push_back(i);
  return out;
}

bool same_pattern(la::Csr const& a, la::Csr const& b) {
  auto const equal = [](auto const& x, auto const& y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  return equal(a.row_offsets(), b.row_offsets()) && equal(a.column_indices(), b.column_indices());
}

template <class T>
class Multifrontal {
 public:
  Multifrontal(FactorKind kind, Symbolic const& symbolic, la::Csr const& b, la::Csr const& bt, Pivoting const& pivoting,
               std::function<void(double)> const& told)
      : kind_(kind),
        nodes_(symbolic.nodes),
        symbolic_(symbolic),
        b_(b),
        bt_(bt),
        pivoting_(pivoting),
        told_(told),
        updates_(at(nodes_.count())),
        children_(at(nodes_.count())),
        ids_(at(nodes_.count())),
        results_(at(nodes_.count())) {
    out_.kind = kind;
    out_.size = b.rows;
    out_.fronts.resize(at(nodes_.count()));
    for (std::int32_t s = 0; s < nodes_.count(); ++s) {
      all_work_ += symbolic.work[at(s)] + 1;
      if (auto const p = nodes_.parent[at(s)]; p >= 0) children_[at(p)].push_back(s);
    }
    if (kind == FactorKind::hermitian) d_.resize(at(nodes_.count()));
    drops_zeros_ = kind == FactorKind::lu && !same_pattern(b, bt);
    if (drops_zeros_) return;
    // the factors of fronts that delay no pivot are in one array: a solve streams it, and large pages hold it
    std::size_t bytes = 0;
    for (std::int32_t s = 0; s < nodes_.count(); ++s) {
      where_.push_back(bytes);
      auto const w = std::size_t(nodes_.width(s)), b = std::size_t(nodes_.below(s));
      bytes += (w * (w + b) + (hermitian() ? 0 : w * b)) * sizeof(T);
    }
    all_ = device::Array(bytes);
  }

  NumericFactors run() {
    lapack::Threads const one_each(1);
    auto const threads = lapack::threads_are_ours ? device::host::team_size() : 1;
    auto const plan = schedule(nodes_.parent, symbolic_.work, threads > 1 && symbolic_.flops > 1e7 ? symbolic_.flops / (6 * threads) : 0);
    auto const caller = device::host::this_thread();
    each_task(plan.subtrees.size(), [&] {
      return [&, place = std::vector<std::int32_t>(at(b_.rows)), chunks = Chunks()](std::size_t t) mutable {
        for (auto s = plan.subtrees[t].first; s <= plan.subtrees[t].second; ++s) {
          one(s, place, chunks);
          if (device::host::this_thread() == caller) told_(done_ / all_work_);
        }
      };
    });
    std::vector<std::int32_t> place(at(b_.rows));
    Chunks chunks;
    for (auto const s : plan.rest) {
      one(s, place, chunks);
      told_(done_ / all_work_);
    }
    number();
    return std::move(out_);
  }

 private:
  bool hermitian() const { return kind_ != FactorKind::lu; }

  void one(std::int32_t s, std::vector<std::int32_t>& place, Chunks& chunks) {
    if (not_positive_ >= 0) return;
    auto const first = nodes_.starts[at(s)], end = nodes_.starts[at(s) + 1], own = end - first;
    auto const below = nodes_.rows(s);
    auto& ids = ids_[at(s)];
    ids.rows.reserve(at(own));
    for (auto k = first; k < end; ++k) ids.rows.push_back(k);
    ids.columns = ids.rows;
    for (auto const child : children_[at(s)]) {
      auto const& u = updates_[at(child)];
      ids.rows.insert(ids.rows.end(), u.rows.begin(), u.rows.end());
      ids.columns.insert(ids.columns.end(), u.columns.begin(), u.columns.end());
    }
    auto const summed = std::int32_t(ids.rows.size()), size = summed + std::int32_t(below.size());
    for (auto k = first; k < end; ++k) place[at(k)] = k - first;
    for (std::size_t i = 0; i < below.size(); ++i) place[at(below[i])] = summed + std::int32_t(i);

    auto& front = out_.fronts[at(s)];
    if (summed == own && !drops_zeros_) {
      auto const panel = std::size_t(size) * at(own) * sizeof(T), right = at(size - own) * at(own) * sizeof(T);
      front.panel = zeroed(all_.view(where_[at(s)], panel));
      if (!hermitian()) front.right = zeroed(all_.view(where_[at(s)] + panel, right));
    } else {
      front.panel = zeros<T>(size, summed);
      if (!hermitian()) front.right = zeros<T>(size - summed, summed);
    }
    device::Array square = zeros<T>(size - summed, size - summed);
    Front<T> f{size,           summed,          front.panel.as<T>(), hermitian() ? nullptr : front.right.as<T>(),
               square.as<T>(), ids.rows.data(), ids.columns.data(),  is_cut(s)};
    assemble(f, first, end, place);
    auto delayed = own;
    for (auto const child : children_[at(s)]) {
      add(f, updates_[at(child)], delayed, place);
      delayed += updates_[at(child)].delayed;
      updates_[at(child)] = {};
    }
    auto& result = results_[at(s)];
    if (kind_ == FactorKind::lu) {
      result = factor_lu(f, pivoting_);
    } else if (kind_ == FactorKind::cholesky) {
      result = factor_cholesky(f);
      if (result.not_positive >= 0) {
        std::int32_t none = -1;
        not_positive_.compare_exchange_strong(none, first + result.not_positive);
      }
    } else {
      auto& d = d_[at(s)];
      d.resize(2 * at(summed));
      result = factor_hermitian(f, pivoting_, d.data(), d.data() + summed);
    }
    leave(s, f, front, std::move(square), result.pivots);
    if (drops_zeros_) drop_zeros(s, front, chunks);
    done_.fetch_add(symbolic_.work[at(s)] + 1);
  }

  /// A root with rows that are not eliminated here.
  bool is_cut(std::int32_t s) const { return nodes_.parent[at(s)] < 0 && nodes_.below(s) > 0; }

  T* panel(Front<T> const& f, std::int32_t i, std::int32_t j) const { return f.panel + std::int64_t(j) * f.size + i; }

  /// A number at (i, j) of the front; of Hermitian kinds i >= j.
  T& entry(Front<T> const& f, std::int32_t i, std::int32_t j) const {
    auto const below = std::int64_t(f.size - f.summed);
    if (j < f.summed) return *panel(f, i, j);
    if (i < f.summed) return f.right[i * below + (j - f.summed)];
    return f.update[(j - f.summed) * below + (i - f.summed)];
  }
  void add_entry(Front<T> const& f, std::int32_t i, std::int32_t j, T v) const {
    if (hermitian() && i < j) entry(f, j, i) += conj(v);
    else entry(f, i, j) += v;
  }

  /// Entries of B in the supernode's rows, and columns.
  void assemble(Front<T> const& f, std::int32_t first, std::int32_t end, std::vector<std::int32_t> const& place) const {
    auto const each = [&](la::Csr const& a, std::int32_t from, auto const& put) {
      auto const ptr = a.row_offsets();
      auto const col = a.column_indices();
      auto const val = a.entries<T>();
      for (auto i = first; i < end; ++i) {
        auto const begin = col.begin() + ptr[at(i)], last = col.begin() + ptr[at(i) + 1];
        for (auto c = std::lower_bound(begin, last, from < 0 ? i : from); c != last; ++c)
          put(i - first, place[at(*c)], val[std::size_t(c - col.begin())]);
      }
    };
    if (hermitian()) {
      each(b_, -1, [&](std::int32_t i, std::int32_t j, T v) { *panel(f, j, i) += conj(v); });
      return;
    }
    each(b_, first, [&](std::int32_t i, std::int32_t j, T v) { entry(f, i, j) += v; });
    each(bt_, end, [&](std::int32_t j, std::int32_t i, T v) { *panel(f, i, j) += v; });
  }

  /// A child's update. delayed: where its delayed columns are in this front.
  void add(Front<T> const& f, Update const& u, std::int32_t delayed, std::vector<std::int32_t> const& place) const {
    auto const below = std::int64_t(f.size - f.summed);
    std::vector<std::int32_t> to(at(u.below));
    auto const numbers = std::span(u.below_rows);
    for (std::int32_t i = 0; i < u.below; ++i) to[at(i)] = place[at(numbers[at(i)])];
    if (u.delayed > 0) {
      auto const* const p = u.panel.as<T>();
      auto const rows = std::int64_t(u.delayed + u.below);
      for (std::int32_t j = 0; j < u.delayed; ++j)
        for (auto i = hermitian() ? j : 0; i < rows; ++i)
          add_entry(f, i < u.delayed ? delayed + std::int32_t(i) : to[std::size_t(i - u.delayed)], delayed + j, p[j * rows + i]);
      if (!hermitian())
        for (std::int32_t i = 0; i < u.delayed; ++i)
          for (std::int32_t j = 0; j < u.below; ++j) entry(f, delayed + i, to[at(j)]) += u.right.as<T>()[std::int64_t(i) * u.below + j];
    }
    auto const* const c = u.square.as<T>();
    // the first ones are summed here
    auto const summed = std::int32_t(std::lower_bound(to.begin(), to.end(), f.summed) - to.begin());
    for (std::int32_t j = 0; j < u.below; ++j) {
      T const* const from = c + std::int64_t(j) * u.below;
      auto const J = to[at(j)];
      if (j < summed) {
        T* const column = panel(f, 0, J);
        for (auto i = hermitian() ? j : 0; i < u.below; ++i) column[to[at(i)]] += from[i];
        continue;
      }
      if (!hermitian())
        for (std::int32_t i = 0; i < summed; ++i) f.right[to[at(i)] * below + (J - f.summed)] += from[i];
      T* const column = f.update + (J - f.summed) * below - f.summed;
      for (auto i = hermitian() ? j : summed; i < u.below; ++i) column[to[at(i)]] += from[i];
    }
  }

  /// Keeps the factors, and the update for the parent.
  void leave(std::int32_t s, Front<T> const& f, FactoredFront& front, device::Array square, std::int32_t pivots) {
    auto const below = f.size - f.summed, delayed = f.summed - pivots;
    front.pivots = pivots;
    front.size = f.size;
    auto& u = updates_[at(s)];
    u.below = below;
    u.below_rows = nodes_.rows(s);
    if (nodes_.parent[at(s)] >= 0 || is_cut(s)) u.square = std::move(square);
    if (delayed == 0) return;
    auto& ids = ids_[at(s)];
    u.delayed = delayed;
    u.rows.assign(ids.rows.begin() + pivots, ids.rows.end());
    auto const& columns = hermitian() ? ids.rows : ids.columns;
    u.columns.assign(columns.begin() + pivots, columns.end());
    auto const rest = std::int64_t(f.size - pivots);
    u.panel = device::Array(std::size_t(rest * delayed) * sizeof(T));
    for (std::int32_t j = 0; j < delayed; ++j) std::copy_n(panel(f, pivots, pivots + j), rest, u.panel.as<T>() + j * rest);
    device::Array kept(std::size_t(f.size) * at(pivots) * sizeof(T));
    std::copy_n(f.panel, std::int64_t(f.size) * pivots, kept.as<T>());
    if (!hermitian()) {
      u.right = device::Array(at(below) * at(delayed) * sizeof(T));
      std::copy_n(f.right + std::int64_t(pivots) * below, std::int64_t(below) * delayed, u.right.as<T>());
      device::Array right(std::size_t(rest) * at(pivots) * sizeof(T));
      for (std::int32_t i = 0; i < pivots; ++i) {
        T* const to = right.as<T>() + i * rest;
        for (std::int32_t j = 0; j < delayed; ++j) to[j] = *panel(f, i, pivots + j);
        std::copy_n(f.right + std::int64_t(i) * below, below, to + delayed);
      }
      front.right = std::move(right);
    }
    front.panel = std::move(kept);
  }

  /// Keeps rows of L and columns of U with an entry that is not zero.
  void drop_zeros(std::int32_t s, FactoredFront& front, Chunks& chunks) {
    auto& ids = ids_[at(s)];
    auto const pivots = front.pivots, below = front.below();
    // those that are not eliminated here: other ranks wait for what is said about them
    auto const rows = nodes_.rows(s);
    auto const last = std::int32_t(rows.end() - std::lower_bound(rows.begin(), rows.end(), nodes_.starts.back()));
    ids.kept_rows = rows_with_entries(pivots, last, front.size, pivots, front.panel.as<T>());
    ids.kept_columns = rows_with_entries(0, last, below, pivots, front.right.as<T>());
    auto const size = pivots + std::int32_t(ids.kept_rows.size()), beside = std::int32_t(ids.kept_columns.size());
    auto panel = chunks.take(at(size) * at(pivots) * sizeof(T)), right = chunks.take(at(beside) * at(pivots) * sizeof(T));
    for (std::int64_t j = 0; j < pivots; ++j) {
      T const* const from = front.panel.as<T>() + j * front.size;
      T* const to = std::copy_n(from, pivots, panel.as<T>() + j * size);
      for (std::size_t i = 0; i < ids.kept_rows.size(); ++i) to[i] = from[pivots + ids.kept_rows[i]];
      T const* const from_right = front.right.as<T>() + j * below;
      T* const to_right = right.as<T>() + j * beside;
      for (std::size_t i = 0; i < ids.kept_columns.size(); ++i) to_right[i] = from_right[ids.kept_columns[i]];
    }
    front.panel = std::move(panel);
    front.right = std::move(right);
    front.size = size;
  }

  /// Numbers pivots, and rows and columns by them.
  void number() {
    auto const n = b_.rows;
    if (not_positive_ >= 0) {
      out_.not_positive = not_positive_;
      out_.fronts.clear();
      return;
    }
    std::vector<std::int32_t> row(at(n)), column(at(n));
    auto const eliminated = nodes_.starts.back();
    for (auto i = eliminated; i < n; ++i) row[at(i)] = column[at(i)] = i;
    out_.row_order.reserve(at(eliminated));
    if (kind_ == FactorKind::hermitian) {
      out_.diagonal = device::Array(at(n) * sizeof(T));
      out_.lower = device::Array(at(n) * sizeof(T));
    }
    for (std::int32_t s = 0; s < nodes_.count(); ++s) {
      auto& front = out_.fronts[at(s)];
      auto const& ids = ids_[at(s)];
      front.first = std::int32_t(out_.row_order.size());
      for (std::int32_t k = 0; k < front.pivots; ++k) {
        auto const i = ids.rows[at(k)], j = hermitian() ? i : ids.columns[at(k)];
        row[at(i)] = column[at(j)] = front.first + k;
        if (kind_ == FactorKind::hermitian) {
          auto const& d = d_[at(s)];
          out_.diagonal.as<T>()[front.first + k] = d[at(k)];
          out_.lower.as<T>()[front.first + k] = d[ids.rows.size() + at(k)];
        }
        out_.row_order.push_back(i);
        out_.column_order.push_back(j);
      }
    }
    // what is below the pivots of front s, or right of them
    auto const numbers_beyond = [&](std::int32_t s, bool of_columns) {
      auto const& ids = ids_[at(s)];
      auto const& own = of_columns ? ids.columns : ids.rows;
      auto const& numbers = of_columns ? column : row;
      std::vector<std::int32_t> list;
      list.reserve(own.size() + nodes_.rows(s).size());
      for (auto k = at(out_.fronts[at(s)].pivots); k < own.size(); ++k) list.push_back(numbers[at(own[k])]);
      for (auto const g : nodes_.rows(s)) list.push_back(numbers[at(g)]);
      return list;
    };
    for (std::int32_t s = 0; s < nodes_.count(); ++s) {
      auto& front = out_.fronts[at(s)];
      auto const& ids = ids_[at(s)];
      front.rows = numbers_beyond(s, false);
      if (!hermitian()) front.columns = numbers_beyond(s, true);
      auto const p = std::int64_t(front.pivots);
      out_.largest_front = std::max(out_.largest_front, std::int32_t(p + std::int64_t(front.rows.size())));
      if (drops_zeros_) {
        front.rows = in_order(front.rows, ids.kept_rows);
        front.columns = in_order(front.columns, ids.kept_columns);
      }
      auto const below = std::int64_t(front.below()), beside = std::int64_t(front.beside());
      out_.entries += hermitian() ? p * (p + 1) / 2 + p * below : p * (p + below + beside);
      out_.delayed += std::int64_t(ids.rows.size()) - p;
      auto const& r = results_[at(s)];
      out_.replaced += r.replaced;
      out_.two_by_two += r.two_by_two;
      out_.negative += r.negative;
      out_.largest = std::max(out_.largest, r.largest);
      if (is_cut(s)) {
        auto const rows = nodes_.rows(s);
        out_.updates.push_back({{rows.begin(), rows.end()}, std::move(updates_[at(s)].square)});
      }
    }
    // for solves the work is the entries, and subtrees are the same for any number of threads: so are the sums
    std::vector<double> work;
    double all = 0;
    for (auto const& f : out_.fronts) {
      double const beyond = hermitian() ? f.below() : (f.below() + f.beside()) / 2.0;
      work.push_back(f.pivots * (f.pivots + beyond)), all += work.back();
    }
    auto plan = schedule(nodes_.parent, work, all > 1e6 ? all / 4 : 0);
    out_.subtrees = std::move(plan.subtrees);
    out_.rest = std::move(plan.rest);
    for (auto const& subtree : out_.subtrees) {
      out_.rows_beyond.push_back(numbers_beyond(subtree.second, false));
      if (!hermitian()) out_.columns_beyond.push_back(numbers_beyond(subtree.second, true));
    }
  }

  FactorKind kind_;
  Supernodes const& nodes_;
  Symbolic const& symbolic_;
  la::Csr const &b_, &bt_;
  Pivoting pivoting_;
  std::function<void(double)> const& told_;
  struct Ids {
    std::vector<std::int32_t> rows, columns;
    std::vector<std::int32_t> kept_rows, kept_columns;  // of those that are not pivots, where zeros are dropped
  };
  std::vector<Update> updates_;
  std::vector<std::vector<std::int32_t>> children_;
  std::vector<Ids> ids_;
  std::vector<Eliminated> results_;
  std::vector<std::vector<T>> d_;
  NumericFactors out_;
  bool drops_zeros_ = false;
  device::Array all_;
  std::vector<std::size_t> where_;  // in it
  double all_work_ = 0;
  std::atomic<double> done_ = 0;
  std::atomic<std::int32_t> not_positive_ = -1;
};

}  // namespace

template <class T>
NumericFactors factor(FactorKind kind, Symbolic const& symbolic, la::Csr const& b, la::Csr const& bt, Pivoting const& pivoting,
                      std::function<void(double)> const& told) {
  return Multifrontal<T>(kind, symbolic, b, bt, pivoting, told).run();
}

#define ASTERISM_INSTANTIATE(T)                                                                                   \
  template NumericFactors factor<T>(FactorKind, Symbolic const&, la::Csr const&, la::Csr const&, Pivoting const&, \
                                    std::function<void(double)> const&);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct::kernel
