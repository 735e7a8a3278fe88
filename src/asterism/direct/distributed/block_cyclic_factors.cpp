#include "asterism/direct/distributed/block_cyclic_factors.hpp"

#include <algorithm>
#include <cstring>
#include <queue>
#include <utility>
#include <vector>

#include "asterism/comm/channels/channels.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/direct/distributed/block_column.kernels.hpp"
#include "asterism/direct/distributed/parcels.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

/// What one source column K does to this rank's blocks: which rows of its panel it needs, as the left and as the right operand.
struct Needs {
  Ints left, right;  // supernodes, ascending
  bool none() const { return left.empty(); }
};

/// Which supernodes' blocks (I, K) a rank needs to update its blocks (I, J) with I >= J.
Needs needs_of(Ints const& below, ProcessGrid const& grid, int rank) {
  Needs out;
  for (auto const i : below) {
    if (i % grid.rows == rank / grid.columns) out.left.push_back(i);
    if (i % grid.columns == rank % grid.columns) out.right.push_back(i);
  }
  if (out.left.empty() || out.right.empty()) return {};
  auto const first = out.right.front(), last = out.left.back();
  std::erase_if(out.left, [&](std::int32_t i) { return i < first; });
  std::erase_if(out.right, [&](std::int32_t j) { return j > last; });
  if (out.right.empty()) return {};
  return out;
}

/// Those of them that a rank has, ascending.
Ints blocks_from(Needs const& needs, ProcessGrid const& grid, int owner) {
  Ints out;
  std::set_union(needs.left.begin(), needs.left.end(), needs.right.begin(), needs.right.end(), std::back_inserter(out));
  std::erase_if(out, [&](std::int32_t i) { return i % grid.rows != owner / grid.columns; });
  return out;
}

template <class T>
class BlockCyclic {
 public:
  BlockCyclic(comm::Communicator const& comm, BlockCyclicMatrix& matrix, kernel::Pivoting const& pivoting,
              std::function<void(double)> const& told)
      : comm_(comm),
        matrix_(matrix),
        pattern_(matrix.lower->pattern()),
        grid_(matrix.lower->grid()),
        rank_(comm.rank()),
        pivoting_(pivoting),
        told_(told),
        sources_(std::size_t(pattern_.count())),
        columns_(std::size_t(pattern_.count())),
        place_(pattern_.nodes().starts.empty() ? 0 : std::size_t(pattern_.nodes().starts.back())),
        channels_(comm, plan()) {
    channels_.set_name("factorisation");
    if (matrix.kind == FactorKind::hermitian) matrix.pivots = device::Array(std::size_t(pivots_) * sizeof(T));
  }

  BlockCyclicResult run() {
    for (std::int32_t j = 0; j < pattern_.count(); ++j)
      if (column(j).mine()) advance(j);
    double const all = std::max(1.0, double(tasks_));
    double done = 0;
    while (columns_left_ > 0) {
      while (auto const a = channels_.poll()) arrived(*a);
      if (ready_.empty()) {
        arrived(channels_.wait());
        continue;
      }
      auto const j = ready_.top();
      ready_.pop();
      work(j);
      told_(++done / all);
    }
    return result_;
  }

 private:
  struct Source {
    Needs needs;
    std::int32_t rows_left = 0, rows_right = 0;  // of its panel
    std::vector<std::int64_t> at;                // first row in the operands, by supernode of left, then of right
    std::int32_t missing = 0;                    // parts that did not come yet
    std::int32_t uses = 0;                       // columns that it still updates
    device::Array left[2], right[2];             // of L, and of U's transposed; of L D L^H the right is L D
    Ints waiting;                                // columns whose next source it is
  };
  struct Column {
    bool diagonal = false, panel = false;  // whether this rank has them
    bool known = false;                    // the diagonal block's factors
    Ints sources;                          // that update it here
    std::vector<int> others;               // ranks that need the diagonal block's factors of this one
    std::size_t next = 0;
    std::int64_t pivots = 0;  // where they are, of L D L^H
    std::vector<T> factors;   // of the diagonal block, where another rank has it, and its pivots
    Ints order;
    bool mine() const { return diagonal || panel; }
  };

  Column& column(std::int32_t j) { return columns_[std::size_t(j)]; }
  Source& source(std::int32_t k) { return sources_[std::size_t(k)]; }
  std::int32_t width(std::int32_t k) const { return pattern_.nodes().width(k); }
  int parts() const { return matrix_.kind == FactorKind::lu ? 2 : 1; }
  /// Numbers of the pivots of column k.
  std::int64_t pivots_of(std::int32_t k) const { return matrix_.kind == FactorKind::hermitian ? 2 * std::int64_t(width(k)) : 0; }
  T* pivots(std::int32_t k) { return pivots_of(k) > 0 ? matrix_.pivots.as<T>() + column(k).pivots : nullptr; }
  LocalTriangle& triangle(int part) const { return part == 0 ? *matrix_.lower : *matrix_.upper; }
  T* diagonal(std::int32_t k) const { return reinterpret_cast<T*>(matrix_.lower->diagonal(k)); }
  T* panel(int part, std::int32_t k) const { return reinterpret_cast<T*>(triangle(part).panel(k)); }

  Ints below(std::int32_t k) const {
    Ints out;
    auto const [first, last] = pattern_.of_column(k);
    for (auto b = first; b < last; ++b) out.push_back(pattern_.block(b).row);
    return out;
  }
  std::int32_t rows_of(std::int32_t i, std::int32_t k) const { return pattern_.block(pattern_.find(i, k)).count; }

  /// What this rank does, and the channels on which it sends.
  std::vector<comm::Channel> plan() {
    std::vector<comm::Channel> out;
    auto const size = std::int64_t(sizeof(T));
    for (std::int32_t k = 0; k < pattern_.count(); ++k) {
      auto const under = below(k);
      auto const w = std::int64_t(width(k));
      auto& c = column(k);
      c.diagonal = matrix_.lower->owns_diagonal(k);
      c.panel = matrix_.lower->panel_rows(k) > 0;
      c.pivots = pivots_;
      if (c.diagonal) pivots_ += pivots_of(k);
      columns_left_ += c.mine();
      tasks_ += c.mine();
      if (c.diagonal)
        for (int r = 0; r < grid_.rows; ++r) {
          auto const other = r * grid_.columns + k % grid_.columns;
          if (other == rank_ || std::none_of(under.begin(), under.end(), [&](std::int32_t i) { return i % grid_.rows == r; })) continue;
          out.push_back({other, (w * w + pivots_of(k)) * size + w * 4, 2 * k});
          c.others.push_back(other);
        }
      if (c.panel)
        for (int other = 0; other < comm_.size(); ++other) {
          if (other == rank_) continue;
          std::int64_t rows = 0;
          for (auto const i : blocks_from(needs_of(under, grid_, other), grid_, rank_)) rows += rows_of(i, k);
          if (rows > 0) out.push_back({other, (rows * w * parts() + pivots_of(k)) * size, 2 * k + 1});
        }
      auto& s = source(k);
      s.needs = needs_of(under, grid_, rank_);
      if (s.needs.none()) continue;
      for (auto const i : s.needs.left) s.at.push_back(s.rows_left), s.rows_left += rows_of(i, k);
      for (auto const j : s.needs.right) s.at.push_back(s.rows_right), s.rows_right += rows_of(j, k);
      for (int other = 0; other < comm_.size(); ++other)
        if (other % grid_.columns == k % grid_.columns && !blocks_from(s.needs, grid_, other).empty()) ++s.missing;
      for (auto const j : s.needs.right) {
        ++s.uses;
        ++tasks_;
        column(j).sources.push_back(k);
      }
    }
    return out;
  }

  /// Puts the column where its next task will be found.
  void advance(std::int32_t j) {
    auto& c = column(j);
    if (c.next < c.sources.size()) {
      auto& s = source(c.sources[c.next]);
      if (s.missing == 0) ready_.push(j);
      else s.waiting.push_back(j);
    } else if (c.diagonal || c.known) {
      ready_.push(j);
    }
  }

  void work(std::int32_t j) {
    auto& c = column(j);
    if (c.next < c.sources.size()) {
      auto const k = c.sources[c.next++];
      update(k, j);
      if (--source(k).uses == 0) {
        source(k).left[0] = source(k).left[1] = source(k).right[0] = source(k).right[1] = {};
      }
      return advance(j);
    }
    if (c.diagonal) factor_diagonal(j);
    if (c.panel) finish_panel(j);
    c.factors = {};
    --columns_left_;
  }

  void factor_diagonal(std::int32_t k) {
    auto& c = column(k);
    auto const w = width(k);
    c.order.resize(std::size_t(w));
    auto const made = kernel::factor_diagonal(matrix_.kind, kernel::FactoredBlock<T>{w, diagonal(k), c.order.data(), pivots(k)}, pivoting_);
    result_.replaced += made.replaced, result_.two_by_two += made.two_by_two, result_.negative += made.negative;
    result_.largest = std::max(result_.largest, made.largest);
    if (made.not_positive >= 0) {  // others wait: go on with something, and tell it at the end
      if (result_.not_positive < 0) result_.not_positive = pattern_.nodes().starts[std::size_t(k)] + made.not_positive;
      for (std::int64_t i = 0; i < w; ++i)
        for (std::int64_t j = 0; j < w; ++j) diagonal(k)[j * w + i] = T(i == j ? 1 : 0);
    }
    if (matrix_.kind != FactorKind::cholesky) matrix_.lower->exchange_rows(k, c.order);
    message_.clear();
    comm::append<T>(message_, {diagonal(k), std::size_t(w) * std::size_t(w)});
    comm::append<T>(message_, {pivots(k), std::size_t(pivots_of(k))});
    comm::append<std::int32_t>(message_, c.order);
    for (int const other : c.others) channels_.put(other, message_, 2 * k);
  }

  void finish_panel(std::int32_t k) {
    auto& c = column(k);
    auto const w = width(k);
    auto const m = matrix_.lower->panel_rows(k);
    T const* const d = c.diagonal ? diagonal(k) : c.factors.data();
    T const* const by = c.diagonal ? pivots(k) : d + std::int64_t(w) * w;
    auto const largest = kernel::solve_panel(matrix_.kind, m, kernel::FactoredBlock<T const, std::int32_t const>{w, d, c.order.data(), by},
                                             panel(0, k), parts() == 1 ? nullptr : panel(1, k));
    result_.largest = std::max(result_.largest, largest);
    auto const under = below(k);
    for (int other = 0; other < comm_.size(); ++other) {
      auto const blocks = blocks_from(needs_of(under, grid_, other), grid_, rank_);
      if (blocks.empty()) continue;
      if (other == rank_) {
        take(k, blocks, by, [&](int part, std::size_t n) {
          return std::pair<T const*, std::int64_t>(panel(part, k) + matrix_.lower->row_in_panel(pattern_.find(blocks[n], k)), m);
        });
        continue;
      }
      std::int64_t rows = 0;
      for (auto const i : blocks) rows += rows_of(i, k);
      message_.resize(std::size_t(rows * w * parts() + pivots_of(k)) * sizeof(T));
      auto* to = reinterpret_cast<T*>(message_.data());
      for (int part = 0; part < parts(); ++part)
        for (std::int32_t q = 0; q < w; ++q)
          for (auto const i : blocks) {
            auto const count = rows_of(i, k);
            std::memcpy(static_cast<void*>(to), panel(part, k) + q * m + matrix_.lower->row_in_panel(pattern_.find(i, k)),
                        std::size_t(count) * sizeof(T));
            to += count;
          }
      if (pivots_of(k) > 0) std::memcpy(static_cast<void*>(to), by, std::size_t(pivots_of(k)) * sizeof(T));
      channels_.put(other, message_, 2 * k + 1);
    }
  }

  void arrived(comm::Channels::Arrival const& a) {
    auto const k = a.label / 2;
    auto const w = std::size_t(width(k));
    if (a.label % 2 == 0) {
      auto& c = column(k);
      c.factors.resize(w * w + std::size_t(pivots_of(k)));
      c.order.resize(w);
      auto const* from = a.data.data();
      read(from, c.factors.data(), c.factors.size());
      read(from, c.order.data(), c.order.size());
      c.known = true;
      channels_.release(a);
      if (c.next == c.sources.size()) ready_.push(k);
      return;
    }
    auto const blocks = blocks_from(source(k).needs, grid_, a.rank);
    std::int64_t rows = 0;
    std::vector<std::int64_t> first;
    for (auto const i : blocks) first.push_back(rows), rows += rows_of(i, k);
    auto const* const from = reinterpret_cast<T const*>(a.data.data());
    take(k, blocks, from + parts() * rows * std::int64_t(w),
         [&](int part, std::size_t n) { return std::pair<T const*, std::int64_t>(from + part * rows * std::int64_t(w) + first[n], rows); });
    channels_.release(a);
  }

  /// Blocks of a panel come to the operands. where(part, n): the first row of the n-th, and numbers from one column to the next. by: the
  /// column's pivots, of L D L^H.
  template <class F>
  void take(std::int32_t k, Ints const& blocks, T const* by, F const& where) {
    auto& s = source(k);
    auto const w = width(k);
    for (int part = 0; part < parts(); ++part) {
      if (!s.left[part]) {
        s.left[part] = device::Array(std::size_t(s.rows_left) * std::size_t(w) * sizeof(T));
        s.right[part] = device::Array(std::size_t(s.rows_right) * std::size_t(w) * sizeof(T));
      }
      for (std::size_t n = 0; n < blocks.size(); ++n) {
        auto const i = blocks[n];
        auto const count = std::size_t(rows_of(i, k)) * sizeof(T);
        auto const [from, next] = where(part, n);
        auto const put = [&](Ints const& list, std::size_t shift, T* to, std::int64_t leading) {
          auto const found = std::lower_bound(list.begin(), list.end(), i);
          if (found == list.end() || *found != i) return;
          auto const at = s.at[shift + std::size_t(found - list.begin())];
          for (std::int32_t q = 0; q < w; ++q) std::memcpy(static_cast<void*>(to + q * leading + at), from + q * next, count);
        };
        put(s.needs.left, 0, s.left[part].template as<T>(), s.rows_left);
        put(s.needs.right, s.needs.left.size(), s.right[part].template as<T>(), s.rows_right);
      }
    }
    if (--s.missing > 0) return;
    if (pivots_of(k) > 0)
      kernel::multiply_columns(kernel::BlockDiagonal<T>{w, by, by + w}, s.rows_right, s.right[0].template as<T>(), s.rows_right,
                               s.right[0].template as<T>(), s.rows_right);
    for (auto const j : s.waiting) ready_.push(j);
    s.waiting = {};
  }

  /// Blocks (I, J) -= L(I, K) U(K, J), and the same of U's transposed.
  void update(std::int32_t k, std::int32_t j) {
    auto const& s = source(k);
    auto const& needs = s.needs;
    auto const& nodes = pattern_.nodes();
    auto const w = width(k);
    auto const right_at = std::size_t(std::lower_bound(needs.right.begin(), needs.right.end(), j) - needs.right.begin());
    auto const column_rows = pattern_.rows(pattern_.block(pattern_.find(j, k)));
    auto const n = std::int64_t(column_rows.size());
    Ints columns;
    for (auto const c : column_rows) columns.push_back(c - nodes.starts[std::size_t(j)]);
    auto left_at = std::size_t(std::lower_bound(needs.left.begin(), needs.left.end(), j) - needs.left.begin());
    auto const right_row = s.at[needs.left.size() + right_at];
    auto const product = [&](int part, std::int64_t row, Ints const& rows, T* C, std::int64_t ldc) {
      int const other = parts() - 1 - part;
      kernel::subtract_at(kernel::Product<T>{std::int64_t(rows.size()), n, w, s.left[part].template as<T>() + row, s.rows_left,
                                             s.right[other].template as<T>() + right_row, s.rows_right, parts() == 1, rows.data(),
                                             columns.data(), C, ldc});
    };
    if (left_at < needs.left.size() && needs.left[left_at] == j) {
      product(0, s.at[left_at], columns, diagonal(j), width(j));
      ++left_at;
    }
    if (left_at == needs.left.size()) return;
    if (placed_ != j) {
      auto const [first, last] = pattern_.of_column(j);
      std::int32_t at = 0;
      for (auto b = first; b < last; ++b)
        if (matrix_.lower->owns(b))
          for (auto const r : pattern_.rows(pattern_.block(b))) place_[std::size_t(r)] = at++;
      placed_ = j;
    }
    Ints rows;
    for (auto i = left_at; i < needs.left.size(); ++i)
      for (auto const r : pattern_.rows(pattern_.block(pattern_.find(needs.left[i], k)))) rows.push_back(place_[std::size_t(r)]);
    for (int part = 0; part < parts(); ++part) product(part, s.at[left_at], rows, panel(part, j), matrix_.lower->panel_rows(j));
  }

  comm::Communicator comm_;
  BlockCyclicMatrix& matrix_;
  BlockPattern const& pattern_;
  ProcessGrid grid_;
  int rank_;
  kernel::Pivoting pivoting_;
  std::function<void(double)> const& told_;
  std::vector<Source> sources_;
  std::vector<Column> columns_;
  Ints place_;  // in the panel of column placed_, of rows of the whole matrix
  std::int32_t placed_ = -1;
  std::int64_t columns_left_ = 0, tasks_ = 0, pivots_ = 0;
  comm::Channels channels_;
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready_;
  std::vector<std::byte> message_;
  BlockCyclicResult result_;
};

}  // namespace

BlockCyclicResult factor(comm::Communicator const& comm, BlockCyclicMatrix& matrix, kernel::Pivoting const& pivoting,
                         std::function<void(double)> const& told) {
  return comm::collective(comm, "a factorisation", [&] {
    lapack::Threads const one_each(1);
    return with_dtype(matrix.lower->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      return BlockCyclic<T>(comm, matrix, pivoting, told).run();
    });
  });
}

}  // namespace asterism::direct
