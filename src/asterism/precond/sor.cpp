// Successive over-relaxation on each rank's own block, symmetric by default: Saad (2003), sec. 4.1.
#include "asterism/base/lazy.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/precond/level_sweep.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& sor_table() {
  static OptionTable const t = {
      real_option("pc_sor_omega", 1, "relaxation factor", 1e-6, 2 - 1e-6),
      integer_option("pc_sor_its", 1, "sweeps", 1, 1000),
      order_option("pc_sor_order", "sweeps"),
      flag_option("pc_sor_symmetric", true, "forward and backward in each sweep, so that M is symmetric when A is"),
  };
  return t;
}

/// A block and, if rows are taken by levels, its rows once more in their order.
struct Block {
  la::Csr rows;
  std::shared_ptr<RowsByLevel const> schedule;
  mutable std::shared_ptr<RowsOnGpu const> on_gpu = nullptr;  // made when asked for

  /// By levels, whatever the host does.
  RowsOnGpu const& for_gpu() const {
    if (!on_gpu) {
      auto levels = schedule;
      if (!levels) {
        auto found = find_levels();
        copy_values(*found);
        levels = std::move(found);
      }
      on_gpu = std::make_shared<RowsOnGpu const>(*levels);
    }
    return *on_gpu;
  }

  std::shared_ptr<RowsByLevel> find_levels() const {
    auto s = std::make_shared<RowsByLevel>();
    s->levels = levels_of_sweep(rows);
    return s;
  }
  void copy_values(RowsByLevel& s) const {
    auto const ptr = rows.row_offsets();
    with_dtype(rows.dtype, [&](auto tag) {
      s.copy<typename decltype(tag)::type>(
          rows, [&](std::int32_t i) { return ptr[std::size_t(i)]; }, [&](std::int32_t i) { return ptr[std::size_t(i) + 1]; });
    });
  }

  /// All rows, forward or backward and all k columns: z_i += omega (b_i - (A z)_i) / a_ii.
  template <class T>
  void sweep(device::Executor& executor, bool backward, T omega, std::int64_t k, T const* b, T* z) const {
    auto const relax = [=](std::int64_t i, std::int32_t const* col, T const* val, std::int64_t n) {
      for (std::int64_t j = 0; j < k; ++j) {
        T s = b[i * k + j], d(1);
        for (std::int64_t p = 0; p < n; ++p) {
          if (col[p] == i) d = val[p];
          else s -= val[p] * z[std::int64_t(col[p]) * k + j];
        }
        auto& zi = z[i * k + j];
        zi = (T(1) - omega) * zi + omega * s / d;
      }
    };
    if (schedule) {
      schedule->levels.each(
          executor,
          [relax, ptr = schedule->offsets.data(), col = schedule->columns.data(), val = schedule->values.as<T>()](
              std::int64_t at, std::int64_t i) { relax(i, col + ptr[at], val + ptr[at], ptr[at + 1] - ptr[at]); },
          backward);
      return;
    }
    auto const* const ptr = rows.row_offsets().data();
    auto const* const col = rows.column_indices().data();
    auto const* const val = rows.entries<T>().data();
    auto const row = [&](std::int64_t i) { relax(i, col + ptr[i], val + ptr[i], ptr[i + 1] - ptr[i]); };
    for (std::int64_t i = 0; !backward && i < rows.rows; ++i) row(i);
    for (std::int64_t i = rows.rows; backward && i-- > 0;) row(i);
  }
};

class Sor final : public Preconditioner {
 public:
  /// prefix: for errors.
  Sor(Matrix const& A, double omega, std::int64_t its, bool symmetric, std::string const& order, std::string prefix)
      : Preconditioner(A), omega_(omega), its_(its), symmetric_(symmetric), prefix_(std::move(prefix)) {
    set_values(A);
    comm::agree(A.comm(), [&] { choose_order(order); });
  }
  /// The levels stay.
  bool update(Matrix const& A) override {
    set_values(A);
    return true;
  }
  void apply(Vector const& x, Vector& y) const override { sweep(block_, true, symmetric_, x, y); }
  // The sweeps on the transpose, in reverse: backward after forward is the transpose of the same.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    conjugate = conjugate && is_complex(dtype_);
    auto const& t = transposed_[conjugate].made_by([&] { return Block{la::transpose(block_.rows, conjugate), nullptr, nullptr}; });
    sweep(t, symmetric_, true, x, y);
  }
  std::string describe() const override {
    auto const order = block_.schedule ? format(", by {} levels", block_.schedule->levels.count()) : std::string();
    return format("{}, omega {}, {} sweep(s), each rank its own block{}", symmetric_ ? "ssor" : "sor", omega_, its_, order);
  }
  bool symmetric() const override { return symmetric_; }

 private:
  void set_values(Matrix const& A) {
    auto const d = A.diagonal();
    std::int64_t bad = -1;
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = d.host<T>();
      for (std::size_t i = v.size(); i-- > 0;)
        if (v[i] == T(0)) bad = std::int64_t(i);
    });
    comm::agree(A.comm(), [&] {
      ASTERISM_REQUIRE(bad < 0, value, "sor: the diagonal entry of {} is zero. Use -{}pc_type ilu with -{}pc_factor_shift_type nonzero.",
                       A.range().own_entry_name(bad), prefix_, prefix_);
    });
    block_.rows = A.diagonal_block();
    block_.on_gpu = nullptr;
    for (auto& t : transposed_) t = {};
    if (!block_.schedule) return;
    auto schedule = std::make_shared<RowsByLevel>(*block_.schedule);  // a queue may still read the old one
    block_.copy_values(*schedule);
    block_.schedule = std::move(schedule);
  }
  void choose_order(std::string const& order) {
    if (order == "natural" || (order == "auto" && !may_pay(block_.rows.rows))) return;
    auto const schedule = block_.find_levels();
    if (order == "auto" && !may_pay(schedule->levels)) return;
    block_.copy_values(*schedule);
    auto with = block_;
    with.schedule = schedule;
    if (order == "auto" && seconds_of_sweep(with) > 0.9 * seconds_of_sweep(block_)) return;
    block_ = with;
  }
  double seconds_of_sweep(Block const& a) const {
    double seconds = 0;
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> b(static_cast<std::size_t>(a.rows.rows), T(0)), z(b.size(), T(0));
      device::Executor executor;
      seconds = seconds_of([&] {
        for (bool const backward : {false, true}) a.sweep<T>(executor, backward, T(1), 1, b.data(), z.data());
      });
    });
    return seconds;
  }
  void sweep(Block const& a, bool forward, bool backward, Vector const& x, Vector& y) const {
    static int const event = profile::event("PCApplySOR");
    profile::Scope const scope(event, double(its_ * (forward + backward)) * double(a.rows.nnz()) * (double(size_of(dtype_)) + 4));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const omega = T(real_t<T>(omega_));
      if (y.queue().memory() == device::Memory::gpu) {
        fill(y, 0.0);
        for (std::int64_t sweep = 0; sweep < its_; ++sweep) {
          if (forward) a.for_gpu().template relax<T>(false, omega, x, y);
          if (backward) a.for_gpu().template relax<T>(true, omega, x, y);
        }
        return;
      }
      device::submit_on_host(
          y.queue(),
          [a, omega, its = its_, forward, backward, k = x.columns()](device::Executor& executor, T const* b, T* z) {
            std::fill(z, z + a.rows.rows * k, T(0));
            for (std::int64_t sweep = 0; sweep < its; ++sweep) {
              if (forward) a.sweep<T>(executor, false, omega, k, b, z);
              if (backward) a.sweep<T>(executor, true, omega, k, b, z);
            }
          },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }

  Block block_;
  mutable Lazy<Block> transposed_[2];  // plain, conjugated; made when asked for, in the rows' order
  double omega_;
  std::int64_t its_;
  bool symmetric_;
  std::string prefix_;
};

}  // namespace

PreconditionerEntry sor_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(sor_table());
            auto const omega = r.real("pc_sor_omega");
            auto const its = r.integer("pc_sor_its");
            return std::make_shared<Sor>(A, omega, its, r.flag("pc_sor_symmetric"), r.text("pc_sor_order"), nest.config.prefix);
          },
          &sor_table(), "(symmetric) successive over-relaxation, each rank on its own rows", true};
}

}  // namespace asterism::precond
