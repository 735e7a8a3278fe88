#include "asterism/direct/multifrontal/factors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/device/host/memory.hpp"
#include "asterism/direct/condition.hpp"
#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"
#include "asterism/direct/multifrontal/explicit_triangles.hpp"
#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"
#include "asterism/direct/permutations.hpp"
#include "asterism/direct/symbolic/analysis.hpp"
#include "asterism/la/ordering/ordering.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

}  // namespace

struct Factors::Impl : Analysis {
  Impl(la::Csr const& a, FactorOptions const& given) : Analysis(a, given) {
    info.predicted = predicted;
    info.supernodes = symbolic.nodes.count();
    info.matched = matched;
    info.scaled_by_matching = scaled_by_matching;
    info.ordering = ordering;
  }
  FactorInfo info;
  NumericFactors numeric;
  double norm = 0;  // ||B||_1
  mutable std::mutex mutex;
  mutable std::optional<double> condition;

  void require_memory() const {
    auto const limit = options.memory_limit > 0 ? options.memory_limit : device::host::available_memory();
    ASTERISM_REQUIRE(limit == 0 || info.predicted.bytes <= limit, memory,
                     "{}: the factors of {} rows need {} ({} entries, {} order), and {} are {}. {}", name(), n,
                     megabytes(double(info.predicted.bytes)), info.predicted.entries, info.ordering, megabytes(double(limit)),
                     options.memory_limit > 0 ? "allowed" : "there", what_to_try(info.ordering, dtype));
  }

  void compute(la::Csr const& a) {
    device::host::KeepFreed const keep_freed;
    auto const b = arranged(a);
    auto const bt = hermitian() ? la::Csr() : la::transpose(b);
    double largest = 0;
    std::vector<double> sums(std::size_t(n), 0);
    each_size(b, [&](std::int32_t, std::int32_t j, double size) { largest = std::max(largest, size), sums[std::size_t(j)] += size; });
    norm = n > 0 ? *std::max_element(sums.begin(), sums.end()) : 0;
    kernel::Pivoting pivoting;
    pivoting.threshold = options.pivot_threshold;
    pivoting.tiny = largest * epsilon_of(dtype) * 0x1p-10;
    pivoting.replacement = largest > 0 ? largest : 1;
    Progress progress(format("{}: factors of {} rows, {}", name(), n, megabytes(double(info.predicted.bytes))), 1);
    std::function<void(double)> const told = [&](double done) { progress.at(done); };
    numeric = {};  // its memory is used again
    numeric = with_dtype(
        dtype, [&](auto tag) { return kernel::factor<typename decltype(tag)::type>(options.kind, symbolic, b, bt, pivoting, told); });
    if (numeric.not_positive >= 0)
      fail(ErrorKind::breakdown, "cholesky: the matrix is not positive definite: the pivot of row {} is not positive.",
           rows[std::size_t(numeric.not_positive)]);
    info.entries = numeric.entries;
    info.delayed = numeric.delayed;
    info.replaced = numeric.replaced;
    info.two_by_two = numeric.two_by_two;
    info.negative = numeric.negative;
    info.largest_front = numeric.largest_front;
    info.growth = options.kind == FactorKind::cholesky || largest == 0 ? 1 : numeric.largest / largest;
    condition.reset();
  }

  void solve_scaled(bool transposed, std::int64_t k, void* x) const {
    with_dtype(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernel::solve(numeric, transposed, k, static_cast<T*>(x));
    });
  }
  /// Of each pivot, the row and the column of A.
  Ints pivot_rows() const { return in_order(rows, numeric.row_order); }
  Ints pivot_columns() const { return in_order(columns, numeric.column_order); }
};

Factors::Factors(la::Csr const& a, FactorOptions const& options) {
  static int const symbolic_event = profile::event("FactorSymbolic"), numeric_event = profile::event("FactorNumeric");
  {
    profile::Scope const scope(symbolic_event);
    impl_ = std::make_unique<Impl>(a, options);
  }
  impl_->require_work();
  impl_->require_memory();
  profile::Scope const scope(numeric_event, 0, impl_->predicted.flops);
  impl_->compute(a);
}
Factors::~Factors() = default;
Factors::Factors(Factors&&) noexcept = default;
Factors& Factors::operator=(Factors&&) noexcept = default;

bool Factors::update(la::Csr const& a) {
  static int const numeric_event = profile::event("FactorNumeric");
  if (!impl_->rescale(a)) return false;
  impl_->info.scaled_by_matching = impl_->scaled_by_matching;
  profile::Scope const scope(numeric_event, 0, impl_->predicted.flops);
  impl_->compute(a);
  return true;
}

void Factors::solve(char trans, std::int64_t k, void* b) const {
  auto const& m = *impl_;
  bool const transposed = trans != 'N';
  ASTERISM_REQUIRE(m.numeric.row_order.size() == std::size_t(m.n), value, "{}: there are no factors: the last update failed.", m.name());
  static int const event = profile::event("FactorSolve");
  profile::Scope const scope(event, double(m.info.entries) * double(size_of(m.dtype)), 2.0 * double(m.info.entries) * double(k));
  with_dtype(m.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* const x = static_cast<T*>(b);
    auto const n = std::size_t(m.n), width = std::size_t(k);
    std::vector<T> w(n * width);
    auto const from = transposed ? m.pivot_columns() : m.pivot_rows(), to = transposed ? m.pivot_rows() : m.pivot_columns();
    auto const& before = transposed ? m.column_scale : m.row_scale;
    auto const& after = transposed ? m.row_scale : m.column_scale;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; ++c) {
        T const v = x[std::size_t(from[i]) * width + c];
        w[i * width + c] = la::scaled_by(trans == 'C' ? conj(v) : v, before[std::size_t(from[i])]);
      }
    m.solve_scaled(transposed, k, w.data());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < width; ++c) {
        T const v = la::scaled_by(w[i * width + c], after[std::size_t(to[i])]);
        x[std::size_t(to[i]) * width + c] = trans == 'C' ? conj(v) : v;
      }
  });
}

std::int32_t Factors::size() const { return impl_->n; }
Dtype Factors::dtype() const { return impl_->dtype; }
FactorOptions const& Factors::options() const { return impl_->options; }
FactorInfo const& Factors::info() const { return impl_->info; }

NumericFactors const& Factors::numeric() const { return impl_->numeric; }
PivotPlaces Factors::places() const { return {impl_->pivot_rows(), impl_->pivot_columns(), impl_->row_scale, impl_->column_scale}; }

std::size_t Factors::memory_bytes() const {
  auto const& m = *impl_;
  std::size_t out = 4 * (m.rows.size() + m.columns.size() + m.numeric.row_order.size() + m.numeric.column_order.size()) +
                    8 * (m.row_scale.size() + m.column_scale.size()) + 4 * m.symbolic.nodes.row_indices.size() +
                    m.numeric.diagonal.bytes() + m.numeric.lower.bytes();
  for (auto const& f : m.numeric.fronts) out += f.panel.bytes() + f.right.bytes() + 4 * (f.rows.size() + f.columns.size());
  return out;
}

std::string Factors::describe() const {
  auto const& info = impl_->info;
  auto out = format("{}, {} supernode(s), {} entries", impl_->name(), info.supernodes, info.entries);
  if (info.matched) out += ", matched";
  if (info.ordering != "natural") out += format(", {} order{}", info.ordering, la::library_of_ordering(info.ordering));
  return out;
}

double Factors::condition() const {
  auto const& m = *impl_;
  std::lock_guard const lock(m.mutex);
  if (m.condition) return *m.condition;
  if (m.numeric.replaced > 0) return *(m.condition = std::numeric_limits<double>::infinity());
  m.condition = m.norm * with_dtype(m.dtype, [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  return estimate_inverse_norm1<T>(m.n, [&](bool transposed, T* x) { m.solve_scaled(transposed, 1, x); });
                });
  return *m.condition;
}

double Factors::condition_beyond(double limit) const {
  auto const& m = *impl_;
  if (m.numeric.replaced > 0) return condition();
  bool const below = with_dtype(m.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return condition_is_below<T>(limit, m.norm, m.n, [&](bool transposed, T* x) { m.solve_scaled(transposed, 1, x); });
  });
  return below ? 0 : condition();
}

Determinant Factors::determinant() const {
  auto const& m = *impl_;
  std::complex<double> phase = is_odd(m.pivot_rows()) != is_odd(m.pivot_columns()) ? -1 : 1;
  double log = 0;
  auto const times = [&](std::complex<double> v) {
    double const size = std::abs(v);
    if (size == 0) phase = 0;
    else phase *= v / size;
    log += std::log(size);
  };
  with_dtype(m.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (m.options.kind == FactorKind::hermitian) {
      auto const d = kernel::determinant_of(kernel::BlockDiagonal<T>{m.n, m.numeric.diagonal.as<T>(), m.numeric.lower.as<T>()});
      phase *= d.re;
      log += d.log;
      return;
    }
    for (auto const& f : m.numeric.fronts)
      for (std::int32_t k = 0; k < f.pivots; ++k) {
        auto const v = to_complex(f.panel.as<T>()[std::int64_t(k) * f.size + k]);
        times(v);
        if (m.options.kind == FactorKind::cholesky) times(std::conj(v));
      }
  });
  if (m.numeric.replaced > 0) return {0, 0, -std::numeric_limits<double>::infinity()};
  for (std::int32_t i = 0; i < m.n; ++i) log -= std::log(m.row_scale[std::size_t(i)]) + std::log(m.column_scale[std::size_t(i)]);
  return {phase.real(), phase.imag(), log};
}

std::int64_t Factors::negative_among_least(std::int64_t count) const {
  auto const& m = *impl_;
  if (m.options.kind != FactorKind::hermitian || count <= 0) return 0;
  auto d = with_dtype(m.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return kernel::eigenvalues_of(kernel::BlockDiagonal<T>{m.n, m.numeric.diagonal.as<T>(), m.numeric.lower.as<T>()});
  });
  kernel::keep_least(d, std::size_t(count));
  return std::ranges::count_if(d, [](double v) { return v < 0; });
}

std::shared_ptr<ExplicitFactors> Factors::explicit_factors() const {
  auto const& m = *impl_;
  auto [L, U] = explicit_triangles(m.numeric, m.n, m.dtype);
  return std::make_shared<ExplicitFactors>(
      ExplicitFactors{std::move(L), std::move(U), m.pivot_rows(), m.pivot_columns(), m.row_scale, m.column_scale});
}

}  // namespace asterism::direct
