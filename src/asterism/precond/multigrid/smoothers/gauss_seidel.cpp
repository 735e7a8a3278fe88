// Gauss-Seidel in place, by colours over all ranks or by each rank's rows: Saad (2003), section 12.4; Baker, Falgout, Kolev, Yang (2011).
#include <algorithm>

#include "asterism/base/profile.hpp"
#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/la/products/matrix_product.hpp"
#include "asterism/precond/levels.hpp"
#include "asterism/precond/multigrid/smoother.hpp"
#include "asterism/precond/multigrid/smoothers/colouring.hpp"
#include "asterism/precond/multigrid/smoothers/gauss_seidel.kernels.hpp"

namespace asterism::precond {
namespace {

class GaussSeidel final : public Smoother {
 public:
  GaussSeidel(Matrix const& A, SweepOrder order, Steps steps, bool hermitian) : order_(order), steps_(steps), space_(A.range()) {
    if (!hermitian) A_ = A;  // its adjoint is made when it is asked for
    comm::Communicator const& comm = A.comm();
    std::vector<std::int32_t> stage_of(std::size_t(A.range().local_size()), 0);
    if (order == SweepOrder::colours) {
      stage_of = colours_of(A, hermitian);
      std::int64_t most = -1;
      for (auto const c : stage_of) most = std::max<std::int64_t>(most, c);
      stages_ = comm.max(most) + 1;
    } else {
      auto const levels = levels_of_sweep(A.diagonal_block());
      stages_ = levels.count();
      for (std::size_t l = 0; l < std::size_t(stages_); ++l)
        for (auto p = levels.starts()[l]; p < levels.starts()[l + 1]; ++p)
          stage_of[std::size_t(levels.rows()[std::size_t(p)])] = std::int32_t(l);
    }
    take_rows(A, stage_of);
  }

  void run(Operator const&, Vector const& b, Vector*& x, Vector*&, Work&, Side side, bool fresh) const override {
    if (fresh) fill(*x, 0.0);
    auto const steps = steps_.on(side);
    static int const event = profile::event("MGGaussSeidel");
    profile::Scope const scope(event, double(steps) * double(values_.bytes() + columns_.bytes()));
    for (std::int64_t s = 0; s < steps; ++s) sweep(b, *x, side == Side::after);
  }
  SmootherPtr adjoint() const override {
    if (!A_) return with(steps_.swapped());
    auto out = std::make_shared<GaussSeidel>(la::transposed(A_, true), order_, steps_.swapped(), false);
    conjugate(inverse_, out->inverse_);  // sums of rows are not those of columns
    return out;
  }
  SmootherPtr with(Steps steps) const override {
    auto out = std::make_shared<GaussSeidel>(*this);
    out->steps_ = steps;
    return out;
  }
  bool symmetric() const override { return steps_.before == steps_.after; }
  bool by_ranks() const override { return order_ == SweepOrder::ranks; }
  std::size_t memory_bytes() const override {
    return rows_.bytes() + offsets_.bytes() + columns_.bytes() + values_.bytes() + inverse_.data().bytes();
  }
  std::string describe() const override {
    return format("gauss-seidel {} {}", text_of(steps_),
                  by_ranks() ? "within each rank (iterations depend on the ranks)" : format("in {} colours", stages_));
  }

 private:
  /// One rank's rows as they are swept.
  void take_rows(Matrix const& A, std::vector<std::int32_t> const& stage_of) {
    auto const n = A.range().local_size();
    auto const &own = A.diagonal_block(), &others = A.coupling_block();
    auto starts = std::make_shared<std::vector<std::int64_t>>(std::size_t(stages_) + 1, 0);
    for (auto const s : stage_of) ++(*starts)[std::size_t(s) + 1];
    for (std::size_t s = 0; s < std::size_t(stages_); ++s) (*starts)[s + 1] += (*starts)[s];
    std::vector<std::int32_t> rows(std::size_t(n), 0), columns;
    auto next = *starts;
    for (std::int64_t i = 0; i < n; ++i) rows[std::size_t(next[std::size_t(stage_of[std::size_t(i)])]++)] = std::int32_t(i);
    std::vector<std::int64_t> offsets(1, 0);
    columns.reserve(std::size_t(A.local_nnz()));
    values_ = la::Array(std::size_t(A.local_nnz()) * size_of(A.dtype()));
    inverse_ = A.diagonal();
    with_dtype(A.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto* const to = values_.as<T>();
      auto const inverse = inverse_.host<T>();
      for (auto const i : rows) {
        // in the order of global columns: the bits of sums do not depend on the ranks
        auto const take = [&](la::Csr const& block, std::int32_t first, auto const& wanted) {
          auto const ptr = block.row_offsets();
          auto const col = block.column_indices();
          auto const val = block.entries<T>();
          for (auto p = std::size_t(ptr[std::size_t(i)]); p < std::size_t(ptr[std::size_t(i) + 1]); ++p) {
            if (!wanted(col[p])) continue;
            to[columns.size()] = val[p];
            columns.push_back(first + col[p]);
          }
        };
        auto const is_below = [&](std::int32_t ghost) { return A.ghosts()[std::size_t(ghost)] < A.range().begin(); };
        take(others, std::int32_t(n), is_below);
        take(own, 0, [](std::int32_t) { return true; });
        take(others, std::int32_t(n), [&](std::int32_t ghost) { return !is_below(ghost); });
        real_t<T> coupled = 0;
        for (auto p = std::size_t(offsets.back()); p < columns.size(); ++p)
          if (columns[p] >= n) coupled += magnitude(to[p]);
        offsets.push_back(std::int64_t(columns.size()));
        // along the diagonal's own direction, so that the sum is as far from zero as can be
        auto& d = inverse[std::size_t(i)];
        if (order_ == SweepOrder::ranks && magnitude(d) > 0) d += d * T(coupled / magnitude(d));
      }
    });
    invert_entries(inverse_, "gauss-seidel", true);
    starts_ = std::move(starts);
    rows_ = la::Array::of(std::span<std::int32_t const>(rows));
    offsets_ = la::Array::of(std::span<std::int64_t const>(offsets));
    columns_ = la::Array::of(std::span<std::int32_t const>(columns));
    ghosts_ = std::int64_t(A.ghosts().size());
    if (A.comm().size() > 1) halo_ = comm::QueuedForest(A.halo());
  }

  void sweep(Vector const& b, Vector& x, bool backward) const {
    bool const alone = space_.comm().size() == 1;
    auto const& queue = x.queue();
    with_dtype(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using device::read;
      auto const k = x.columns(), own = space_.local_size();
      auto const ghosts = alone ? la::Array() : la::Array::fresh(queue, std::size_t(ghosts_ * k) * sizeof(T));
      auto const stages = [&](std::int64_t first, std::int64_t last) {
        if (!alone) halo_.bcast_begin(queue, x.dtype(), k, x.data(), ghosts).end();
        device::submit(queue, kernel::gauss_seidel<T>, starts_, first, last, backward, own, k, read<std::int32_t>(rows_),
                       read<std::int64_t>(offsets_), read<std::int32_t>(columns_), read<T>(values_), read<T>(inverse_.data()),
                       read<T>(b.data()), read<T>(ghosts), device::update<T>(x.data()));
      };
      if (alone || order_ == SweepOrder::ranks) return stages(0, stages_);
      for (std::int64_t s = 0; s < stages_; ++s) {
        auto const stage = backward ? stages_ - 1 - s : s;
        stages(stage, stage + 1);
      }
    });
  }

  SweepOrder order_;
  Steps steps_;
  Space space_;
  Matrix A_;  // none where it is its own adjoint
  std::int64_t stages_ = 0, ghosts_ = 0;
  LevelStarts starts_;
  la::Array rows_, offsets_, columns_, values_;  // the rows in the order of their stages; columns of ghosts behind the own
  Vector inverse_;
  comm::QueuedForest halo_;
};

}  // namespace

SmootherPtr gauss_seidel(Matrix const& A, SweepOrder order, Steps steps, bool hermitian) {
  return std::make_shared<GaussSeidel>(A, order, steps, hermitian);
}

}  // namespace asterism::precond
