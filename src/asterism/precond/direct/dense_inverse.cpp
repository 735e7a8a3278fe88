#include "asterism/precond/direct/dense_inverse.hpp"

#include <cmath>
#include <cstring>

#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/precond/direct/dense_inverse.kernels.hpp"
#include "asterism/precond/direct/dense_product.kernels.hpp"
#include "asterism/precond/direct/gather.hpp"

namespace asterism::precond {
namespace {

/// Rounded to float32, an inverse differs by 6e-8 of its largest entries; times the condition number that is how far M A is from
/// what it should be, and where it reaches 1, M need not be positive definite any more.
constexpr double most_for_float32 = 1e5;

/// f(from, to) with the types of the inverse and of the vectors.
template <class F>
void with_precisions(Dtype stored, Dtype vectors, F const& f) {
  with_dtype(stored, [&](auto wide) {
    with_dtype(vectors, [&](auto narrow) {
      using T = typename decltype(wide)::type;
      using S = typename decltype(narrow)::type;
      if constexpr (is_complex_v<T> == is_complex_v<S> && sizeof(T) >= sizeof(S)) f(wide, narrow);
    });
  });
}

}  // namespace

DenseInverse::DenseInverse(Matrix const& A, Dtype target, bool as_needed, CoarseOrigin const& origin) : Preconditioner(A) {
  static int const event = profile::event("PCSetUpDense");
  profile::Scope const scope(event);
  auto const wide = with_precision_of(A.dtype(), Dtype::float64);
  auto const B = A.converted(wide);
  dtype_ = stored_ = with_precision_of(A.dtype(), target);
  auto const n = A.global_rows();
  int const owner = n > 0 ? space_.owner(0) : 0;
  on_one_rank_ = n == 0 || space_.first_of(owner + 1) == n;
  bool const inverts = !on_one_rank_ || space_.comm().rank() == owner;
  with_dtype(wide, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> a(inverts ? std::size_t(checked_product(n, n, "dense matrix")) : 0, T(0));
    auto const put = [&](std::int64_t i, std::int64_t j, T v) { a[std::size_t(i * n + j)] += v; };
    if (on_one_rank_) la::each_own_entry<T>(B, put);
    else la::each_entry<T>(B, true, put);
    std::vector<T> null_vectors;
    if (origin.null_columns > 0 && !on_one_rank_) {
      auto const mine = std::span(origin.null_vectors.template as<T>(), std::size_t(space_.local_size() * origin.null_columns));
      auto const bytes = space_.comm().all_gather_bytes(std::as_bytes(mine));
      null_vectors.resize(bytes.size() / sizeof(T));
      std::memcpy(static_cast<void*>(null_vectors.data()), bytes.data(), bytes.size());
    } else if (origin.null_columns > 0 && inverts) {
      auto const* const mine = origin.null_vectors.template as<T>();
      null_vectors.assign(mine, mine + n * origin.null_columns);
    }
    kernel::Inversion found;
    if constexpr (std::is_same_v<real_t<T>, double>)
      comm::agree(space_.comm(), [&] {
        if (!inverts) return;
        // several turn while they wait for each other, for seconds beside other programs, and the bits depend on their number
        lapack::Threads const threads(n <= 2000 || reproducible() ? 1 : device::host::team_size());
        double const noise = origin.finest_rows > n ? 10 + 10 * std::sqrt(double(origin.finest_rows)) / double(n) : 1;
        found = kernel::invert<T>(int(n), a.data(), noise,
                                  {null_vectors, int(origin.null_columns), origin.parts, origin.largest_diagonal, origin.null_tolerance});
      });
    if (on_one_rank_) space_.comm().bcast(&found, sizeof found, owner);
    condition_ = found.condition;
    left_out_ = found.left_out;
    if (as_needed && condition_ > most_for_float32) stored_ = wide;
    rows_ = device::Array(std::size_t(A.range().local_size()) * std::size_t(n) * size_of(stored_));
    with_dtype(stored_, [&](auto low) {
      using S = typename decltype(low)::type;
      if constexpr (is_complex_v<S> == is_complex_v<T>) {
        auto const first = A.range().begin() * n;
        for (std::int64_t e = 0; e < A.range().local_size() * n; ++e) rows_.as<S>()[e] = S(a[std::size_t(first + e)]);
      }
    });
  });
}

void DenseInverse::apply(Vector const& x, Vector& y) const {
  static int const event = profile::event("PCApplyDense");
  profile::Scope const scope(event, double(rows_.bytes()), 2 * double(space_.local_size() * space_.global_size() * x.columns()));
  if (on_one_rank_ && space_.local_size() == 0) return;
  with_precisions(stored_, dtype_, [&](auto wide, auto narrow) {
    using T = typename decltype(wide)::type;
    using S = typename decltype(narrow)::type;
    auto const& comm = space_.comm();
    auto const k = x.columns();
    auto all = x.data();
    if (!on_one_rank_) {
      all = device::Array::fresh(y.queue(), std::size_t(space_.global_size() * k) * sizeof(S));
      device::submit_on_host(
          y.queue(),
          [comm, n = std::size_t(space_.local_size() * k)](device::Executor&, std::byte*, S const* mine, S* to) {
            auto const bytes = comm.all_gather_bytes(std::as_bytes(std::span<S const>(mine, n)));
            std::memcpy(static_cast<void*>(to), bytes.data(), bytes.size());
          },
          device::update<std::byte>(comm.order_token()), device::read<S>(x.data()), device::write<S>(all));
    }
    device::submit(y.queue(), kernel::dense_product<T, S>, space_.local_size(), space_.global_size(), k, device::read<T>(rows_),
                   device::read<S>(all), device::write<S>(y.data()));
  });
}

void DenseInverse::apply_adjoint(Vector const& x, Vector& y) const {
  static int const event = profile::event("PCApplyDense");
  profile::Scope const scope(event, double(rows_.bytes()), 2 * double(space_.local_size() * space_.global_size() * x.columns()));
  if (on_one_rank_ && space_.local_size() == 0) return;
  with_precisions(stored_, dtype_, [&](auto wide, auto narrow) {
    using T = typename decltype(wide)::type;
    using S = typename decltype(narrow)::type;
    device::submit_without_form(
        y.queue(),
        [rows = rows_, layout = space_, k = x.columns(), alone = on_one_rank_](device::Executor&, std::byte*, S const* mine, S* to) {
          auto const n = layout.global_size();
          auto const* const a = rows.template as<T>();
          std::vector<Complex<double>> all(std::size_t(n * k), Complex<double>(0));
          for (std::int64_t i = 0; i < layout.local_size(); ++i)
            for (std::int64_t c = 0; c < n; ++c) {
              auto const v = Complex<double>(conj(a[i * n + c]));
              for (std::int64_t j = 0; j < k; ++j) all[std::size_t(c * k + j)] += v * Complex<double>(mine[i * k + j]);
            }
          if (!alone) layout.comm().sum(std::span<double>(&all.data()->re, 2 * all.size()));
          for (std::int64_t e = 0; e < layout.local_size() * k; ++e) {
            auto const& v = all[std::size_t(layout.begin() * k + e)];
            if constexpr (is_complex_v<S>) to[e] = S(v);
            else to[e] = S(v.re);
          }
        },
        device::update<std::byte>(space_.comm().order_token()), device::read<S>(x.data()), device::write<S>(y.data()));
  });
}

std::string DenseInverse::describe() const { return format("dense inverse of {} rows", space_.global_size()); }

std::string DenseInverse::storage() const {
  std::string out = "dense inverse";
  if (stored_ != dtype_) out += format(", {} (condition {})", name_of(stored_), condition_);
  if (left_out_ > 0) out += format(", {} singular direction(s) left out", left_out_);
  return out;
}

}  // namespace asterism::precond
