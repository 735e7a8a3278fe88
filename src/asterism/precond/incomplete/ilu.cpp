// Incomplete LU on each rank's own block: without fill or with fill up to a level, Meijerink and van der Vorst (1977), Saad (2003),
// alg. 10.4 and 10.5; or with fill by size and columns exchanged, ILUT and ILUTP, Saad (1994; 2003, alg. 10.6, sec. 10.4.4). Rows may be
// matched to columns first (arrangement.hpp).
#include <algorithm>
#include <numeric>
#include <utility>

#include "asterism/base/profile.hpp"
#include "asterism/precond/incomplete/factorise.kernels.hpp"
#include "asterism/precond/incomplete/ilu_pattern.hpp"
#include "asterism/precond/incomplete/lu_factors.hpp"
#include "asterism/precond/level_sweep.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

/// What both have.
OptionTable with_common(OptionTable all) {
  for (auto& spec : ArrangementRule::options()) all.push_back(std::move(spec));
  all.push_back(order_option("pc_factor_order", "solves"));
  return all;
}

OptionTable const& ilu_table() {
  static OptionTable const t = [] {
    auto all = with_common(Pivots::options());
    all.push_back(integer_option("pc_factor_levels", 0, "fill of this level is kept: entries that so many eliminations make", 0, 100));
    return all;
  }();
  return t;
}

OptionTable const& ilut_table() {
  static OptionTable const t = [] {
    auto all = with_common(Pivots::options("nonzero", 1e-4));
    all.push_back(real_option("pc_ilut_drop", 1e-3, "entries below this times the row's 2-norm are dropped", 0));
    all.push_back(real_option("pc_ilut_fill", 3,
                              "most entries of a row of L, and of U, relative to half of A's row, or of the mean row if that is longer",
                              0.1, 1e6));
    all.push_back(real_option("pc_ilut_pivoting", 0.1,
                              "a column is exchanged with one whose entry is larger by more than the inverse of this; 0: none is", 0, 1));
    return all;
  }();
  return t;
}

/// a's values into f, which has its places and more.
template <class T>
void spread(la::Csr const& a, la::Csr const& f) {
  auto const ap = a.row_offsets(), fp = f.row_offsets();
  auto const ac = a.column_indices(), fc = f.column_indices();
  auto const av = a.entries<T>(), fv = f.entries<T>();
  for (std::size_t i = 0; i < std::size_t(f.rows); ++i) {
    auto p = std::size_t(ap[i]);
    for (auto q = std::size_t(fp[i]); q < std::size_t(fp[i + 1]); ++q)
      fv[q] = p < std::size_t(ap[i + 1]) && ac[p] == fc[q] ? av[p++] : T(0);
  }
}

class Ilu final : public Preconditioner {
 public:
  /// With fill up to a level.
  Ilu(Matrix const& A, Pivots const& pivots, ArrangementRule const& rule, std::string const& order, std::int64_t levels)
      : Ilu(A, pivots, rule, order, levels ? format("ilu({})", levels) : "ilu(0)") {
    comm::agree(A.comm(), [&] {
      f_.rows = with_full_diagonal(arranged(A.diagonal_block()));
      if (levels > 0) f_.rows = with_fill(f_.rows, levels);
      find_diagonal();
    });
    set_values(A);
    choose_order(A.comm());
  }
  /// With fill by size.
  Ilu(Matrix const& A, Pivots const& pivots, ArrangementRule const& rule, std::string const& order, kernel::SizeRule const& size)
      : Ilu(A, pivots, rule, order, format("ilut (drop {}, fill {})", size.drop, size.fill)) {
    size_ = size;
    set_values(A);
  }

  bool symmetric() const override { return !rule_.by_size && !matched_; }

  /// With fill up to a level, entries go where they went. With fill by size, values say where they go: all but a matching that still suits
  /// is made anew.
  bool update(Matrix const& A) override {
    bool suits = true;
    comm::agree(A.comm(), [&] { suits = rule_.suits(arrangement_.get(), A.diagonal_block()); });
    if (A.comm().min(std::int64_t(suits)) == 0) return false;
    set_values(A);
    return true;
  }

  // One pass over the factors: nnz (8 + 4) bytes and 3 n values.
  void apply(Vector const& x, Vector& y) const override {
    static int const event = profile::event("PCApplyILU");
    profile::Scope const scope(event, double(f_.rows.nnz()) * (double(size_of(dtype_)) + 4), 2 * double(f_.rows.nnz()));
    bool const on_gpu = y.queue().memory() == device::Memory::gpu;
    if (on_gpu && !f_.arrangement) return sweep_on_gpu(x, y);
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const solve = [f = f_, k = x.columns()](device::Executor& executor, T const* b, T* z) { f.solve<T>(executor, b, z, k); };
      if (on_gpu) device::submit_without_form(y.queue(), solve, device::read<T>(x.data()), device::write<T>(y.data()));
      else device::submit_on_host(y.queue(), solve, device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    static int const event = profile::event("PCApplyTransposeILU");
    profile::Scope const scope(event, double(f_.rows.nnz()) * (double(size_of(dtype_)) + 4), 2 * double(f_.rows.nnz()));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_without_form(
          y.queue(),
          [f = f_, k = x.columns(), conjugate](device::Executor&, T const* b, T* z) { f.template solve_transpose<T>(conjugate, b, z, k); },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }
  std::string describe() const override {
    auto const order = f_.schedule ? format(", by {} levels", f_.schedule->down.levels.count()) : std::string();
    return format("{}, each rank its own block{}{}{}", name_, arrangement_ ? arrangement_->describe() : "",
                  pivots_.shifted() ? ", shifted" : "", order);
  }
  std::size_t memory_bytes() const override { return f_.memory_bytes(); }

 private:
  /// By levels, whatever the host does.
  void sweep_on_gpu(Vector const& x, Vector& y) const {
    if (on_gpu_.empty()) {
      auto schedule = f_.schedule;
      if (!schedule) {
        auto found = f_.find_levels();
        f_.copy_values(*found);
        schedule = std::move(found);
      }
      on_gpu_ = {RowsOnGpu(schedule->down), RowsOnGpu(schedule->up)};
    }
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      on_gpu_[0].sweep<T>(false, x, y);
      on_gpu_[1].sweep<T>(true, y, y);
    });
  }

  Ilu(Matrix const& A, Pivots pivots, ArrangementRule rule, std::string order, std::string name)
      : Preconditioner(A), pivots_(std::move(pivots)), rule_(std::move(rule)), order_(std::move(order)), name_(std::move(name)) {
    static int const event = profile::event("PCSetUpMatching");
    profile::Scope const scope(event);
    comm::agree(A.comm(), [&] {
      arrangement_ = rule_.arrange(A.diagonal_block());
      if (arrangement_) pivots_.set_rows(arrangement_->rows);
      f_.arrangement = arrangement_;
    });
    matched_ = A.comm().max(std::int64_t(arrangement_ && arrangement_->matched)) == 1;
  }
  la::Csr arranged(la::Csr const& a) const { return arrangement_ ? arrangement_->of(a) : a; }
  void find_diagonal() {
    auto const ptr = f_.rows.row_offsets();
    auto const col = f_.rows.column_indices();
    auto diagonal = std::make_shared<std::vector<std::int64_t>>(std::size_t(f_.rows.rows));
    for (std::size_t i = 0; i < diagonal->size(); ++i)
      (*diagonal)[i] = std::lower_bound(col.begin() + ptr[i], col.begin() + ptr[i + 1], std::int32_t(i)) - col.begin();
    f_.diagonal = std::move(diagonal);
  }

  void set_values(Matrix const& A) {
    on_gpu_.clear();
    if (rule_.by_size) {
      f_.schedule = nullptr;
      set_up(A, [&](auto tag, la::Csr const& a) {
        using T = typename decltype(tag)::type;
        auto const whole = with_full_diagonal(a);
        spread<T>(a, whole);
        take(kernel::factor_by_size<T>(whole, size_, pivots_));
      });
      return choose_order(A.comm());
    }
    set_up(A, [&](auto tag, la::Csr const& a) {
      using T = typename decltype(tag)::type;
      f_.rows.values = la::Array(f_.rows.values.bytes());  // a queue may still read the old ones
      spread<T>(a, f_.rows);
      kernel::factor_on_places<T>(name_, f_.rows, *f_.diagonal, pivots_);
    });
    if (f_.schedule) {  // a queue may still read the old one
      auto schedule = std::make_shared<LuFactors::Schedule>(*f_.schedule);
      f_.copy_values(*schedule);
      f_.schedule = std::move(schedule);
    }
  }
  /// Columns that were exchanged are one more permutation.
  void take(kernel::FactorsBySize made) {
    f_.rows = std::move(made.rows);
    f_.diagonal = std::make_shared<std::vector<std::int64_t>>(std::move(made.diagonal));
    f_.arrangement = arrangement_;
    if (made.column_at.empty()) return;
    auto both = arrangement_ ? std::make_shared<Arrangement>(*arrangement_) : std::make_shared<Arrangement>();
    if (!arrangement_) {
      both->rows.resize(made.column_at.size());
      std::iota(both->rows.begin(), both->rows.end(), 0);
      both->columns = both->rows;
    }
    auto const before = *both;
    for (std::size_t k = 0; k < made.column_at.size(); ++k) {
      auto const from = std::size_t(made.column_at[k]);
      both->columns[k] = before.columns[from];
      if (before.matched) both->column_factor[k] = before.column_factor[from];
    }
    f_.arrangement = std::move(both);
  }

  /// By levels if asked for, or if two solves each way say so, which takes some four solves' time. Also one thread gains: in the rows' own
  /// order each waits for the one before, rows of a level do not wait for each other.
  void choose_order(comm::Communicator const& comm) {
    comm::agree(comm, [&] {
      if (order_ == "natural" || (order_ == "auto" && !may_pay(f_.rows.rows))) return;
      auto const schedule = f_.find_levels();
      if (order_ == "auto" && !(may_pay(schedule->down.levels) && may_pay(schedule->up.levels))) return;
      f_.copy_values(*schedule);
      auto with = f_;
      with.schedule = schedule;
      if (order_ == "auto" && seconds_of_solve(with) > 0.9 * seconds_of_solve(f_)) return;
      f_.schedule = schedule;
    });
  }
  double seconds_of_solve(LuFactors const& f) const {
    double seconds = 0;
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> b(static_cast<std::size_t>(f.rows.rows), T(1)), z(b.size());
      device::Executor executor;
      seconds = seconds_of([&] { f.solve<T>(executor, b.data(), z.data(), 1); });
    });
    return seconds;
  }
  template <class Factor>
  void set_up(Matrix const& A, Factor const& factor) {
    static int const event = profile::event("PCSetUpILU");
    profile::Scope const scope(event);
    comm::agree(A.comm(), [&] {
      with_dtype(dtype_, [&](auto tag) {
        pivots_.factor<typename decltype(tag)::type>(arranged(A.diagonal_block()), [&](la::Csr const& a) { factor(tag, a); });
      });
    });
    pivots_.tell(A.comm());
  }

  Pivots pivots_;
  ArrangementRule rule_;
  ArrangementPtr arrangement_;  // before columns are exchanged
  bool matched_ = false;        // on any rank
  std::string order_, name_;
  kernel::SizeRule size_{};
  mutable std::vector<RowsOnGpu> on_gpu_;  // down, up; made when asked for
  LuFactors f_;
};

}  // namespace

PreconditionerEntry ilu_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(ilu_table());
            Pivots const pivots(nest.config, ilu_table(), "ilu", A.range());
            ArrangementRule const rule(r, false, nest.hermitian, pivots.are_to_be_positive());
            return std::make_shared<Ilu>(A, pivots, rule, r.text("pc_factor_order"), r.integer("pc_factor_levels"));
          },
          &ilu_table(), "incomplete LU, each rank on its own block; -pc_factor_levels for fill", true};
}

PreconditionerEntry ilut_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(ilut_table());
            Pivots const pivots(nest.config, ilut_table(), "ilut", A.range());
            ArrangementRule const rule(r, true, nest.hermitian, pivots.are_to_be_positive());
            return std::make_shared<Ilu>(A, pivots, rule, r.text("pc_factor_order"),
                                         kernel::SizeRule{r.real("pc_ilut_drop"), r.real("pc_ilut_fill"), r.real("pc_ilut_pivoting")});
          },
          &ilut_table(), "incomplete LU that keeps the largest entries and exchanges columns, each rank on its own block", true};
}

}  // namespace asterism::precond
