// Direct solution with dense LU factors, rows exchanged as LAPACK's getrf does. On several ranks the first one has the factors.
#include "asterism/precond/direct/dense_lu.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/device/host/memory.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/la/near_null_space.hpp"
#include "asterism/precond/direct/dense_lu.kernels.hpp"
#include "asterism/precond/direct/gather.hpp"

namespace asterism::precond {
namespace {

class DenseLU final : public Preconditioner, public DirectFactors {
 public:
  DenseLU(Matrix const& A, std::size_t memory_limit, double flop_limit)
      : Preconditioner(A), memory_limit_(memory_limit), flop_limit_(flop_limit), first_(A.range(), "dense solves") {
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
  DirectFactors const* factors() const override { return this; }
  std::int64_t negative_among_least(std::int64_t) const override { return 0; }
  std::int64_t replaced_pivots() const override { return 0; }
  std::shared_ptr<direct::ExplicitFactors> explicit_factors() const override { return nullptr; }
  FactorFacts facts() const override {
    FactorFacts f;
    f.kind = "lu", f.dense = true, f.ordering = "natural";
    f.entries = space_.global_size() * space_.global_size();
    f.bytes = factors_.bytes() + pivots_.bytes();
    f.condition = 1 / rcond_;
    if (space_.comm().rank() != 0 || space_.global_size() == 0) return f;
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const n = std::size_t(space_.global_size());
      auto const* const lu = factors_.as<T>();
      std::complex<double> sign = 1;
      double log = 0, largest = 0;
      for (std::size_t k = 0; k < n; ++k) {
        std::complex<double> const d(double(real(lu[k * n + k])), double(imag(lu[k * n + k])));
        sign *= d / std::abs(d) * (pivots_.as<int>()[k] == int(k) + 1 ? 1.0 : -1.0);
        log += std::log(std::abs(d));
      }
      for (std::size_t e = 0; e < n * n; ++e) largest = std::max(largest, double(magnitude(lu[e])));
      f.growth = largest / largest_;
      f.determinant = {sign.real(), sign.imag(), log};
      if (without_constants_) f.determinant = {0, 0, -std::numeric_limits<double>::infinity()};
    });
    return f;
  }

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
      auto const bytes = std::size_t(checked_product(n, n, "dense matrix")) * sizeof(T);
      auto const limit = memory_limit_ > 0 ? memory_limit_ : device::host::available_memory();
      ASTERISM_REQUIRE(limit == 0 || bytes <= limit, memory,
                       "lu: dense factors take {}, and {} are {}. -pc_lu_type sparse takes less of a sparse matrix.",
                       megabytes(double(bytes)), megabytes(double(limit)), memory_limit_ > 0 ? "allowed" : "there");
      double const flops = (is_complex_v<T> ? 4 : 1) * 2.0 / 3 * double(n) * double(n) * double(n);
      ASTERISM_REQUIRE(flop_limit_ == 0 || flops <= flop_limit_, value,
                       "lu: dense factors of {} rows take {} floating-point operations, and {} are allowed. Use a larger "
                       "-pc_factor_flop_limit, or an iterative method.",
                       n, flops, flop_limit_);
      factors_ = device::Array(bytes);
      pivots_ = device::Array(std::size_t(n) * sizeof(int));
      std::fill_n(factors_.as<T>(), n * n, T(0));
    });
    auto* const a = here ? factors_.as<T>() : nullptr;
    la::each_entry<T>(A, false, [&](std::int64_t i, std::int64_t j, T v) { a[j * n + i] += v; });
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
    largest_ = 0;
    for (int j = 0; j < n; ++j) {
      real_t<T> sum = 0;
      for (int i = 0; i < n; ++i) {
        auto const size = magnitude(a[std::size_t(j) * std::size_t(n) + std::size_t(i)]);
        sum += size;
        largest_ = std::max(largest_, double(size));
      }
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
    T total(0);
    double all = 0;
    for (auto const& s : rows) total += s.plain, all += double(s.size);
    if (double(magnitude(total)) > la::null_rounding_of_sum(n) * epsilon_of(dtype_v<T>) * all) return;
    auto const vanish = [](std::vector<Sum> const& sums) {
      return std::all_of(sums.begin(), sums.end(), [](Sum const& s) {
        return s.size > 0 && double(magnitude(s.plain)) <= la::null_rounding_of_rows * epsilon_of(dtype_v<T>) * double(s.size);
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
      first_.submit<T>(x, y, [factors = factors_, pivots = pivots_, n = space_.global_size(), trans](std::int64_t k, T* v) {
        auto const* const lu = factors.template as<T>();
        auto const* const exchanges = pivots.template as<int>();
        if (k == 1) return solve_columns(trans, n, 1, lu, exchanges, v);
        std::vector<T> columns(std::size_t(n * k));
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < k; ++j) columns[std::size_t(j * n + i)] = v[i * k + j];
        solve_columns(trans, n, k, lu, exchanges, columns.data());
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < k; ++j) v[i * k + j] = columns[std::size_t(j * n + i)];
      });
    });
  }

  template <class T>
  static void solve_columns(char trans, std::int64_t n, std::int64_t k, T const* factors, int const* pivots, T* b) {
    if (n == 0) return;
    lapack::Threads const one(1);
    lapack::getrs(trans, int(n), int(k), factors, pivots, b);
  }

  std::size_t memory_limit_;
  double flop_limit_;
  FirstRank first_;
  device::Array factors_;  // column-major, on rank 0
  device::Array pivots_;   // int
  double rcond_ = 1, largest_ = 0;
  bool without_constants_ = false;
};

}  // namespace

PreconditionerPtr dense_lu(Matrix const& A, std::size_t memory_limit, double flop_limit) {
  return std::make_shared<DenseLU>(A, memory_limit, flop_limit);
}

}  // namespace asterism::precond
