// Incomplete Cholesky without fill on each rank's own block, as L D L^H: Meijerink and van der Vorst (1977).
#include <algorithm>

#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/precond/incomplete/pivots.hpp"
#include "asterism/precond/level_sweep.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& icc_table() {
  static OptionTable const t = [] {
    auto all = Pivots::options();
    all.push_back(order_option("pc_factor_order", "solves"));
    return all;
  }();
  return t;
}

class Icc final : public Preconditioner {
 public:
  Icc(Matrix const& A, Pivots pivots, std::string order) : Preconditioner(A), pivots_(std::move(pivots)) {
    comm::agree(A.comm(), [&] { lower_ = places_below(A.diagonal_block()); });
    update(A);
    choose_order(A.comm(), order);
  }
  bool update(Matrix const& A) override {
    static int const event = profile::event("PCSetUpICC");
    profile::Scope const scope(event);
    on_gpu_.clear();
    comm::agree(A.comm(), [&] {
      with_dtype(dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        pivots_.factor<T>(A.diagonal_block(), [&](la::Csr const& a) { factor<T>(a); });
      });
    });
    if (schedule_) schedule_ = by_levels(*schedule_);  // a queue may still read the old one
    pivots_.tell(A.comm());
    return true;
  }

  // One pass down and one up half of the factors: nnz (8 + 4) bytes in all, and 4 n values.
  void apply(Vector const& x, Vector& y) const override { run(x, y, false); }
  // M is Hermitian: its transpose is its conjugate.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override { run(x, y, !conjugate && is_complex(dtype_)); }
  std::string describe() const override {
    auto const order = schedule_ ? format(", by {} levels", schedule_->down.levels.count()) : std::string();
    return format("icc(0), each rank its own block{}{}", pivots_.shifted() ? ", shifted" : "", order);
  }
  std::size_t memory_bytes() const override {
    auto const one = lower_.values.bytes() + lower_.columns.bytes() + lower_.offsets.bytes();
    return (schedule_ ? 3 : 1) * one + inverse_.data().bytes();
  }

 private:
  /// Those of a below the diagonal; values are not set.
  static la::Csr places_below(la::Csr const& a) {
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const before_diagonal = [&](std::size_t i) {
      return std::lower_bound(col.begin() + ptr[i], col.begin() + ptr[i + 1], std::int32_t(i));
    };
    std::vector<std::int64_t> offsets{0};
    for (std::size_t i = 0; i < std::size_t(a.rows); ++i) offsets.push_back(offsets.back() + (before_diagonal(i) - (col.begin() + ptr[i])));
    la::Csr out(a.dtype, a.rows, a.rows, offsets.back());
    std::copy(offsets.begin(), offsets.end(), out.row_offsets().begin());
    for (std::size_t i = 0; i < std::size_t(a.rows); ++i)
      std::copy(col.begin() + ptr[i], before_diagonal(i), out.column_indices().begin() + offsets[i]);
    return out;
  }

  template <class T>
  void factor(la::Csr const& a) {
    auto const n = std::size_t(a.rows);
    lower_.values = device::Array(lower_.values.bytes());  // a queue may still read the old ones
    inverse_ = Vector(space_, dtype_);
    auto const ap = a.row_offsets(), ptr = lower_.row_offsets();
    auto const ac = a.column_indices(), col = lower_.column_indices();
    auto const av = a.entries<T>(), val = lower_.entries<T>();
    auto const inverse = inverse_.template host<T>();
    std::vector<T> row(n, T(0));  // l_ik d_k of the row at hand
    Progress progress(format("icc: a factor of {} entries, {}", lower_.nnz(), megabytes(double(memory_bytes()))), double(n));
    for (std::size_t i = 0; i < n; ++i) {
      progress.at(double(i));
      T pivot(0);
      double largest = 0;
      auto at = std::size_t(ptr[i]);
      for (auto p = std::size_t(ap[i]); p < std::size_t(ap[i + 1]); ++p) {
        auto const k = std::size_t(ac[p]);
        largest = std::max(largest, double(magnitude(av[p])));
        if (k == i) pivot = T(real(av[p]));
        if (k >= i) continue;
        T s = av[p];  // a_ik - sum over j < k of l_ij d_j conj(l_kj)
        for (auto q = std::size_t(ptr[k]); q < std::size_t(ptr[k + 1]); ++q) s -= row[std::size_t(col[q])] * conj(val[q]);
        row[k] = s;
        val[at++] = s * inverse[k];
      }
      for (auto q = std::size_t(ptr[i]); q < at; ++q) {
        pivot -= T(real(row[std::size_t(col[q])] * conj(val[q])));
        row[std::size_t(col[q])] = T(0);
      }
      inverse[i] = pivots_.inverse(pivot, largest, i);
    }
  }

  /// L, and L^H by rows, each row from right to left: the sums of the natural order, so the bits are the same.
  struct Schedule {
    RowsByLevel down, up;
  };
  /// With the levels of one that is there, or with those it finds.
  std::shared_ptr<Schedule const> by_levels(Schedule const& known = {}) const {
    auto s = std::make_shared<Schedule>(known);
    auto const upper = la::transpose(lower_, true);
    auto const of = [](la::Csr const& a) {
      return [ptr = a.row_offsets(), col = a.column_indices()](std::int64_t i, auto const& f) {
        for (auto p = ptr[std::size_t(i)]; p < ptr[std::size_t(i) + 1]; ++p) f(col[std::size_t(p)]);
      };
    };
    if (s->down.levels.count() == 0) {
      s->down.levels = Levels(lower_.rows, false, of(lower_));
      s->up.levels = Levels(upper.rows, true, of(upper));
    }
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const begin = [](la::Csr const& a) { return [ptr = a.row_offsets()](std::int32_t i) { return ptr[std::size_t(i)]; }; };
      auto const end = [](la::Csr const& a) { return [ptr = a.row_offsets()](std::int32_t i) { return ptr[std::size_t(i) + 1]; }; };
      auto const col = upper.column_indices();
      auto const val = upper.template entries<T>();
      for (std::int32_t i = 0; i < upper.rows; ++i) {
        std::reverse(col.begin() + begin(upper)(i), col.begin() + end(upper)(i));
        std::reverse(val.begin() + begin(upper)(i), val.begin() + end(upper)(i));
      }
      s->down.template copy<T>(lower_, begin(lower_), end(lower_));
      s->up.template copy<T>(upper, begin(upper), end(upper));
    });
    return s;
  }

  /// By levels if asked for, or if that is measured to be faster.
  void choose_order(comm::Communicator const& comm, std::string const& order) {
    comm::agree(comm, [&] {
      if (order == "natural" || (order == "auto" && !may_pay(lower_.rows))) return;
      auto const found = by_levels();
      if (order == "auto") {
        if (!(may_pay(found->down.levels) && may_pay(found->up.levels))) return;
        double natural = 0, levels = 0;
        with_dtype(dtype_, [&](auto tag) {
          using T = typename decltype(tag)::type;
          std::vector<T> const b(static_cast<std::size_t>(lower_.rows), T(1));
          std::vector<T> z(b.size());
          device::Executor executor;
          auto const* const d = inverse_.template host<T>().data();
          natural = seconds_of([&] { solve<T>(lower_, d, b.data(), z.data(), 1, false); });
          levels = seconds_of([&] { solve<T>(executor, *found, d, b.data(), z.data(), 1); });
        });
        if (levels > 0.9 * natural) return;
      }
      schedule_ = found;
    });
  }

  /// z = inv(L D L^H) b, k columns, with one copy of L.
  template <class T>
  static void solve(la::Csr const& l, T const* d, T const* b, T* z, std::int64_t k, bool conjugated) {
    auto const ptr = l.row_offsets();
    auto const col = l.column_indices();
    auto const val = l.template entries<T>();
    auto const entry = [&](std::size_t p) { return conjugated ? conj(val[p]) : val[p]; };
    auto const n = std::size_t(l.rows);
    for (std::size_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < k; ++j) {
        T s = b[std::int64_t(i) * k + j];
        for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) s -= entry(p) * z[std::int64_t(col[p]) * k + j];
        z[std::int64_t(i) * k + j] = s;
      }
    scale_rows(n, d, z, k);
    for (std::size_t i = n; i-- > 0;)
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p)
        for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= conj(entry(p)) * z[std::int64_t(i) * k + j];
  }
  template <class T>
  static void solve(device::Executor& executor, Schedule const& s, T const* d, T const* b, T* z, std::int64_t k) {
    s.down.sweep<T>(executor, false, b, z, k);
    scale_rows(s.down.levels.rows().size(), d, z, k);
    s.up.sweep<T>(executor, false, z, z, k);
  }
  template <class T>
  static void scale_rows(std::size_t n, T const* d, T* z, std::int64_t k) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(i) * k + j] *= d[i];
  }

  void run(Vector const& x, Vector& y, bool conjugated) const {
    static int const event = profile::event("PCApplyICC");
    profile::Scope const scope(event, 2 * double(lower_.nnz()) * (double(size_of(dtype_)) + 4), 4 * double(lower_.nnz()));
    auto const& queue = y.queue();
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (queue.memory() == device::Memory::gpu && !conjugated) {
        if (on_gpu_.empty()) {
          auto const s = schedule_ ? schedule_ : by_levels();
          on_gpu_ = {RowsOnGpu(s->down), RowsOnGpu(s->up)};
        }
        on_gpu_[0].sweep<T>(false, x, y);
        multiply(inverse_, y, y);
        return on_gpu_[1].sweep<T>(false, y, y);
      }
      auto const solves = [l = lower_, s = schedule_, k = x.columns(), conjugated](device::Executor& executor, T const* d, T const* b,
                                                                                   T* z) {
        if (s && !conjugated) solve<T>(executor, *s, d, b, z, k);
        else solve<T>(l, d, b, z, k, conjugated);
      };
      device::submit_without_form(queue, solves, device::read<T>(inverse_.data()), device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }

  Pivots pivots_;
  la::Csr lower_;   // strictly; its diagonal is ones
  Vector inverse_;  // of D
  std::shared_ptr<Schedule const> schedule_;
  mutable std::vector<RowsOnGpu> on_gpu_;  // down, up; made when asked for
};

}  // namespace

PreconditionerEntry icc_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(icc_table());
            Pivots const pivots(nest.config, icc_table(), "icc", A.range());
            return std::make_shared<Icc>(A, pivots, r.text("pc_factor_order"));
          },
          &icc_table(), "incomplete Cholesky of the lower triangle, each rank on its own block; half the memory of ilu", true};
}

}  // namespace asterism::precond
