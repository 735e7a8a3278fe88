#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "asterism/base/format.hpp"
#include "asterism/la/products/factors.hpp"
#include "asterism/la/products/sparse_product.hpp"

namespace asterism::la {
namespace {

/// Numbers of entries as values, which travel through a transpose or to another rank as the entries themselves do. Exact below 2^53.
Rows<double> numbered(Rows<double> rows) {
  rows.val = Buffer<double>(std::max<std::int64_t>(rows.nnz(), 1));
  for (std::int64_t p = 0; p < rows.nnz(); ++p) rows.val[p] = double(p);
  return rows;
}

/// From the entries of rows on their ranks, in their order, to `leaves`, whose owners and numbers there are known.
comm::StarForest entry_forest(comm::Communicator const& comm, std::int64_t entries, std::vector<std::int64_t> leaves,
                              std::vector<comm::RemoteRoot> const& roots, std::int64_t room) {
  comm::StarForest forest(comm, entries, std::move(leaves), roots, room);
  forest.set_name("entries of a product");
  return forest;
}

template <class T>
Rows<double> pattern_of(Rows<T> const& rows) {
  Rows<double> out;
  out.count = rows.count;
  out.ptr = rows.ptr;
  out.col = rows.col;
  out.map = rows.map;
  return out;
}

/// Brings the values of a matrix in the order of its rows into that of the factor's rows.
template <class T>
class FactorValues {
 public:
  FactorValues(Factor const& f, comm::Cancellation& cancel)
      : form_(f.form), shares_(f.form == Form::plain && f.matrix.comm().size() == 1), rows_(rows_of<T>(f, cancel)) {
    if (form_ == Form::plain) return;
    auto const given = numbered(pattern_of(rows_of<T>(f.matrix.converted(dtype_v<T>))));
    auto const numbers = transpose(given, f.matrix.range(), f.matrix.domain(), false, cancel);
    std::vector<std::int64_t> leaves;
    std::vector<comm::RemoteRoot> roots;
    for (std::int64_t p = 0; p < numbers.nnz(); ++p) {
      leaves.push_back(p);
      roots.push_back({f.matrix.range().owner(numbers.map.global(numbers.col[p])), std::int64_t(numbers.val[p])});
    }
    auto const room = std::int64_t(leaves.size());
    forest_ = entry_forest(f.matrix.comm(), given.nnz(), std::move(leaves), roots, room);
  }
  Rows<T> const& rows() const { return rows_; }
  void take(Matrix const& A) {
    if (form_ == Form::plain) return take_values(rows_, A.converted(dtype_v<T>));
    auto const given = rows_of<T>(A.converted(dtype_v<T>));
    forest_.bcast(given.val.data(), rows_.val.data());
    if (form_ == Form::conjugate_transposed)
      for (auto& v : rows_.val) v = conj(v);
  }
  /// Does not hold the values of a matrix any longer.
  void release() {
    if (shares_) rows_.val = {};
  }

 private:
  Form form_;
  bool shares_;  // the arrays of a matrix
  Rows<T> rows_;
  comm::StarForest forest_;
};

/// The right side of a step: rows for all columns of the left one, those of other ranks too.
template <class T>
class RightRows {
 public:
  RightRows(Rows<T> const& B, Layout const& rows, Layout const& columns, ColumnMap const& wanted)
      : rows_(wide_rows(B, rows, columns, wanted)), several_(rows.comm().size() > 1) {
    if (!several_) return;
    auto const numbers = wide_rows(numbered(pattern_of(B)), rows, columns, wanted).far;
    std::vector<std::int64_t> leaves;
    std::vector<comm::RemoteRoot> roots;
    for (std::int32_t g = 0; g < numbers.count; ++g) {
      auto const owner = rows.owner(wanted.ghosts[std::size_t(g)]);
      for (auto p = numbers.ptr[g]; p < numbers.ptr[g + 1]; ++p)
        leaves.push_back(p), roots.push_back({owner, std::int64_t(numbers.val[p])});
    }
    auto const room = std::int64_t(leaves.size());
    forest_ = entry_forest(rows.comm(), B.nnz(), std::move(leaves), roots, room);
  }
  WideRows<T> const& rows() const { return rows_; }
  void take(Rows<T> const& B) {
    rows_.own.val = B.val;
    if (several_) forest_.bcast(B.val.data(), rows_.far.val.data());
  }
  void release() { rows_.own.val = {}; }

 private:
  WideRows<T> rows_;
  comm::StarForest forest_;
  bool several_;
};

/// Where rows of a product on several ranks are written: those without columns of other ranks where they are in the diagonal block, and
/// the others behind all of it, from where their entries go to both blocks.
template <class T>
class BlockRows {
 public:
  BlockRows() = default;
  explicit BlockRows(Rows<T> const& C) {
    rows_.count = C.count;
    if (C.map.ghosts.empty()) {
      rows_.ptr = C.ptr;
      diagonal_ = size_ = C.nnz();
      return;
    }
    rows_.ptr = Buffer<std::int64_t>(std::int64_t(C.count) + 1, 0);
    for (std::int32_t i = 0; i < C.count; ++i) {
      auto first = C.ptr[i], last = C.ptr[i + 1];
      while (first < last && C.col[first] < C.map.below) ++first;
      while (first < last && C.col[last - 1] >= C.map.below + C.map.own) --last;
      auto const below = first - C.ptr[i], above = C.ptr[i + 1] - last;
      rows_.ptr[i] = diagonal_;
      if (below + above > 0) apart_.push_back({i, below, last - first, above, diagonal_, coupling_});
      diagonal_ += last - first;
      coupling_ += below + above;
    }
    size_ = diagonal_;
    for (auto const& a : apart_) {
      rows_.ptr[a.row] = size_;
      size_ += a.below + a.inside + a.above;
    }
  }
  std::int64_t size() const { return size_; }
  /// For values of that size.
  Rows<T> rows(Buffer<T> values) const {
    auto out = rows_;
    out.val = std::move(values);
    return out;
  }
  Matrix matrix(Buffer<T> const& values, Matrix const& pattern) const {
    device::Array const coupling(std::size_t(coupling_) * sizeof(T));
    auto* const to = coupling.as<T>();
    for (auto const& a : apart_) {
      auto const* const from = values.data() + rows_.ptr[a.row];
      std::copy_n(from, a.below, to + a.coupling);
      std::copy_n(from + a.below, a.inside, values.data() + a.diagonal);
      std::copy_n(from + a.below + a.inside, a.above, to + a.coupling + a.below);
    }
    return pattern.with_block_values(dtype_v<T>, values.array().view(0, std::size_t(diagonal_) * sizeof(T)), coupling,
                                     device::Memory::host);
  }

 private:
  struct Apart {
    std::int32_t row;
    std::int64_t below, inside, above;  // entries
    std::int64_t diagonal, coupling;    // where they begin in the blocks
  };
  Rows<T> rows_;
  std::vector<Apart> apart_;
  std::int64_t diagonal_ = 0, coupling_ = 0, size_ = 0;
};

}  // namespace

struct ProductPlan::Steps {
  virtual ~Steps() = default;
  virtual Matrix multiply(std::span<Matrix const> matrices, comm::Cancellation& cancel) = 0;
  std::mutex mutex;
  Matrix first;
  Dtype dtype{};
};

/// F0 (F1 (F2 ...)): a step for each product, the last first.
template <class T>
struct ProductPlan::StepsOf final : Steps {
  struct Step {
    RightRows<T> right;
    Rows<T> product;
    ProductPlaces places;
  };
  std::vector<FactorValues<T>> factors;
  std::vector<Step> steps;
  BlockRows<T> blocks;          // of the last product
  std::vector<Buffer<T>> made;  // values of the last products, to be used again when nobody has them any more

  StepsOf(std::span<Factor const> given, comm::Cancellation& cancel) {
    for (auto const& f : given) factors.emplace_back(f, cancel);
    auto const& columns = given.back().domain();
    for (auto i = given.size() - 1; i-- > 0;) {
      auto const& left = factors[i].rows();
      RightRows<T> right(steps.empty() ? factors.back().rows() : steps.back().product, given[i + 1].range(), columns, left.map);
      ProductPlaces places;
      auto C = sparse_product(left, Part::all, right.rows(), cancel, &places);
      steps.push_back({std::move(right), std::move(C), std::move(places)});
    }
    auto& last = steps.back().product;
    first = matrix_on(last, space_of_product(given), columns);
    blocks = BlockRows<T>(last);
    last = {};
    release();
  }

  /// A plan holds no values of matrices that others may have let go.
  void release() {
    for (auto& f : factors) f.release();
    steps.front().right.release();
  }

  /// For the values of a product. Fresh pages can take as long as the multiplications.
  Buffer<T> values_of_product(std::int64_t n) {
    for (auto const& b : made)
      if (b.array().buffer().use_count() == 1) {
        std::atomic_thread_fence(std::memory_order_acquire);
        b.array().settle(device::Access::write, "values of a product");
        return b;
      }
    if (made.size() == 2) made.erase(made.begin());
    made.emplace_back(std::max<std::int64_t>(n, 1));
    return made.back();
  }

  Matrix multiply(std::span<Matrix const> matrices, comm::Cancellation& cancel) override {
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i].take(matrices[i]);
    auto const* right = &factors.back().rows();
    auto const values = values_of_product(blocks.size());
    auto const product = blocks.rows(values);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      auto& step = steps[s];
      step.right.take(*right);
      right = s + 1 < steps.size() ? &step.product : &product;
      step.places.multiply(factors[factors.size() - 2 - s].rows(), step.right.rows(), *right, cancel);
    }
    release();
    return blocks.matrix(values, first);
  }
};

ProductPlan::ProductPlan(std::span<Factor const> factors) {
  check_factors(factors);
  auto const dtype = dtype_of(factors);
  steps_ = run_product(factors[0].matrix.comm(), dtype, "MatMatMultSym", describe(factors), [&](auto tag, comm::Cancellation& cancel) {
    return std::shared_ptr<Steps>(std::make_shared<StepsOf<typename decltype(tag)::type>>(factors, cancel));
  });
  steps_->dtype = dtype;
  for (auto const& f : factors)  // their places alone
    factors_.push_back(
        {f.matrix.general().with_block_values(f.matrix.dtype(), device::Array(0), device::Array(0), device::Memory::host), f.form});
}

Matrix const& ProductPlan::first() const { return steps_->first; }

Matrix ProductPlan::multiply(std::span<Matrix const> matrices) const {
  ASTERISM_REQUIRE(matrices.size() == factors_.size(), value, "product plan: {} matrices for {} factors.", matrices.size(),
                   factors_.size());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    auto const &now = matrices[i], &before = factors_[i].matrix;
    ASTERISM_REQUIRE(promote(now.dtype(), steps_->dtype) == steps_->dtype, dtype, "product plan: factor {} is {}, but the plan is for {}.",
                     i + 1, name_of(now.dtype()), name_of(steps_->dtype));
    ASTERISM_REQUIRE(now.has_pattern_of(before), value,
                     "product plan: factor {} has entries at other places than the one that the plan was made with. Make a plan for it.",
                     i + 1);
  }
  std::lock_guard const lock(steps_->mutex);
  return run_product(factors_[0].matrix.comm(), steps_->dtype, "MatMatMultNum", describe(factors_),
                     [&](auto, comm::Cancellation& cancel) { return steps_->multiply(matrices, cancel); });
}

}  // namespace asterism::la
