// Direct solution with sparse factors that all ranks share.
#include "asterism/precond/direct/distributed_direct.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/direct/distributed/distributed_factors.hpp"
#include "asterism/la/ordering/ordering.hpp"

namespace asterism::precond {
namespace {

using direct::DistributedFactors;
using direct::FactorKind;

class DistributedDirect final : public Preconditioner, public DirectFactors {
 public:
  DistributedDirect(Matrix const& A, SparseRule rule, direct::DistributionOptions const& distribution)
      : Preconditioner(A), rule_(std::move(rule)), distribution_(distribution), gpu_(rule_.gpu_solves) {
    set_values(A);
  }

  bool update(Matrix const& A) override {
    if (on_first_) return on_first_->update(A);
    // a queue may still read the old ones
    A.comm().end_queued();
    return set_values(A);
  }
  void apply(Vector const& x, Vector& y) const override { on_first_ ? on_first_->apply(x, y) : solve('N', x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    on_first_ ? on_first_->apply_transpose(x, y, conjugate) : solve(conjugate ? 'C' : 'T', x, y);
  }
  DirectFactors const* factors() const override { return on_first_ ? on_first_->factors() : this; }
  std::string describe() const override {
    if (on_first_) return on_first_->describe();
    return format("{} (sparse, {} rows, {} entries, on {} ranks)", kind(), space_.global_size(), factors_->info().entries,
                  space_.comm().size());
  }
  std::string report() const override {
    if (on_first_) return on_first_->report() + (why_.empty() ? "" : "\n  " + why_);
    auto const& i = factors_->info();
    auto out = describe() + format("\n  layout: {}", factors_->layout());
    auto const [gathered, kept] = factors_->symbolic_bytes();
    out += format("\n  symbolic phase: on rank 0, which had the whole matrix for it ({}); each rank keeps {} of it",
                  megabytes(double(gathered)), megabytes(double(kept)));
    out += format("\n  fill: {} of the matrix; {} on this rank", double(i.entries) / std::max(1.0, double(matrix_entries_)),
                  megabytes(double(factors_->memory_bytes())));
    out += format("\n  ordering: {}{}{}; {} supernodes, largest front of a subtree {}", i.ordering, la::library_of_ordering(i.ordering),
                  i.matched ? ", rows matched" : "", i.supernodes, i.largest_front);
    out += format("\n  pivots: {} delayed in subtrees, {} replaced; growth {}", i.delayed, i.replaced, i.growth);
    if (rule_.factors.kind != FactorKind::lu)
      out += format("\n  eigenvalues of D: {} positive, {} negative, {} replaced; {} blocks of two",
                    space_.global_size() - i.negative - i.replaced, i.negative, i.replaced, i.two_by_two);
    if (gpu_.solve()) out += format("\n  solves: on the GPUs, {} there", megabytes(double(gpu_.solve()->memory_bytes())));
    return out;
  }
  std::size_t memory_bytes() const override { return on_first_ ? on_first_->memory_bytes() : factors_->memory_bytes(); }
  std::int64_t negative_among_least(std::int64_t count) const override { return factors_->negative_among_least(count); }
  std::int64_t replaced_pivots() const override { return factors_->info().replaced; }
  FactorFacts facts() const override {
    FactorFacts f;
    auto const& i = factors_->info();
    auto const d = factors_->determinant();
    f.kind = kind();
    f.ordering = i.ordering, f.matched = i.matched;
    f.entries = i.entries;
    f.bytes = space_.comm().sum(std::int64_t(memory_bytes()));
    f.delayed = i.delayed, f.replaced = i.replaced, f.two_by_two = i.two_by_two, f.negative = i.negative, f.growth = i.growth;
    f.condition = factors_->condition();
    f.determinant = {d.re, d.im, d.log};
    return f;
  }
  std::shared_ptr<direct::ExplicitFactors> explicit_factors() const override { return factors_->explicit_factors(); }
  void prepare(device::Queue const& queue) override {
    queue_ = queue;
    if (on_first_) return on_first_->prepare(queue);
    gpu_.prepare(space_.comm(), queue, true,
                 [&] { return GpuSolve(factors_->on_gpus(), factors_->row_forest(), factors_->column_forest()); });
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> out;
    if (!why_.empty()) out.push_back(why_);
    if (on_first_) {
      auto const theirs = on_first_->notes();
      out.insert(out.end(), theirs.begin(), theirs.end());
    } else {
      auto const of_gpu = gpu_.notes(kind());
      out.insert(out.end(), of_gpu.begin(), of_gpu.end());
      if (condition_ > 0) out.push_back(nearly_singular(kind(), condition_));
    }
    return out;
  }
  bool pivot_more(Matrix const& A) override {
    if (on_first_) return false;
    gather(A, format("{}: the pivots within blocks of distributed factors are too small here; the factors are made again on rank 0, with "
                     "pivots from whole columns",
                     kind()));
    return true;
  }

 private:
  std::string kind() const { return rule_.factors.kind == FactorKind::hermitian ? "ldl" : rule_.name; }

  void gather(Matrix const& A, std::string why) {
    A.comm().end_queued();
    gpu_.forget();
    factors_.reset();
    why_ = std::move(why);
    on_first_ = sparse_direct(A, rule_);
    if (queue_) on_first_->prepare(*queue_);
  }

  bool set_values(Matrix const& A) {
    static int const event = profile::event("PCSetUpDirect");
    profile::Scope const scope(event);
    gpu_.forget();
    matrix_entries_ = A.nnz();
    if (auto const [rows, columns] = sums_vanish(A); rows || columns) {
      gather(A, "");
      return true;
    }
    bool const definite = rule_.factors.kind == FactorKind::cholesky;
    try {
      if (factors_ && !factors_->update(A)) return false;
      if (!factors_) factors_ = std::make_shared<DistributedFactors>(A, rule_.factors, distribution_);
    } catch (Error const& e) {
      if (!(definite && rule_.may_be_indefinite && e.kind() == ErrorKind::breakdown)) throw;
      factors_ = nullptr;
      rule_.factors.kind = FactorKind::hermitian;
      factors_ = std::make_shared<DistributedFactors>(A, rule_.factors, distribution_);
    }
    if (factors_->info().replaced > 0 && !rule_.projects) {
      gather(A, format("{}: {} pivots within blocks of distributed factors are at rounding level; the factors are made again on rank 0, "
                       "with pivots from whole columns",
                       kind(), factors_->info().replaced));
      return true;
    }
    double const limit = 0.1 / epsilon_of(dtype_);
    condition_ = rule_.projects ? 0 : factors_->condition_beyond(limit);
    if (condition_ <= limit) condition_ = 0;
    return true;
  }

  void solve(char trans, Vector const& x, Vector& y) const {
    static int const event = profile::event("PCApplyDirect");
    profile::Scope const scope(event);
    if (gpu_.solve() && y.queue().memory() == device::Memory::gpu) return gpu_.solve()->submit(trans, x, y);
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_without_form(
          y.queue(),
          [factors = factors_, k = x.columns(), trans](device::Executor&, std::byte*, T const* b, T* z) { factors->solve(trans, k, b, z); },
          device::update<std::byte>(space_.comm().order_token()), device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }

  SparseRule rule_;
  direct::DistributionOptions distribution_;
  std::shared_ptr<DistributedFactors> factors_;
  PreconditionerPtr on_first_;  // instead of these
  std::string why_;
  std::optional<device::Queue> queue_;  // that applications come from
  GpuSolveState gpu_;
  std::int64_t matrix_entries_ = 0;
  double condition_ = 0;  // if it is so large that x may have no correct digit, else 0
};

}  // namespace

PreconditionerPtr distributed_direct(Matrix const& A, SparseRule const& rule, direct::DistributionOptions const& distribution) {
  return std::make_shared<DistributedDirect>(A, rule, distribution);
}

}  // namespace asterism::precond
