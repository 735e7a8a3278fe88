// Incomplete LU on each rank's own block: without fill or with fill up to a level, Meijerink and van der Vorst (1977), Saad (2003),
// alg. 10.4 and 10.5; or with fill by size, ILUT, Saad (1994; 2003, alg. 10.6).
#include <algorithm>
#include <functional>
#include <utility>

#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/precond/incomplete/ilu_pattern.hpp"
#include "asterism/precond/level_sweep.hpp"
#include "asterism/precond/incomplete/pivots.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& ilu_table() {
  static OptionTable const t = [] {
    auto all = Pivots::options();
    all.push_back(order_option("pc_factor_order", "solves"));
    all.push_back(integer_option("pc_factor_levels", 0, "fill of this level is kept: entries that so many eliminations make", 0, 100));
    return all;
  }();
  return t;
}

OptionTable const& ilut_table() {
  static OptionTable const t = [] {
    auto all = Pivots::options();
    all.push_back(order_option("pc_factor_order", "solves"));
    all.push_back(real_option("pc_ilut_drop", 1e-3, "entries below this times the row's 2-norm are dropped", 0));
    all.push_back(real_option("pc_ilut_fill", 3, "most entries of a row of L, and of U, relative to half of A's row", 0.1, 1e6));
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

/// L below, U above, inverse pivots on the diagonal; and, if rows are taken by levels, L and U once more in their order.
struct Factors {
  la::Csr rows;
  std::shared_ptr<std::vector<std::int64_t> const> diagonal;  // place of each row's
  struct Schedule {
    RowsByLevel down, up;  // up: with the inverse pivot first
  };
  std::shared_ptr<Schedule const> schedule;

  std::shared_ptr<Schedule> find_levels() const {
    auto const ptr = rows.row_offsets();
    auto const col = rows.column_indices();
    auto s = std::make_shared<Schedule>();
    s->down.levels = Levels(rows.rows, false, [&](std::int64_t i, auto const& f) {
      for (auto p = ptr[std::size_t(i)]; p < (*diagonal)[std::size_t(i)]; ++p) f(col[std::size_t(p)]);
    });
    s->up.levels = Levels(rows.rows, true, [&](std::int64_t i, auto const& f) {
      for (auto p = (*diagonal)[std::size_t(i)] + 1; p < ptr[std::size_t(i) + 1]; ++p) f(col[std::size_t(p)]);
    });
    return s;
  }
  /// Into a schedule whose levels are known.
  void copy_values(Schedule& s) const {
    auto const ptr = rows.row_offsets();
    auto const start = [&](std::int32_t i) { return ptr[std::size_t(i)]; };
    auto const middle = [&](std::int32_t i) { return (*diagonal)[std::size_t(i)]; };
    auto const end = [&](std::int32_t i) { return ptr[std::size_t(i) + 1]; };
    with_dtype(rows.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      s.down.copy<T>(rows, start, middle);
      s.up.copy<T>(rows, middle, end);
    });
  }

  /// z = inv(L U) b, k columns.
  template <class T>
  void solve(device::Executor& executor, T const* b, T* z, std::int64_t k) const {
    if (schedule) {
      schedule->down.sweep<T>(executor, false, b, z, k);
      return schedule->up.sweep<T>(executor, true, z, z, k);
    }
    auto const ptr = rows.row_offsets();
    auto const col = rows.column_indices();
    auto const val = rows.entries<T>();
    auto const down = [&](std::int64_t i) {
      for (std::int64_t j = 0; j < k; ++j) {
        T s = b[i * k + j];
        for (auto p = std::size_t(ptr[std::size_t(i)]); p < std::size_t((*diagonal)[std::size_t(i)]); ++p)
          s -= val[p] * z[std::int64_t(col[p]) * k + j];
        z[i * k + j] = s;
      }
    };
    auto const up = [&](std::int64_t i) {
      for (std::int64_t j = 0; j < k; ++j) {
        T s = z[i * k + j];
        auto const d = std::size_t((*diagonal)[std::size_t(i)]);
        for (auto p = d + 1; p < std::size_t(ptr[std::size_t(i) + 1]); ++p) s -= val[p] * z[std::int64_t(col[p]) * k + j];
        z[i * k + j] = s * val[d];  // the inverse pivot is stored
      }
    };
    for (std::int64_t i = 0; i < rows.rows; ++i) down(i);
    for (std::int64_t i = rows.rows; i-- > 0;) up(i);
  }
};

class Ilu final : public Preconditioner {
 public:
  /// With fill up to a level.
  Ilu(Matrix const& A, Pivots const& pivots, std::string const& order, std::int64_t levels)
      : Ilu(A, pivots, order, levels ? format("ilu({})", levels) : "ilu(0)", true) {
    comm::agree(A.comm(), [&] {
      f_.rows = with_full_diagonal(A.diagonal_block());
      if (levels > 0) f_.rows = with_fill(f_.rows, levels);
    });
    update(A);
    choose_order(A.comm());
  }
  /// With fill by size.
  Ilu(Matrix const& A, Pivots const& pivots, std::string const& order, double drop, double fill)
      : Ilu(A, pivots, order, format("ilut (drop {}, fill {})", drop, fill), false) {
    drop_ = drop, fill_ = fill;
    update(A);
  }

  bool symmetric() const override { return by_level_; }

  /// With fill up to a level, entries go where they went. With fill by size, values say where they go: all is made anew.
  bool update(Matrix const& A) override {
    on_gpu_.clear();
    if (!by_level_) {
      f_.schedule = nullptr;
      set_up(A, [&](auto tag, la::Csr const& a) {
        using T = typename decltype(tag)::type;
        auto const whole = with_full_diagonal(a);
        spread<T>(a, whole);
        factor_by_size<T>(whole, drop_, fill_);
      });
      choose_order(A.comm());
      return true;
    }
    set_up(A, [&](auto tag, la::Csr const& a) {
      using T = typename decltype(tag)::type;
      f_.rows.values = la::Array(f_.rows.values.bytes());  // a queue may still read the old ones
      spread<T>(a, f_.rows);
      factor<T>();
    });
    if (f_.schedule) {  // a queue may still read the old one
      auto schedule = std::make_shared<Factors::Schedule>(*f_.schedule);
      f_.copy_values(*schedule);
      f_.schedule = std::move(schedule);
    }
    return true;
  }

  // One pass over the factors: nnz (8 + 4) bytes and 3 n values.
  void apply(Vector const& x, Vector& y) const override {
    static int const event = profile::event("PCApplyILU");
    profile::Scope const scope(event, double(f_.rows.nnz()) * (double(size_of(dtype_)) + 4), 2 * double(f_.rows.nnz()));
    if (y.queue().memory() == device::Memory::gpu) return sweep_on_gpu(x, y);
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_on_host(
          y.queue(), [f = f_, k = x.columns()](device::Executor& executor, T const* b, T* z) { f.solve<T>(executor, b, z, k); },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }
  // U^T by columns, then L^T: the rows of the factors are scattered instead of gathered, by one thread.
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override {
    static int const event = profile::event("PCApplyTransposeILU");
    profile::Scope const scope(event, double(f_.rows.nnz()) * (double(size_of(dtype_)) + 4), 2 * double(f_.rows.nnz()));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      device::submit_without_form(
          y.queue(),
          [f = f_.rows, diagonal = f_.diagonal, k = x.columns(), conjugate](device::Executor&, T const* b, T* z) {
            auto const ptr = f.row_offsets();
            auto const col = f.column_indices();
            auto const val = f.template entries<T>();
            auto const n = std::size_t(f.rows);
            auto const entry = [&](std::size_t p) { return conjugate ? conj(val[p]) : val[p]; };
            std::copy_n(b, std::int64_t(n) * k, z);
            for (std::size_t i = 0; i < n; ++i) {
              auto const d = std::size_t((*diagonal)[i]);
              auto* const zi = z + std::int64_t(i) * k;
              for (std::int64_t j = 0; j < k; ++j) zi[j] *= entry(d);  // the inverse pivot
              for (auto p = d + 1; p < std::size_t(ptr[i + 1]); ++p)
                for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= entry(p) * zi[j];
            }
            for (std::size_t i = n; i-- > 0;)
              for (auto p = std::size_t(ptr[i]); p < std::size_t((*diagonal)[i]); ++p)
                for (std::int64_t j = 0; j < k; ++j) z[std::int64_t(col[p]) * k + j] -= entry(p) * z[std::int64_t(i) * k + j];
          },
          device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }
  std::string describe() const override {
    auto const order = f_.schedule ? format(", by {} levels", f_.schedule->down.levels.count()) : std::string();
    return format("{}, each rank its own block{}{}", name_, pivots_.shifted() ? ", shifted" : "", order);
  }
  std::size_t memory_bytes() const override {
    auto const one = f_.rows.values.bytes() + f_.rows.columns.bytes() + f_.rows.offsets.bytes();
    return f_.schedule ? 2 * one : one;
  }

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

  Ilu(Matrix const& A, Pivots pivots, std::string order, std::string name, bool by_level)
      : Preconditioner(A), pivots_(std::move(pivots)), order_(std::move(order)), name_(std::move(name)), by_level_(by_level) {}

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
  double seconds_of_solve(Factors const& f) const {
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
        pivots_.factor<typename decltype(tag)::type>(A.diagonal_block(), [&](la::Csr const& a) { factor(tag, a); });
      });
    });
    pivots_.tell(A.comm());
  }

  template <class T>
  void factor() {
    auto const ptr = f_.rows.row_offsets();
    auto const col = f_.rows.column_indices();
    auto const val = f_.rows.entries<T>();
    auto const n = std::size_t(f_.rows.rows);
    auto diagonal = std::make_shared<std::vector<std::int64_t>>(n);
    for (std::size_t i = 0; i < n; ++i)
      (*diagonal)[i] = std::lower_bound(col.begin() + ptr[i], col.begin() + ptr[i + 1], std::int32_t(i)) - col.begin();
    f_.diagonal = diagonal;
    std::vector<std::int64_t> where(n, -1);  // position of a column in the row at hand
    Progress progress(format("{}: factors of {} entries, {}", name_, f_.rows.nnz(), megabytes(double(memory_bytes()))), double(n));
    for (std::size_t i = 0; i < n; ++i) {
      progress.at(double(i));
      double largest = 0;
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
        where[std::size_t(col[p])] = std::int64_t(p);
        largest = std::max(largest, double(magnitude(val[p])));
      }
      for (auto p = std::size_t(ptr[i]); p < std::size_t((*diagonal)[i]); ++p) {
        auto const k = std::size_t(col[p]);
        val[p] *= val[std::size_t((*diagonal)[k])];  // l_ik = a_ik / u_kk
        for (auto q = std::size_t((*diagonal)[k]) + 1; q < std::size_t(ptr[k + 1]); ++q)
          if (auto const at = where[std::size_t(col[q])]; at >= 0) val[std::size_t(at)] -= val[p] * val[q];
      }
      auto& pivot = val[std::size_t((*diagonal)[i])];
      pivot = pivots_.inverse(pivot, largest, i);
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) where[std::size_t(col[p])] = -1;
    }
  }

  template <class T>
  void factor_by_size(la::Csr const& a, double drop, double fill) {
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const val = a.entries<T>();
    auto const n = std::size_t(a.rows);
    auto diagonal = std::make_shared<std::vector<std::int64_t>>(n);
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> columns, lower, kept, upper;  // lower: to be eliminated; kept: of those, in L
    std::vector<T> values, row(n, T(0));
    std::vector<char> here(n, 0);  // whether the row at hand has the column
    auto const by_size = [&](std::int32_t x, std::int32_t y) {
      auto const u = magnitude(row[std::size_t(x)]), v = magnitude(row[std::size_t(y)]);
      return u > v || (u == v && x < y);
    };
    double const most_memory = std::max(1.0, fill) * double(a.nnz()) * double(sizeof(T) + sizeof(std::int32_t));
    Progress progress(format("{}: factors of up to {}", name_, megabytes(most_memory)), double(n));
    for (std::size_t i = 0; i < n; ++i) {
      progress.at(double(i));
      lower.clear();
      kept.clear();
      upper.clear();
      double norm2 = 0, largest = 0;
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
        auto const c = col[p];
        row[std::size_t(c)] = val[p];
        here[std::size_t(c)] = 1;
        if (std::size_t(c) < i) lower.push_back(c);
        else if (std::size_t(c) > i) upper.push_back(c);
        norm2 += double(magnitude(val[p])) * double(magnitude(val[p]));
        largest = std::max(largest, double(magnitude(val[p])));
      }
      double const small = drop * std::sqrt(norm2);
      // the columns left of the diagonal in ascending order; eliminations add some, further right
      std::make_heap(lower.begin(), lower.end(), std::greater<>());
      while (!lower.empty()) {
        std::pop_heap(lower.begin(), lower.end(), std::greater<>());
        auto const k = std::size_t(lower.back());
        lower.pop_back();
        if (double(magnitude(row[k])) < small) {
          row[k] = T(0);
          here[k] = 0;
          continue;
        }
        row[k] *= values[std::size_t((*diagonal)[k])];  // l_ik = w_k / u_kk
        kept.push_back(std::int32_t(k));
        for (auto q = std::size_t((*diagonal)[k]) + 1; q < std::size_t(offsets[k + 1]); ++q) {
          auto const c = std::size_t(columns[q]);
          row[c] -= row[k] * values[q];
          if (here[c]) continue;
          here[c] = 1;
          if (c < i) {
            lower.push_back(std::int32_t(c));
            std::push_heap(lower.begin(), lower.end(), std::greater<>());
          } else if (c > i) {
            upper.push_back(std::int32_t(c));
          }
        }
      }
      // the largest of each part, but no small ones
      auto const most = std::size_t(std::ceil(fill * double(ptr[i + 1] - ptr[i]) / 2));
      auto const shorten = [&](std::vector<std::int32_t>& part, double least) {
        auto const clear = [&](std::int32_t c) { row[std::size_t(c)] = T(0), here[std::size_t(c)] = 0; };
        auto const end = std::remove_if(part.begin(), part.end(), [&](std::int32_t c) {
          bool const out = double(magnitude(row[std::size_t(c)])) < least;
          if (out) clear(c);
          return out;
        });
        part.erase(end, part.end());
        if (part.size() > most) {
          std::nth_element(part.begin(), part.begin() + std::int64_t(most), part.end(), by_size);
          std::for_each(part.begin() + std::int64_t(most), part.end(), clear);
          part.resize(most);
        }
        std::sort(part.begin(), part.end());
      };
      shorten(kept, 0);
      shorten(upper, small);
      auto const put = [&](std::int32_t c, T v) {
        columns.push_back(c);
        values.push_back(v);
        row[std::size_t(c)] = T(0);
        here[std::size_t(c)] = 0;
      };
      for (auto const c : kept) put(c, row[std::size_t(c)]);
      (*diagonal)[i] = std::int64_t(columns.size());
      put(std::int32_t(i), pivots_.inverse(row[i], largest, i));
      for (auto const c : upper) put(c, row[std::size_t(c)]);
      offsets.push_back(std::int64_t(columns.size()));
    }
    f_.diagonal = diagonal;
    f_.rows = la::Csr(a.dtype, a.rows, a.cols, std::int64_t(columns.size()));
    std::copy(offsets.begin(), offsets.end(), f_.rows.row_offsets().begin());
    std::copy(columns.begin(), columns.end(), f_.rows.column_indices().begin());
    std::copy(values.begin(), values.end(), f_.rows.entries<T>().begin());
  }

  Pivots pivots_;
  std::string order_, name_;
  bool by_level_;                          // of fill
  double drop_ = 0, fill_ = 0;             // of fill by size
  mutable std::vector<RowsOnGpu> on_gpu_;  // down, up; made when asked for
  Factors f_;
};

}  // namespace

PreconditionerEntry ilu_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(ilu_table());
            Pivots const pivots(r, "ilu", A.range().begin());
            return std::make_shared<Ilu>(A, pivots, r.text("pc_factor_order"), r.integer("pc_factor_levels"));
          },
          &ilu_table(), "incomplete LU, each rank on its own block; -pc_factor_levels for fill", true};
}

PreconditionerEntry ilut_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(ilut_table());
            Pivots const pivots(r, "ilu", A.range().begin());
            return std::make_shared<Ilu>(A, pivots, r.text("pc_factor_order"), r.real("pc_ilut_drop"), r.real("pc_ilut_fill"));
          },
          &ilut_table(), "incomplete LU that keeps the largest entries, each rank on its own block", true};
}

}  // namespace asterism::precond
