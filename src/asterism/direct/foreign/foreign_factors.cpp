#include "asterism/direct/foreign/foreign_factors.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/device/host/memory.hpp"
#include "asterism/direct/condition.hpp"
#include "asterism/direct/symbolic/preparation.hpp"
#include "asterism/la/ordering/diagonal.hpp"
#include "asterism/la/ordering/ordering.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct::foreign {
namespace {

struct Offer {
  char const* name;
  std::unique_ptr<Peer> (*make)(PeerOptions const&, Dtype);
  bool hermitian, single;  // kinds of matrices, and of numbers
};
constexpr Offer offers[] = {{"umfpack", umfpack, false, false},
                            {"superlu", superlu, false, true},
                            {"mumps", mumps, false, true},
                            {"cholmod", cholmod, true, false}};

Offer const& offer_of(PeerOptions const& options) {
  auto const* const found = std::find_if(std::begin(offers), std::end(offers), [&](Offer const& o) { return o.name == options.name; });
  ASTERISM_ASSERT(found != std::end(offers));
  return *found;
}

class ForeignFactors final : public SerialFactors {
  /// f(), where the peer says only that the matrix is singular with the structural rank, if that is why.
  template <class F>
  auto explained(la::Csr const& columns, F const& f) {
    try {
      std::lock_guard const lock(mutex_);
      return f();
    } catch (Error const& e) {
      if (e.kind() == ErrorKind::value) require_structural_rank(la::maximum_product_matching(la::transpose(columns)), n_, options_.name);
      throw;
    }
  }

 public:
  ForeignFactors(la::Csr const& a, PeerOptions const& options) : options_(options), n_(a.rows), dtype_(a.dtype) {
    static int const symbolic_event = profile::event("FactorSymbolic");
    {
      profile::Scope const scope(symbolic_event);
      require_square_and_finite(a, options.name);
      peer_ = offer_of(options).make(options, a.dtype);
      info_.by = peer_->about();
      if (n_ > 0) analyse(prepared(a));
    }
    factor(prepared(a));
  }

  bool update(la::Csr const& a) override {
    ASTERISM_REQUIRE(a.rows == n_ && a.dtype == dtype_, shape, "{}: update with {} rows of {} instead of {} of {}.", options_.name, a.rows,
                     name_of(a.dtype), n_, name_of(dtype_));
    require_square_and_finite(a, options_.name);
    factor(prepared(a));
    return true;
  }

  void solve(char trans, std::int64_t k, void* b) const override {
    static int const event = profile::event("FactorSolve");
    profile::Scope const scope(event, double(info_.entries) * double(size_of(dtype_)), 2.0 * double(info_.entries) * double(k));
    ASTERISM_REQUIRE(there_, value, "{}: there are no factors: the last update failed.", options_.name);
    if (n_ == 0 || k == 0) return;
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto* const x = static_cast<T*>(b);
      auto const n = std::size_t(n_), width = std::size_t(k);
      auto const& before = trans == 'N' ? row_scale_ : column_scale_;
      auto const& after = trans == 'N' ? column_scale_ : row_scale_;
      std::vector<T> w(n * width);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < width; ++c) w[c * n + i] = la::scaled_by(x[i * width + c], before[i]);
      solve_scaled(trans, k, w.data());
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < width; ++c) x[i * width + c] = la::scaled_by(w[c * n + i], after[i]);
    });
  }

  FactorInfo const& info() const override { return info_; }
  std::size_t memory_bytes() const override { return std::size_t(facts_.bytes); }
  double condition() const override {
    std::lock_guard const lock(condition_mutex_);
    if (!condition_)
      condition_ = norm_ * with_dtype(dtype_, [&](auto tag) {
                     using T = typename decltype(tag)::type;
                     return estimate_inverse_norm1<T>(n_, [&](bool transposed, T* x) { solve_scaled(transposed ? 'T' : 'N', 1, x); });
                   });
    return *condition_;
  }
  double condition_beyond(double limit) const override {
    bool const below = with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return condition_is_below<T>(limit, norm_, n_, [&](bool transposed, T* x) { solve_scaled(transposed ? 'T' : 'N', 1, x); });
    });
    return below ? 0 : condition();
  }
  Determinant determinant() const override {
    auto d = facts_.determinant;
    for (std::size_t i = 0; i < std::size_t(n_); ++i) d.log -= std::log(row_scale_[i]) + std::log(column_scale_[i]);
    return d;
  }

 private:
  void analyse(la::Csr const& columns) {
    std::vector<std::int32_t> order;
    if (options_.ordering == "natural") {
      order.resize(std::size_t(n_));
      std::iota(order.begin(), order.end(), 0);
    } else if (options_.ordering != "auto") {
      order = la::ordering_by_name(options_.ordering, la::transpose(columns));
    }
    require_memory(explained(columns, [&] { return peer_->analyse(columns, order); }));
  }

  /// The scaled matrix in compressed columns.
  la::Csr prepared(la::Csr const& a) {
    if (options_.kind != FactorKind::lu) require_hermitian(a, options_.name);
    equilibrate_by_powers_of_two(a, row_scale_, column_scale_);
    std::vector<std::int32_t> as_they_are(static_cast<std::size_t>(n_));
    std::iota(as_they_are.begin(), as_they_are.end(), 0);
    auto const scaled = [&] { return la::permuted(a, as_they_are, as_they_are, row_scale_, column_scale_); };
    auto out = scaled();
    if (options_.kind == FactorKind::lu && la::look_at_diagonal(out).weak > 0) {  // as for our own factors; the peer exchanges rows
      auto const found = la::maximum_product_matching(a);
      require_structural_rank(found, n_, options_.name);
      std::transform(found.row_scale.begin(), found.row_scale.end(), row_scale_.begin(), power_of_two);
      std::transform(found.column_scale.begin(), found.column_scale.end(), column_scale_.begin(), power_of_two);
      out = scaled();
    }
    return la::transpose(out);
  }

  void require_memory(Prediction const& predicted) {
    info_.predicted.bytes = predicted.bytes;
    bool const given = options_.memory_limit > 0;
    ASTERISM_REQUIRE(!given || predicted.bytes > 0, option,
                     "{} does not say before how much memory it takes, so -pc_factor_memory_limit has no effect. Leave it out, or use "
                     "-pc_factor_mat_solver_type asterism.",
                     options_.name);
    auto const limit = given ? options_.memory_limit : predicted.is_bound ? 0 : device::host::available_memory();
    ASTERISM_REQUIRE(limit == 0 || predicted.bytes <= limit, memory, "{}: the factors of {} rows need {}{}, and {} are {}. {}",
                     options_.name, n_, predicted.is_bound ? "up to " : "", megabytes(double(predicted.bytes)), megabytes(double(limit)),
                     given ? "allowed" : "there", what_to_try(options_.ordering, {}));
  }

  void factor(la::Csr const& columns) {
    static int const event = profile::event("FactorNumeric");
    profile::Scope const scope(event);
    condition_.reset();
    there_ = false;
    if (n_ > 0) explained(columns, [&] { peer_->factor(columns); });
    there_ = true;
    norm_ = 0;
    std::vector<double> sums(std::size_t(n_), 0);
    each_size(columns, [&](std::int32_t j, std::int32_t, double size) { sums[std::size_t(j)] += size; });
    for (auto const s : sums) norm_ = std::max(norm_, s);
    if (n_ > 0) facts_ = peer_->facts();
    info_.entries = facts_.entries;
    info_.negative = facts_.negative;
    info_.ordering = facts_.ordering.empty() ? options_.ordering : facts_.ordering;
    info_.growth = std::numeric_limits<double>::quiet_NaN();
  }

  template <class T>
  void solve_scaled(char trans, std::int64_t k, T* x) const {
    if (n_ == 0) return;
    std::lock_guard const lock(mutex_);
    peer_->solve(trans, k, x);
  }

  PeerOptions options_;
  std::int32_t n_;
  Dtype dtype_;
  std::unique_ptr<Peer> peer_;
  std::vector<double> row_scale_, column_scale_;
  FactorInfo info_;
  PeerFacts facts_;
  bool there_ = false;
  double norm_ = 0;  // of the scaled matrix
  mutable std::mutex mutex_, condition_mutex_;
  mutable std::optional<double> condition_;
};

}  // namespace

void not_installed(std::string const& name, std::string const& why, std::string const& packages, char const* variable) {
  fail(ErrorKind::unsupported,
       "-pc_factor_mat_solver_type {}: the library was not found: {}. {} has it, or {} names its file. -pc_factor_mat_solver_type "
       "asterism needs nothing.",
       name, why, packages, variable);
}

void singular(std::string const& name, std::string const& why) {
  fail(ErrorKind::value,
       "{}: the matrix is singular: {}. Look for an equation that repeats others or a boundary condition that is missing; "
       "-pc_factor_mat_solver_type asterism takes a null space that is known, and am.least_squares singular matrices.",
       name, why);
}

void out_of_memory(std::string const& name) {
  fail(ErrorKind::memory, "{} ran out of memory. Use -pc_factor_mat_ordering_type nd (less fill), or an iterative method.", name);
}

void require_offered(PeerOptions const& options, Dtype dtype) {
  auto const& offer = offer_of(options);
  ASTERISM_ASSERT(offer.hermitian == (options.kind != FactorKind::lu));
  ASTERISM_REQUIRE_ALIKE(offer.single || real_of(dtype) == Dtype::float64, dtype,
                         "-pc_factor_mat_solver_type {} takes float64 and complex128, and the matrix is {}. Use -pc_dtype float64, or "
                         "asterism{}.",
                         options.name, name_of(dtype), offer.hermitian ? "" : ", superlu or mumps");
}

std::unique_ptr<SerialFactors> foreign_factors(la::Csr const& a, PeerOptions const& options) {
  return std::make_unique<ForeignFactors>(a, options);
}

}  // namespace asterism::direct::foreign
