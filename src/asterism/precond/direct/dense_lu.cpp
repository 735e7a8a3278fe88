// Direct solution with dense LU factors, rows exchanged as LAPACK's getrf does. On several ranks the first one has the factors.
#include <cmath>
#include <numeric>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/precond/direct/dense_lu.kernels.hpp"
#include "asterism/precond/direct/gather.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {
namespace {

OptionTable const& lu_table() {
  static OptionTable const t = {
      integer_option("pc_lu_max_size", 8000, "largest number of rows that is factored as a dense matrix", 1, 40000),
  };
  return t;
}

class DenseLU final : public Preconditioner {
 public:
  explicit DenseLU(Matrix const& A) : Preconditioner(A) {
    auto const& comm = A.comm();
    std::vector<std::int64_t> all(comm.rank() == 0 ? std::size_t(A.global_rows()) : 0);
    std::iota(all.begin(), all.end(), 0);
    if (comm.size() > 1) {
      forest_ = comm::StarForest::from_layout(A.range(), all);
      forest_.set_name("dense solves");
    }
    set_values(A);
  }
  bool update(Matrix const& A) override {
    set_values(A);
    return true;
  }

  void apply(Vector const& x, Vector& y) const override { solve('N', x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override { solve(conjugate ? 'C' : 'T', x, y); }
  std::string describe() const override { return format("lu (dense, {} rows)", space_.global_size()); }
  std::string report() const override {
    auto out = format("{}, reciprocal condition number {} (estimated)", describe(), rcond_);
    if (without_constants_) out += "; constants are in the null space and left out";
    if (is_singular_to_working_precision()) out += "; singular to working precision, or badly scaled";
    return out;
  }
  std::size_t memory_bytes() const override { return factors_.bytes() + pivots_.bytes(); }

 private:
  void set_values(Matrix const& A) {
    static int const event = profile::event("PCSetUpDense");
    profile::Scope const scope(event);
    with_dtype(dtype_, [&](auto tag) { factorise_all<typename decltype(tag)::type>(A); });
    warn();
  }
  bool is_singular_to_working_precision() const { return space_.global_size() > 0 && rcond_ < epsilon_of(dtype_); }

  void warn() const {
    if (is_singular_to_working_precision() && space_.comm().rank() == 0)
      log::warning(
          "lu: the matrix is singular to working precision, or badly scaled: its reciprocal condition number is about {}. Answers may have "
          "no correct digit. Look for equations that nearly repeat others; scale rows and columns.",
          rcond_);
  }

  template <class T>
  void factorise_all(Matrix const& A) {
    auto const& comm = A.comm();
    auto const n = A.global_rows();
    bool const here = comm.rank() == 0;
    comm::agree(comm, [&] {
      if (!here) return;
      factors_ = device::Array(std::size_t(checked_product(n, n, "dense matrix")) * sizeof(T));
      pivots_ = device::Array(std::size_t(n) * sizeof(int));
      std::fill_n(factors_.as<T>(), n * n, T(0));
    });
    auto* const a = here ? factors_.as<T>() : nullptr;
    each_entry<T>(A, false, [&](std::int64_t i, std::int64_t j, T v) { a[j * n + i] += v; });
    comm::agree(comm, [&] {
      if (here && n > 0) factorise(int(n), a);
    });
    double known[2] = {here ? rcond_ : 0.0, here ? double(without_constants_) : 0.0};
    comm.bcast(known, sizeof known, 0);
    rcond_ = known[0];
    without_constants_ = known[1] != 0;
  }

  template <class T>
  void factorise(int n, T* a) {
    leave_out_constants(n, a);
    real_t<T> norm = 0;
    for (int j = 0; j < n; ++j) {
      real_t<T> sum = 0;
      for (int i = 0; i < n; ++i) sum += magnitude(a[std::size_t(j) * std::size_t(n) + std::size_t(i)]);
      norm = std::max(norm, sum);
    }
    auto* const pivots = pivots_.as<int>();
    Progress progress(format("lu: dense factors of {} rows, {}", n, megabytes(double(memory_bytes()))), 1);
    int const zero = kernel::factorise(n, a, pivots, [&](int done) {
      double const left = 1 - double(done) / n;
      progress.at(1 - left * left * left);  // of the operations
    });
    if (zero >= 0) {
      std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
      std::iota(rows.begin(), rows.end(), 0);
      for (int k = 0; k <= zero; ++k) std::swap(rows[std::size_t(k)], rows[std::size_t(pivots[k] - 1)]);
      fail(
          ErrorKind::value,
          "lu: the matrix is singular: column {} is a combination of the columns before it, and elimination leaves zero for the pivot in "
          "row "
          "{}. Look for an equation that repeats others or a boundary condition that is missing; am.least_squares takes singular matrices.",
          zero, rows[std::size_t(zero)]);
    }
    std::vector<T> work(std::size_t(n) * 4);
    std::vector<std::conditional_t<is_complex_v<T>, real_t<T>, int>> more_work(std::size_t(n) * 2);
    rcond_ = double(lapack::gecon(n, a, norm, work.data(), more_work.data()));
    ASTERISM_REQUIRE(std::isfinite(rcond_) && std::isfinite(double(norm)), value,
                     "lu: the factors overflow in {}: entries of a column sum up to {}. Scale the equations.", name_of(dtype_v<T>),
                     double(norm));
  }

  /// Where all rows, or all columns, sum to zero up to rounding (a pure Neumann problem), A + s 1 1^T is factored: for b in the range of A
  /// its solution is that of A x = b whose sum is zero.
  template <class T>
  void leave_out_constants(int n, T* a) {
    if (n < 2) return;
    auto const at = [&](int i, int j) -> T& { return a[std::size_t(j) * std::size_t(n) + std::size_t(i)]; };
    struct Sum {
      T plain = T(0);
      real_t<T> size = 0;
    };
    std::vector<Sum> rows(static_cast<std::size_t>(n)), columns(static_cast<std::size_t>(n));
    real_t<T> largest = 0;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) {
        T const v = at(i, j);
        auto const size = magnitude(v);
        for (auto* const s : {&rows[std::size_t(i)], &columns[std::size_t(j)]}) s->plain += v, s->size += size;
        largest = std::max(largest, size);
      }
    auto const vanish = [](std::vector<Sum> const& sums) {
      return std::all_of(sums.begin(), sums.end(), [](Sum const& s) {
        return s.size > 0 && double(magnitude(s.plain)) <= 100 * epsilon_of(dtype_v<T>) * double(s.size);
      });
    };
    without_constants_ = vanish(rows) || vanish(columns);
    if (!without_constants_) return;
    T const shift(largest / real_t<T>(n));
    for (std::int64_t e = 0; e < std::int64_t(n) * n; ++e) a[e] += shift;
  }

  void solve(char trans, Vector const& x, Vector& y) const {
    static int const event = profile::event("PCApplyDense");
    profile::Scope const scope(event, double(factors_.bytes()),
                               2 * double(space_.global_size()) * double(space_.global_size() * x.columns()));
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      // everything that is needed travels with the task
      device::submit_without_form(
          y.queue(),
          [factors = factors_, pivots = pivots_, forest = forest_, n = space_.global_size(), k = x.columns(), trans,
           alone = space_.comm().size() == 1, here = space_.comm().rank() == 0](device::Executor&, std::byte*, T const* b, T* z) {
            if (alone && k == 1) {
              std::copy_n(b, n, z);
              return solve_columns(trans, n, 1, factors.template as<T>(), pivots.template as<int>(), z);
            }
            std::vector<T> all(here ? std::size_t(n * k) : 0), columns(all.size());
            if (alone) std::copy_n(b, n * k, all.data());
            else forest.bcast(b, all.data(), k);
            if (here) {
              for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t j = 0; j < k; ++j) columns[std::size_t(j * n + i)] = all[std::size_t(i * k + j)];
              solve_columns(trans, n, k, factors.template as<T>(), pivots.template as<int>(), columns.data());
              for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t j = 0; j < k; ++j) all[std::size_t(i * k + j)] = columns[std::size_t(j * n + i)];
            }
            if (alone) std::copy_n(all.data(), n * k, z);
            else forest.reduce(all.data(), z, comm::ReduceOp::replace, k);
          },
          device::update<std::byte>(space_.comm().order_token()), device::read<T>(x.data()), device::write<T>(y.data()));
    });
  }

  template <class T>
  static void solve_columns(char trans, std::int64_t n, std::int64_t k, T const* factors, int const* pivots, T* b) {
    if (n == 0) return;
    lapack::Threads const one(1);
    lapack::getrs(trans, int(n), int(k), factors, pivots, b);
  }

  comm::StarForest forest_;  // from the ranks' rows to all of them on rank 0
  device::Array factors_;    // column-major, on rank 0
  device::Array pivots_;     // int
  double rcond_ = 1;
  bool without_constants_ = false;
};

}  // namespace

PreconditionerEntry lu_entry() {
  return {[](Nest const& nest, Matrix const& A) -> PreconditionerPtr {
            auto r = nest.config.reader(lu_table());
            auto const most = r.integer("pc_lu_max_size");
            ASTERISM_REQUIRE(A.global_rows() <= most, unsupported,
                             "lu: {} rows are more than the {} that are factored as a dense matrix; a sparse direct solver is not "
                             "there yet. Use an iterative method, or raise -pc_lu_max_size.",
                             A.global_rows(), most);
            return std::make_shared<DenseLU>(A);
          },
          &lu_table(), "direct solution; dense, for small systems"};
}

}  // namespace asterism::precond
