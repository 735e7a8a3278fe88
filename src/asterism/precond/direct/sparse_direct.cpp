// Direct solution with sparse factors. On several ranks the first one has them.
#include "asterism/precond/direct/sparse_direct.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <tuple>

#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/direct/condition.hpp"
#include "asterism/direct/distributed/shared_analysis.hpp"
#include "asterism/direct/foreign/foreign_factors.hpp"
#include "asterism/direct/multifrontal/explicit_triangles.hpp"
#include "asterism/direct/symbolic/preparation.hpp"
#include "asterism/la/near_null_space.hpp"
#include "asterism/la/ordering/ordering.hpp"
#include "asterism/la/ordering/permuted.hpp"
#include "asterism/precond/direct/gather.hpp"

namespace asterism::precond {
namespace {

using direct::FactorKind;
using direct::Factors;
using direct::SerialFactors;

/// Of A x = b with singular A: its null vector z, and w with w^H A = 0; n numbers of the dtype each. Both have norm 1.
struct NullVectors {
  device::Array z, w;
};

template <class T>
void remove_part(T const* unit, bool conjugated, std::int64_t n, std::int64_t k, T* v) {
  auto const entry = [&](std::int64_t i) { return conjugated ? conj(unit[i]) : unit[i]; };
  for (std::int64_t j = 0; j < k; ++j) {
    T part(0);
    for (std::int64_t i = 0; i < n; ++i) part += conj(entry(i)) * v[i * k + j];
    for (std::int64_t i = 0; i < n; ++i) v[i * k + j] -= part * entry(i);
  }
}

template <class T>
void normalise(std::span<T> v) {
  double largest = 0, sum = 0;
  for (auto const x : v) largest = std::max(largest, double(magnitude(x)));
  for (auto& x : v) x = x * T(real_t<T>(1 / largest));
  for (auto const x : v) sum += double(magnitude(x)) * double(magnitude(x));
  for (auto& x : v) x = x * T(real_t<T>(1 / std::sqrt(sum)));
}

constexpr double infinite = std::numeric_limits<double>::infinity();

class SparseDirect final : public Preconditioner, public DirectFactors {
 public:
  SparseDirect(Matrix const& A, SparseRule rule)
      : Preconditioner(A), rule_(std::move(rule)), first_(A.range(), "sparse solves"), gpu_(rule_.gpu_solves) {
    set_values(A);
  }
  /// The symbolic phase is kept, unless the matching does not suit these values.
  bool update(Matrix const& A) override { return set_values(A); }

  void apply(Vector const& x, Vector& y) const override { solve('N', x, y); }
  void apply_transpose(Vector const& x, Vector& y, bool conjugate) const override { solve(conjugate ? 'C' : 'T', x, y); }
  DirectFactors const* factors() const override { return this; }
  std::string describe() const override {
    auto const where = space_.comm().size() > 1 ? ", on rank 0" : "";
    auto const by = rule_.foreign ? " by " + rule_.foreign->name : "";
    return format("{}{} (sparse, {} rows, {} entries{})", kind(), by, space_.global_size(), entries_, where);
  }
  std::string report() const override {
    auto const constants = left_out_ ? "\n  constants are in the null space and left out" : "";
    auto out = describe() + constants;
    if (!factors_) return out;
    auto const& i = factors_->info();
    out += format("\n  fill: {} of the matrix, {}", double(i.entries) / std::max(1.0, double(matrix_entries_)),
                  megabytes(double(memory_bytes())));
    if (rule_.foreign) {
      out += format("\n  ordering: {}; made by {}", i.ordering, i.by);
      out += format("\n  condition number of the scaled matrix: {} (estimated)", factors_->condition());
      return out;
    }
    if (gpu_.solve()) out += format("\n  solves: on the GPU, {} there", megabytes(double(gpu_.solve()->memory_bytes())));
    out += format("\n  ordering: {}{}{}; {} supernodes, largest front {}", i.ordering, la::library_of_ordering(i.ordering),
                  i.matched              ? ", rows matched"
                  : i.scaled_by_matching ? ", scaled by a matching"
                                         : "",
                  i.supernodes, i.largest_front);
    out += format("\n  pivots: {} delayed, {} replaced; growth {}", i.delayed, i.replaced, i.growth);
    if (rule_.factors.kind != FactorKind::lu)
      out += format("\n  eigenvalues of D: {} positive, {} negative, {} replaced; {} blocks of two",
                    space_.global_size() - i.negative - i.replaced, i.negative, i.replaced, i.two_by_two);
    out += format("\n  condition number of the scaled matrix: {} (estimated)", factors_->condition());
    return out;
  }
  std::size_t memory_bytes() const override { return factors_ ? factors_->memory_bytes() : 0; }
  std::int64_t replaced_pivots() const override { return factors_ ? factors_->info().replaced : 0; }
  std::int64_t negative_among_least(std::int64_t count) const override { return factors_ ? factors_->negative_among_least(count) : 0; }
  FactorFacts facts() const override {
    FactorFacts f;
    f.kind = kind();
    f.entries = entries_;
    if (!factors_) return f;
    auto const& i = factors_->info();
    auto const d = factors_->determinant();
    f.ordering = i.ordering, f.matched = i.matched, f.by = i.by;
    f.bytes = std::int64_t(memory_bytes());
    f.delayed = i.delayed, f.replaced = i.replaced, f.two_by_two = i.two_by_two, f.negative = i.negative, f.growth = i.growth;
    f.zero = std::max<std::int64_t>(i.replaced, null_ ? 1 : 0);
    f.condition = factors_->condition();
    f.determinant = {d.re, d.im, d.log};
    return f;
  }
  std::shared_ptr<direct::ExplicitFactors> explicit_factors() const override {
    auto const& comm = space_.comm();
    std::shared_ptr<direct::ExplicitFactors> out;
    comm::agree(comm, [&] {
      direct::require_memory_for_triangles(kind(), entries_, dtype_);
      if (factors_) out = factors_->explicit_factors();
    });
    if (comm.size() == 1 || comm.max(std::int64_t(out != nullptr)) == 0) return out;
    if (!out) out = std::make_shared<direct::ExplicitFactors>();
    direct::share(comm, *out);
    return out;
  }
  std::vector<std::string> notes() const override {
    auto out = gpu_.notes(kind());
    if (condition_ != 0) out.push_back(nearly_singular(kind(), condition_));
    return out;
  }
  void prepare(device::Queue const& queue) override {
    std::lock_guard const lock(gpu_mutex_);
    ask_for_gpu(queue);
  }

 private:
  std::string kind() const { return indefinite_ ? "ldl" : rule_.name; }

  bool set_values(Matrix const& A) {
    static int const event = profile::event("PCSetUpDirect");
    profile::Scope const scope(event);
    gpu_.forget();
    auto const vanish = sums_vanish(A);
    if (rule_.foreign) require_regular(vanish);
    auto const a = la::gathered(A);
    bool kept = true;
    comm::agree(A.comm(), [&] {
      if (A.comm().rank() != 0) return;
      with_dtype(dtype_, [&](auto tag) { kept = factor<typename decltype(tag)::type>(a, vanish); });
    });
    std::int64_t known[] = {kept, factors_ ? factors_->info().entries : 0, rule_.factors.kind == FactorKind::hermitian, null_ != nullptr};
    A.comm().bcast(known, sizeof known, 0);
    A.comm().bcast(&condition_, sizeof condition_, 0);
    entries_ = known[1], indefinite_ = known[2] != 0, left_out_ = known[3] != 0;
    return known[0] != 0;
  }

  /// The same on all ranks.
  void require_regular(std::pair<bool, bool> vanish) const {
    auto const& name = rule_.foreign->name;
    constexpr char const* instead = "Use -pc_factor_mat_solver_type asterism, whose factors of singular matrices leave the null space out.";
    ASTERISM_REQUIRE_ALIKE(!rule_.projects, unsupported, "{} takes no null space. {}", name, instead);
    ASTERISM_REQUIRE_ALIKE(!vanish.first && !vanish.second, value,
                           "{}: the matrix is singular: the entries of each {} sum to zero, so constants are in the null space. {}", name,
                           vanish.first ? "row" : "column", instead);
    direct::foreign::require_offered(*rule_.foreign, dtype_);
  }
  std::shared_ptr<SerialFactors> new_factors(la::Csr const& a) const {
    if (rule_.foreign) return direct::foreign::foreign_factors(a, *rule_.foreign);
    return std::make_shared<Factors>(a, rule_.factors);
  }

  template <class T>
  bool factor(la::Csr const& a, std::pair<bool, bool> vanish) {
    matrix_entries_ = a.nnz();
    bool const definite = rule_.factors.kind == FactorKind::cholesky;
    null_.reset();
    // a queue may still read the old ones
    bool const updates = factors_ && factors_.use_count() == 1;
    try {
      if (updates && !factors_->update(a)) return false;
      if (!updates) factors_ = nullptr, factors_ = new_factors(a);
    } catch (Error const& e) {
      if (!(definite && rule_.may_be_indefinite && e.kind() == ErrorKind::breakdown)) throw;
      factors_ = nullptr;
      rule_.factors.kind = FactorKind::hermitian;
      factors_ = std::make_shared<Factors>(a, rule_.factors);
    }
    auto condition = looked_at<T>(a, vanish);
    bool const others = factors_->info().scaled_by_matching && rule_.factors.matching == direct::Matching::automatic;
    if (condition > 0 && others && !(condition < infinite && is_nearly_singular_by_other_scales<T>(a)))
      condition = factor_with_other_scales<T>(a, vanish, condition);
    auto const& i = factors_->info();
    ASTERISM_REQUIRE(i.replaced <= (null_ ? 1 : 0) || rule_.projects, value,
                     "{}: the matrix is singular to working precision: {} of {} pivots are at rounding level{}. Look for an equation that "
                     "repeats others or a boundary condition that is missing; give its null space (null_space=), if it has one; "
                     "am.least_squares takes singular matrices.",
                     rule_.name, i.replaced, a.rows, null_ ? ", more than the constants in its null space explain" : "");
    condition_ = condition;
    return true;
  }

  /// Whether a vector proves it, from two steps of inverse iteration by the factors at hand. Then factors with these scales, whose pivots
  /// may be delayed until the last front is full, would be no better. Of a Hermitian matrix.
  template <class T>
  bool is_nearly_singular_by_other_scales(la::Csr const& a) const {
    auto const n = std::size_t(a.rows);
    std::vector<double> d(n, 1), same(n, 1);
    direct::equilibrate_by_powers_of_two(a, d, same);
    std::vector<T> y(n);
    for (std::size_t i = 0; i < n; ++i) y[i] = T(real_t<T>(1 + 0.5 * std::cos(double(i))));
    auto const by_d = [&] {
      for (std::size_t i = 0; i < n; ++i) y[i] = la::scaled_by(y[i], 1 / d[i]);
    };
    for (int step = 0; step < 2; ++step) {  // (D A D)^-1
      by_d();
      factors_->solve('N', 1, y.data());
      by_d();
      normalise(std::span<T>(y));
    }
    double left = 0, norm = 0, size = 0;  // in the 1-norm
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const val = a.entries<T>();
    for (std::size_t i = 0; i < n; ++i) {
      T product(0);
      double sum = 0;
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
        auto const j = std::size_t(col[p]);
        auto const scaled = la::scaled_by(la::scaled_by(val[p], d[i]), d[j]);
        sum += double(magnitude(scaled));
        product += scaled * y[j];
      }
      left += double(magnitude(product));
      size += double(magnitude(y[i]));
      norm = std::max(norm, sum);
    }
    return left < 100 * epsilon_of(dtype_) * norm * size;  // false for NaN; one vector shows less than an estimate
  }

  /// Scales from a matching can hide entries that matter, as those of a regularisation, beside others that they make large.
  template <class T>
  double factor_with_other_scales(la::Csr const& a, std::pair<bool, bool> vanish, double condition) {
    auto const before = std::tuple(factors_, null_);
    auto plain = rule_.factors;
    plain.matching = direct::Matching::no;
    try {
      factors_ = std::make_shared<Factors>(a, plain);
      if (auto const now = looked_at<T>(a, vanish); now < condition) return now;
    } catch (Error const& e) {
      if (e.kind() != ErrorKind::memory) throw;
    }
    std::tie(factors_, null_) = before;
    return condition;
  }

  /// Of new factors, with what is known of the null space left out: the condition number, if it is so large that x may have no digit, else
  /// 0.
  template <class T>
  double looked_at(la::Csr const& a, std::pair<bool, bool> vanish) {
    auto const [rows, columns] = vanish;
    null_.reset();
    if (rows || columns) leave_out_constants<T>(rows, columns);
    if (rule_.projects) return 0;
    if (factors_->info().replaced > (null_ ? 1 : 0)) return infinite;
    double const limit = 0.1 / epsilon_of(dtype_);
    double const condition = null_ ? condition_beside_constants<T>(a) : factors_->condition_beyond(limit);
    return condition > limit ? condition : 0;
  }

  /// An estimate in the 2-norm, of two solves, without the null vector that is known.
  template <class T>
  double condition_beside_constants(la::Csr const& a) const {
    auto const n = a.rows;
    double norm = 0;
    for (std::int32_t r = 0; r < n; ++r) {
      double sum = 0;
      for (auto p = a.row_offsets()[std::size_t(r)]; p < a.row_offsets()[std::size_t(r) + 1]; ++p)
        sum += double(magnitude(a.entries<T>()[std::size_t(p)]));
      norm = std::max(norm, sum);
    }
    std::vector<T> x(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(real_t<T>(std::sin(double(i) * double(i))));
    auto const solve = [&](bool transposed) {
      auto const *before = &null_->w, *after = &null_->z;
      if (transposed) std::swap(before, after);
      remove_part(before->template as<T>(), transposed, n, 1, x.data());
      factors_->solve(transposed ? 'T' : 'N', 1, x.data());
      remove_part(after->template as<T>(), transposed, n, 1, x.data());
    };
    return norm * direct::norm_by_two_steps(n, x, solve, [](double sum) { return sum; });
  }

  /// Of b what no x can give is left out, of x its part in the null space. The vectors that are not constant come from inverse iteration.
  template <class T>
  void leave_out_constants(bool rows, bool columns) {
    auto const n = std::size_t(space_.global_size());
    auto const vector = [&](bool constant, char trans) {
      device::Array out(n * sizeof(T));
      std::span<T> const v(out.as<T>(), n);
      for (std::size_t i = 0; i < n; ++i) v[i] = T(constant ? 1 : real_t<T>(1 + 0.5 * std::cos(double(i))));
      normalise(v);
      for (int pass = 0; pass < 2 && !constant; ++pass) {
        factors_->solve(trans, 1, v.data());
        normalise(v);
      }
      return out;
    };
    null_ = std::make_shared<NullVectors>(NullVectors{vector(rows, 'N'), vector(columns, 'C')});
  }

  void solve(char trans, Vector const& x, Vector& y) const {
    static int const event = profile::event("PCApplyDirect");
    profile::Scope const scope(event, double(entries_) * double(size_of(dtype_)), 2 * double(entries_) * double(x.columns()));
    if (auto const there = gpu_solve(y.queue())) return there->submit(trans, x, y);
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      first_.submit<T>(x, y, [factors = factors_, null = null_, n = space_.global_size(), trans](std::int64_t k, T* v) {
        bool const conjugated = trans == 'T';
        if (null) remove_part((trans == 'N' ? null->w : null->z).template as<T>(), conjugated, n, k, v);
        factors->solve(trans, k, v);
        if (null) remove_part((trans == 'N' ? null->z : null->w).template as<T>(), conjugated, n, k, v);
      });
    });
  }

  void ask_for_gpu(device::Queue const& queue) const {
    auto const& comm = space_.comm();
    gpu_.prepare(comm, queue, false, [&] {
      if (rule_.foreign) throw Error(ErrorKind::unsupported, format("the factors are those of {}.", rule_.foreign->name), true);
      if (left_out_) throw Error(ErrorKind::unsupported, "constants are left out of right-hand side and answer there.", true);
      std::shared_ptr<direct::GpuFactors const> factors;
      comm::agree(comm, [&] {
        if (!factors_) return;
        auto const& ours = dynamic_cast<Factors const&>(*factors_);
        factors = std::make_shared<direct::GpuFactors>(comm::Communicator(), dtype_,
                                                       direct::GpuFactorsSource{ours.numeric(), ours.places(), {}, {}, {}, {}, {}, {}});
      });
      return comm.size() == 1 ? GpuSolve(factors) : GpuSolve(factors, first_.forest(), first_.forest());
    });
  }
  /// Of one rank alone when it is first asked for, as by a method that others nest this in.
  std::shared_ptr<GpuSolve const> gpu_solve(device::Queue const& queue) const {
    if (queue.memory() != device::Memory::gpu) return nullptr;
    std::lock_guard const lock(gpu_mutex_);
    if (!gpu_.asked() && space_.comm().size() == 1) ask_for_gpu(queue);
    return gpu_.solve();
  }

  SparseRule rule_;
  FirstRank first_;
  mutable std::mutex gpu_mutex_;
  mutable GpuSolveState gpu_;
  std::shared_ptr<SerialFactors> factors_;  // on rank 0
  std::shared_ptr<NullVectors const> null_;
  std::int64_t entries_ = 0, matrix_entries_ = 0;
  double condition_ = 0;                        // if it is so large that x may have no correct digit, else 0
  bool indefinite_ = false, left_out_ = false;  // on all ranks, as entries_
};

}  // namespace

std::pair<bool, bool> sums_vanish(Matrix const& A) {
  auto const n = std::size_t(A.global_rows());
  if (n < 2) return {false, false};
  auto const rows = A.to_rows();
  double const limit = la::null_rounding_of_rows * epsilon_of(A.dtype());
  bool rows_vanish = true;
  std::vector<double> sums(3 * n, 0);  // of each column: re, im and size
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r) {
      std::complex<double> sum = 0;
      double size = 0;
      for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) {
        auto const z = to_complex(rows.values.as<T>()[p]);
        auto* const column = sums.data() + 3 * rows.columns[std::size_t(p)];
        sum += z, size += std::abs(z);
        column[0] += z.real(), column[1] += z.imag(), column[2] += std::abs(z);
      }
      rows_vanish = rows_vanish && size > 0 && std::abs(sum) <= limit * size;
    }
  });
  if (A.comm().size() > 1) A.comm().sum(std::span<double>(sums));
  bool columns_vanish = true;
  std::complex<double> total = 0;
  double size = 0;
  for (std::size_t j = 0; j < n; ++j) total += std::complex<double>(sums[3 * j], sums[3 * j + 1]), size += sums[3 * j + 2];
  if (std::abs(total) > la::null_rounding_of_sum(double(A.nnz()) / double(n)) * epsilon_of(A.dtype()) * size) return {false, false};
  for (std::size_t j = 0; j < n && columns_vanish; ++j) {
    auto const* const column = sums.data() + 3 * j;
    columns_vanish = column[2] > 0 && std::abs(std::complex<double>(column[0], column[1])) <= limit * column[2];
  }
  return {A.comm().min(std::int64_t(rows_vanish)) == 1, columns_vanish};
}

std::string nearly_singular(std::string const& name, double condition) {
  return format(
      "{}: the matrix is nearly singular: its condition number, after scaling, is about {}. x solves a system near this one, and "
      "may have no correct digit",
      name, condition);
}

PreconditionerPtr sparse_direct(Matrix const& A, SparseRule const& rule) { return std::make_shared<SparseDirect>(A, rule); }

}  // namespace asterism::precond
