// Gauss-Seidel in place, by colours over all ranks or by each rank's rows: Saad (2003), section 12.4; Baker, Falgout, Kolev, Yang (2011).
#include <algorithm>
#include <limits>

#include "asterism/base/profile.hpp"
#include "asterism/comm/forest/queued_forest.hpp"
#include "asterism/device/parallel.hpp"
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
    std::vector<std::int32_t> rows(std::size_t(n), 0);
    auto next = *starts;
    for (std::int64_t i = 0; i < n; ++i) rows[std::size_t(next[std::size_t(stage_of[std::size_t(i)])]++)] = std::int32_t(i);
    auto const own_ptr = own.row_offsets(), ptr_of_others = others.row_offsets();
    std::vector<std::int64_t> offsets(1, 0);
    offsets.reserve(std::size_t(n) + 1);
    for (auto const i : rows) {
      auto const r = std::size_t(i);
      offsets.push_back(offsets.back() + own_ptr[r + 1] - own_ptr[r] + ptr_of_others[r + 1] - ptr_of_others[r]);
    }
    auto const entries = std::size_t(A.local_nnz());
    columns_ = la::Array(entries * sizeof(std::int32_t));
    values_ = la::Array(entries * size_of(A.dtype()));
    inverse_ = A.diagonal();
    // ghosts before it are of ranks before this one
    auto const below = std::int32_t(std::lower_bound(A.ghosts().begin(), A.ghosts().end(), A.range().begin()) - A.ghosts().begin());
    with_dtype(A.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::Executor executor;
      device::parallel_for(
          executor, n,
          [&, values = values_.as<T>(), columns = columns_.as<std::int32_t>(), inverse = inverse_.host<T>().data()](std::int64_t place) {
            auto const i = std::size_t(rows[std::size_t(place)]);
            auto at = offsets[std::size_t(place)];
            real_t<T> coupled = 0;
            auto const val = own.entries<T>(), val_of_others = others.entries<T>();
            auto const col = own.column_indices(), col_of_others = others.column_indices();
            // in the order of global columns: the bits of sums do not depend on the ranks
            auto q = ptr_of_others[i];
            auto const take_ghosts = [&](std::int32_t end) {
              for (; q < ptr_of_others[i + 1] && col_of_others[std::size_t(q)] < end; ++q, ++at) {
                columns[at] = std::int32_t(n) + col_of_others[std::size_t(q)];
                values[at] = val_of_others[std::size_t(q)];
                coupled += magnitude(values[at]);
              }
            };
            take_ghosts(below);
            for (auto p = own_ptr[i]; p < own_ptr[i + 1]; ++p, ++at) columns[at] = col[std::size_t(p)], values[at] = val[std::size_t(p)];
            take_ghosts(std::numeric_limits<std::int32_t>::max());
            // along the diagonal's own direction, so that the sum is as far from zero as can be
            auto& d = inverse[i];
            if (order_ == SweepOrder::ranks && magnitude(d) > 0) d += d * T(coupled / magnitude(d));
          });
    });
    invert_entries(inverse_, "gauss-seidel", true);
    starts_ = std::move(starts);
    rows_ = la::Array::of(std::span<std::int32_t const>(rows));
    offsets_ = la::Array::of(std::span<std::int64_t const>(offsets));
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
