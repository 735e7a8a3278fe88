#include "asterism/direct/distributed/distributed_factors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "asterism/base/profile.hpp"
#include "asterism/base/progress.hpp"
#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/device/host/memory.hpp"
#include "asterism/direct/at.hpp"
#include "asterism/direct/condition.hpp"
#include "asterism/direct/distributed/block_column.kernels.hpp"
#include "asterism/direct/distributed/block_cyclic_factors.hpp"
#include "asterism/direct/distributed/dealt_entries.hpp"
#include "asterism/direct/distributed/gathered_triangles.hpp"
#include "asterism/direct/distributed/shared_analysis.hpp"
#include "asterism/direct/distributed/shared_on_gpus.hpp"
#include "asterism/direct/distributed/top_assembly.hpp"
#include "asterism/direct/multifrontal/block_diagonal.kernels.hpp"
#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"
#include "asterism/direct/permutations.hpp"
#include "asterism/direct/symbolic/analysis.hpp"
#include "asterism/direct/triangular/triangular_solver.hpp"
#include "asterism/la/gathered.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

}  // namespace

struct DistributedFactors::Impl {
  Impl(la::Matrix const& A, FactorOptions const& options, DistributionOptions const& given)
      : comm(A.comm()), space(A.range()), given_distribution(given) {
    static int const symbolic_event = profile::event("FactorSymbolic");
    {
      profile::Scope const scope(symbolic_event);
      auto const whole = la::gathered(A);
      gathered_bytes = A.nnz() * std::int64_t(size_of(A.dtype()) + 4) + 8 * (A.global_rows() + 1);
      comm::agree(comm, [&] {
        auto with = options;
        with.pairs = true;
        if (comm.rank() != 0) return;
        analysis = Analysis(whole, with);
        analysis.require_work();
      });
      share(comm, analysis);
    }
    numbers = {la::inverse_permutation(analysis.rows), la::inverse_permutation(analysis.columns)};
    parts = distribute(analysis.symbolic, comm.size(), comm.rank(), given);
    std::vector<std::int64_t> of_rows, of_columns;
    auto const list = [&](std::int32_t b) {
      of_rows.push_back(analysis.rows[at(b)]);
      of_columns.push_back(analysis.columns[at(b)]);
    };
    for (auto const b : parts.own) list(b);
    auto const& top = parts.top->nodes();
    for (std::int32_t k = 0; k < top.count(); ++k)
      if (given.grid.owner(k, k) == comm.rank())
        for (auto g = top.starts[at(k)]; g < top.starts[at(k) + 1]; ++g) list(parts.top_columns[at(g)]);
    columns_here = std::int64_t(of_rows.size());
    row_forest = comm::StarForest::from_layout(space, of_rows);
    column_forest = comm::StarForest::from_layout(space, of_columns);
    row_forest.set_name("rows of distributed factors");
    column_forest.set_name("columns of distributed factors");
    info.predicted = analysis.predicted;
    info.supernodes = analysis.symbolic.nodes.count();
    info.matched = analysis.matched;
    info.ordering = analysis.ordering;
    require_memory();
  }

  bool hermitian() const { return analysis.hermitian(); }
  FactorKind kind() const { return analysis.options.kind; }

  /// Numbers of this rank's factors, and of work space.
  void require_memory() const {
    auto const& nodes = parts.forest.nodes;
    std::int64_t numbers = 0, work = 0;
    for (std::int32_t s = 0; s < nodes.count(); ++s) {
      auto const w = std::int64_t(nodes.width(s)), b = std::int64_t(nodes.below(s));
      numbers += w * (w + b) + (hermitian() ? 0 : w * b);
      work = std::max(work, 3 * b * b);
    }
    for (std::int32_t b = 0; b < parts.top->blocks(); ++b)
      if (auto const& block = parts.top->block(b); given_distribution.grid.owner(block.row, block.column) == comm.rank())
        numbers += (hermitian() ? 1 : 2) * std::int64_t(block.count) * parts.top->nodes().width(block.column);
    auto const bytes = double(numbers + work) * double(size_of(analysis.dtype));
    auto const limit = analysis.options.memory_limit > 0 ? analysis.options.memory_limit : device::host::available_memory();
    comm::agree(comm, [&] {
      ASTERISM_REQUIRE(limit == 0 || bytes <= double(limit), memory,
                       "{}: the factors of {} rows need {} on this rank ({} entries in all, {} order), and {} are {}. {}", analysis.name(),
                       analysis.n, megabytes(bytes), info.predicted.entries, info.ordering, megabytes(double(limit)),
                       analysis.options.memory_limit > 0 ? "allowed" : "there", what_to_try(info.ordering, analysis.dtype, {"more ranks"}));
    });
  }

  void compute(la::Matrix const& A) {
    static int const event = profile::event("FactorNumeric");
    profile::Scope const scope(event, 0, info.predicted.flops / comm.size());
    with_dtype(analysis.dtype, [&](auto tag) { compute_as<typename decltype(tag)::type>(A); });
  }

  template <class T>
  void compute_as(la::Matrix const& A) {
    auto const rank = comm.rank();
    auto const triangle = [&] { return std::make_shared<LocalTriangle>(parts.top, given_distribution.grid, rank, analysis.dtype); };
    device::host::KeepFreed const keep_freed;
    solver.reset();
    top = {};
    numeric = {};
    comm::agree(comm, [&] { top = {kind(), triangle(), hermitian() ? nullptr : triangle(), {}}; });
    static int const deal_event = profile::event("FactorDeal"), forest_event = profile::event("FactorSubtrees"),
                     update_event = profile::event("FactorUpdates"), top_event = profile::event("FactorTop");
    TopAssembly assembly(comm, parts, top);
    la::Csr b;
    {
      profile::Scope const scope(deal_event);
      auto dealt = deal_entries<T>(A, analysis, numbers, parts, given_distribution.grid);
      largest_entry = dealt.largest, norm = dealt.norm;
      for (auto const& e : dealt.top) assembly.add(e);
      b = csr_of(parts.size, dealt.forest);
    }
    kernel::Pivoting pivoting;
    pivoting.threshold = analysis.options.pivot_threshold;
    pivoting.tiny = largest_entry * epsilon_of(analysis.dtype) * 0x1p-10;
    pivoting.replacement = largest_entry > 0 ? largest_entry : 1;
    Progress progress(format("{}: factors of {} rows on {} ranks", analysis.name(), analysis.n, comm.size()), 1);
    double const of_top = parts.top_work + parts.most_work > 0 ? parts.top_work / (parts.top_work + comm.size() * parts.most_work) : 0;
    comm::agree(comm, [&] {
      profile::Scope const scope(forest_event, 0, parts.forest.flops * (hermitian() ? 1 : 2) * (is_complex_v<T> ? 4 : 1));
      auto const bt = hermitian() ? la::Csr() : la::transpose(b);
      std::function<void(double)> const told = [&](double done) { progress.at(done * (1 - of_top)); };
      numeric = kernel::factor<T>(kind(), parts.forest, b, bt, pivoting, told);
    });
    b = {};
    require_positive(numeric.not_positive >= 0 ? parts.own[at(numeric.not_positive)] : -1);
    {
      profile::Scope const scope(update_event);
      assembly.add_updates<T>(numeric);
    }
    std::function<void(double)> const told = [&](double done) { progress.at(1 - of_top + done * of_top); };
    BlockCyclicResult found;
    {
      profile::Scope const scope(top_event, 0, parts.top_work * (hermitian() ? 1 : 2) * (is_complex_v<T> ? 4 : 1) / comm.size());
      found = factor(comm, top, pivoting, told);
    }
    require_positive(found.not_positive >= 0 ? parts.top_columns[at(found.not_positive)] : -1);
    finish<T>(found);
  }

  /// An error on all ranks if any has a column of B with a pivot that is not positive.
  void require_positive(std::int32_t column) const {
    auto const none = std::int64_t(analysis.n);
    auto const first = comm.min(column >= 0 ? std::int64_t(column) : none);
    ASTERISM_REQUIRE_ALIKE(first == none, breakdown, "cholesky: the matrix is not positive definite: the pivot of row {} is not positive.",
                           analysis.rows[at(first == none ? 0 : first)]);
  }

  /// f(k, D) for each diagonal block of the top that this rank has: its first number here, and its part of D. Of L D L^H.
  template <class T, class F>
  void each_top_pivots(F const& f) const {
    std::int64_t first = 0;
    for (std::int32_t k = 0; k < parts.top->count(); ++k) {
      if (!top.lower->owns_diagonal(k)) continue;
      auto const w = std::int64_t(parts.top->nodes().width(k));
      T const* const d = top.pivots.as<T>() + 2 * first;
      f(first, kernel::BlockDiagonal<T>{w, d, d + w});
      first += w;
    }
  }

  /// The factors of the top take the form of solves; what all ranks know of the factors.
  template <class T>
  void finish(BlockCyclicResult const& found) {
    std::int64_t sums[] = {numeric.entries, numeric.delayed, numeric.replaced + found.replaced, numeric.two_by_two + found.two_by_two,
                           numeric.negative + found.negative};
    bool const cholesky = kind() == FactorKind::cholesky, has_d = kind() == FactorKind::hermitian;
    local_determinant = {};
    least.clear();
    auto const times = [&](std::complex<double> v) {
      double const size = std::abs(v);
      if (size > 0) local_determinant.phase *= v / size;
      local_determinant.log += std::log(size);
      if (cholesky) local_determinant.log += std::log(size);
    };
    auto const times_all = [&](kernel::BlockDiagonal<T> const& d) {
      auto const of = kernel::determinant_of(d);
      local_determinant.phase *= of.re;
      local_determinant.log += of.log;
      auto const values = kernel::eigenvalues_of(d);
      least.insert(least.end(), values.begin(), values.end());
      kernel::keep_least(least, 64);
    };
    if (has_d) {
      times_all({std::int64_t(numeric.row_order.size()), numeric.diagonal.as<T>(), numeric.lower.as<T>()});
      each_top_pivots<T>([&](std::int64_t, auto const& d) { times_all(d); });
    } else {
      for (auto const& f : numeric.fronts)
        for (std::int32_t p = 0; p < f.pivots; ++p) times(to_complex(f.panel.as<T>()[std::int64_t(p) * f.size + p]));
    }
    for (std::int32_t k = 0; k < parts.top->count(); ++k) {
      auto const w = std::int64_t(parts.top->nodes().width(k));
      sums[0] += (hermitian() ? 1 : 2) * w * top.lower->panel_rows(k);
      if (!top.lower->owns_diagonal(k)) continue;
      sums[0] += hermitian() ? w * (w + 1) / 2 : w * w;
      auto* const d = reinterpret_cast<T*>(top.lower->diagonal(k));
      for (std::int64_t p = 0; p < w && !has_d; ++p) times(to_complex(d[p * w + p]));
      if (!hermitian()) {
        kernel::transpose_upper(std::int32_t(w), d, reinterpret_cast<T*>(top.upper->diagonal(k)));
        top.upper->finish_diagonal(k, false);
      }
      top.lower->finish_diagonal(k, !cholesky);
    }
    comm.sum(std::span<std::int64_t>(sums));
    info.entries = sums[0], info.delayed = sums[1], info.replaced = sums[2], info.two_by_two = sums[3], info.negative = sums[4];
    info.largest_front = std::int32_t(comm.max(std::int64_t(numeric.largest_front)));
    double const largest = comm.max(std::max(numeric.largest, found.largest));
    info.growth = cholesky || largest_entry == 0 ? 1 : largest / largest_entry;
    std::vector<std::shared_ptr<LocalTriangle const>> triangles{top.lower};
    if (top.upper) triangles.push_back(top.upper);
    solver.emplace(comm, std::move(triangles), TriangularOptions{.checksums = given_distribution.checksums}, parts.outside);
    condition.reset();
  }

  /// w: numbers of this rank, its subtrees' in B's order and then the top's; becomes the solution of B x = w, or B^T x = w.
  template <class T>
  void solve_scaled(bool transposed, std::int64_t k, T* w) {
    auto const own = std::int64_t(parts.own.size()), beyond = std::int64_t(parts.size) - own;
    std::vector<T> x(at(parts.size) * at(k));
    T* const beside = x.data() + own * k;
    std::span<T> const of_top(w + own * k, at((columns_here - own) * k));
    auto const& in = transposed ? numeric.column_order : numeric.row_order;
    auto const& out = transposed ? numeric.row_order : numeric.column_order;
    auto const conjugate_all = [&] {
      if constexpr (is_complex_v<T>) {
        for (auto& v : x) v = conj(v);
        for (auto& v : of_top) v = conj(v);
      }
    };
    for (std::int64_t p = 0; p < own; ++p) std::copy_n(w + in[at(p)] * k, k, x.data() + p * k);
    if (hermitian() && transposed) conjugate_all();
    bool const u_first = !hermitian() && transposed;
    auto const bytes = [&](std::span<T> s) { return std::as_writable_bytes(s); };
    std::span<T> const besides(beside, at(beyond * k));
    kernel::solve_down<T>(numeric, u_first, k, x.data());
    kernel::solve_pivots<T>(numeric, k, x.data());
    for (auto& v : besides) v = T(0) - v;  // sums are what is subtracted
    static int const top_event = profile::event("FactorSolveTop");
    bool const u_last = !hermitian() && !transposed;
    {
      profile::Scope const scope(top_event);
      solver->solve(u_first ? 1 : 0, Sweep::forward, k, bytes(of_top), bytes(besides));
      if (kind() == FactorKind::hermitian)
        each_top_pivots<T>([&](std::int64_t first, auto const& d) { kernel::divide_rows(d, k, of_top.data() + first * k); });
      if (hermitian()) conjugate_all();
      solver->solve(u_last ? 1 : 0, Sweep::backward, k, bytes(of_top), bytes(besides));
    }
    kernel::solve_up<T>(numeric, u_last, k, x.data());
    if (hermitian() && !transposed) conjugate_all();
    for (std::int64_t p = 0; p < own; ++p) std::copy_n(x.data() + p * k, k, w + out[at(p)] * k);
  }

  template <class T>
  void solve(char trans, std::int64_t k, T const* b, T* y) {
    bool const transposed = trans != 'N';
    auto const& from = transposed ? column_forest : row_forest;
    auto const& to = transposed ? row_forest : column_forest;
    std::vector<T> w(at(columns_here * k));
    from.bcast(b, w.data(), k);
    auto const each = [&](bool before) {
      bool const rows = before != transposed;
      for (std::int64_t p = 0; p < columns_here; ++p) {
        auto const b_number = p < std::int64_t(parts.own.size()) ? parts.own[at(p)] : top_here(p - std::int64_t(parts.own.size()));
        double const by =
            rows ? analysis.row_scale[at(analysis.rows[at(b_number)])] : analysis.column_scale[at(analysis.columns[at(b_number)])];
        for (std::int64_t c = 0; c < k; ++c) {
          T& v = w[at(p * k + c)];
          if (before && trans == 'C') v = conj(v);
          v = la::scaled_by(v, by);
          if (!before && trans == 'C') v = conj(v);
        }
      }
    };
    each(true);
    constexpr std::int64_t most = 8;
    if (k <= most) {
      solve_scaled(transposed, k, w.data());
    } else {
      std::vector<T> part;
      for (std::int64_t c = 0; c < k; c += most) {
        auto const some = std::min(most, k - c);
        part.resize(at(columns_here * some));
        for (std::int64_t p = 0; p < columns_here; ++p) std::copy_n(w.data() + p * k + c, some, part.data() + p * some);
        solve_scaled(transposed, some, part.data());
        for (std::int64_t p = 0; p < columns_here; ++p) std::copy_n(part.data() + p * some, some, w.data() + p * k + c);
      }
    }
    each(false);
    to.reduce(w.data(), y, comm::ReduceOp::replace, k);
  }
  SharedFactors shared() const { return {analysis, parts, numeric, top}; }
  /// Number of B of a column of the top that this rank solves.
  std::int32_t top_here(std::int64_t p) const { return parts.top_columns[at(solver->owned_rows()[at(p)])]; }

  comm::Communicator comm;
  la::Space space;
  DistributionOptions given_distribution;
  Analysis analysis;
  Numbers numbers;
  Distribution parts;
  FactorInfo info;
  std::int64_t columns_here = 0, gathered_bytes = 0;
  comm::StarForest row_forest, column_forest;  // to this rank's numbers
  double largest_entry = 0, norm = 0;          // of B
  BlockCyclicMatrix top;
  NumericFactors numeric;
  std::optional<TriangularSolver> solver;
  std::optional<double> condition;
  struct {
    std::complex<double> phase = 1;
    double log = 0;
  } local_determinant;
  std::vector<double> least;  // eigenvalues of D on this rank, those nearest to zero
};

DistributedFactors::DistributedFactors(la::Matrix const& A, FactorOptions const& options, DistributionOptions const& distribution)
    : impl_(std::make_unique<Impl>(A, options, distribution)) {
  impl_->compute(A);
}
DistributedFactors::~DistributedFactors() = default;

bool DistributedFactors::update(la::Matrix const& A) {
  auto& m = *impl_;
  ASTERISM_REQUIRE_ALIKE(A.global_rows() == m.analysis.n && A.dtype() == m.analysis.dtype, shape,
                         "{}: update with {} rows of {} instead of {} of {}.", m.analysis.name(), A.global_rows(), name_of(A.dtype()),
                         m.analysis.n, name_of(m.analysis.dtype));
  // whether a matrix is Hermitian is seen where it is whole
  if (!m.hermitian() && scales_suit(A, m.analysis, m.numbers)) {
    m.compute(A);
    return true;
  }
  bool fits = true;
  auto const whole = la::gathered(A);
  comm::agree(m.comm, [&] {
    if (m.comm.rank() == 0) fits = m.analysis.rescale(whole);
  });
  if (m.comm.max(std::int64_t(!fits)) > 0) return false;
  share_scales(m.comm, m.analysis);
  m.compute(A);
  return true;
}

void DistributedFactors::solve(char trans, std::int64_t k, void const* b, void* y) const {
  auto& m = *impl_;
  ASTERISM_REQUIRE_ALIKE(m.solver.has_value(), value, "{}: there are no factors: the last update failed.", m.analysis.name());
  static int const event = profile::event("FactorSolve");
  profile::Scope const scope(event, double(m.info.entries) * double(size_of(m.analysis.dtype)) / m.comm.size(),
                             2.0 * double(m.info.entries) * double(k) / m.comm.size());
  with_dtype(m.analysis.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    m.solve<T>(trans, k, static_cast<T const*>(b), static_cast<T*>(y));
  });
}

std::shared_ptr<GpuFactors> DistributedFactors::on_gpus() const { return factors_on_gpus(impl_->comm, impl_->shared()); }
comm::StarForest const& DistributedFactors::row_forest() const { return impl_->row_forest; }
comm::StarForest const& DistributedFactors::column_forest() const { return impl_->column_forest; }

Dtype DistributedFactors::dtype() const { return impl_->analysis.dtype; }
FactorInfo const& DistributedFactors::info() const { return impl_->info; }

std::size_t DistributedFactors::memory_bytes() const {
  auto const& m = *impl_;
  std::size_t out = m.top.lower->bytes() + (m.top.upper ? m.top.upper->bytes() : 0) + m.top.pivots.bytes() + m.numeric.diagonal.bytes() +
                    m.numeric.lower.bytes();
  for (auto const& f : m.numeric.fronts) out += f.panel.bytes() + f.right.bytes() + 4 * (f.rows.size() + f.columns.size());
  return out + symbolic_bytes().second;
}

std::pair<std::size_t, std::size_t> DistributedFactors::symbolic_bytes() const {
  auto const& a = impl_->analysis;
  auto const& nodes = a.symbolic.nodes;
  auto const kept = 16 * a.row_scale.size() + 12 * a.rows.size() + 4 * (nodes.row_indices.size() + 2 * nodes.starts.size()) +
                    8 * (nodes.row_offsets.size() + a.symbolic.work.size());
  return {std::size_t(impl_->gathered_bytes), kept};
}

std::string DistributedFactors::layout() const {
  auto const& m = *impl_;
  double const all = m.analysis.symbolic.flops;
  return format("{} ranks, {} % of the work in subtrees", m.given_distribution.grid.describe(),
                all > 0 ? int(std::lround(100 * (all - m.parts.top_work) / all)) : 100);
}

double DistributedFactors::condition() const {
  auto& m = *impl_;
  if (m.condition) return *m.condition;
  if (m.info.replaced > 0) return *(m.condition = std::numeric_limits<double>::infinity());
  m.condition = with_dtype(m.analysis.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // all ranks have all of x, in B's order
    Ints here(m.parts.own);
    for (std::int64_t p = std::int64_t(here.size()); p < m.columns_here; ++p)
      here.push_back(m.top_here(p - std::int64_t(m.parts.own.size())));
    std::vector<std::int32_t> order;
    auto const all_of = [&](auto const& mine) {
      using U = typename std::decay_t<decltype(mine)>::value_type;
      auto const bytes = m.comm.all_gather_bytes(std::as_bytes(std::span<U const>(mine)));
      return comm::items_of<U>(bytes);
    };
    order = all_of(here);
    auto const apply = [&](bool transposed, std::vector<T>& x) {
      std::vector<T> w;
      for (auto const b : here) w.push_back(x[at(b)]);
      m.solve_scaled<T>(transposed, 1, w.data());
      auto const all = all_of(w);
      for (std::size_t i = 0; i < all.size(); ++i) x[at(order[i])] = all[i];
    };
    auto const conjugated = [](std::vector<T>& x) {
      for (auto& v : x) v = conj(v);
    };
    return m.norm * estimate_norm1<T>(
                        m.analysis.n, [&](std::vector<T>& x) { apply(false, x); },
                        [&](std::vector<T>& x) {
                          conjugated(x);
                          apply(true, x);
                          conjugated(x);
                        });
  });
  return *m.condition;
}

double DistributedFactors::condition_beyond(double limit) const {
  auto& m = *impl_;
  if (m.info.replaced > 0) return condition();
  double const size = with_dtype(m.analysis.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> x;
    for (std::int64_t p = 0; p < m.columns_here; ++p) {
      auto const b = p < std::int64_t(m.parts.own.size()) ? m.parts.own[at(p)] : m.top_here(p - std::int64_t(m.parts.own.size()));
      auto const hashed = (std::uint64_t(b) + 1) * 0x9e3779b97f4a7c15u;
      x.push_back(T(real_t<T>(double(hashed >> 11) * 0x1p-52 - 1)));
    }
    auto const sum = [&](double own) {
      m.comm.sum(std::span<double>(&own, 1));
      return own;
    };
    return norm_by_two_steps(m.analysis.n, x, [&](bool transposed) { m.solve_scaled<T>(transposed, 1, x.data()); }, sum);
  });
  return 10 * std::sqrt(double(m.analysis.n)) * m.norm * size <= limit ? 0 : condition();  // sqrt(n) is between the norms
}

Determinant DistributedFactors::determinant() const {
  auto const& m = *impl_;
  if (m.info.replaced > 0) return {0, 0, -std::numeric_limits<double>::infinity()};
  std::complex<double> phase = 1;
  if (!m.hermitian()) {  // else columns go as rows do
    auto const order = pivot_order(m.comm, m.shared());
    if (is_odd(in_order(m.analysis.rows, order.rows)) != is_odd(in_order(m.analysis.columns, order.columns))) phase = -1;
  }
  std::complex<double> const mine = m.local_determinant.phase;
  for (auto const& v : comm::items_of<std::complex<double>>(m.comm.all_gather_bytes(std::as_bytes(std::span(&mine, 1))))) phase *= v;
  double log = m.local_determinant.log;
  m.comm.sum(std::span<double>(&log, 1));
  for (std::size_t i = 0; i < m.analysis.row_scale.size(); ++i)
    log -= std::log(m.analysis.row_scale[i]) + std::log(m.analysis.column_scale[i]);
  return {phase.real(), phase.imag(), log};
}

std::int64_t DistributedFactors::negative_among_least(std::int64_t count) const {
  auto const& m = *impl_;
  if (count <= 0) return 0;
  auto all = comm::items_of<double>(m.comm.all_gather_bytes(std::as_bytes(std::span(m.least))));
  kernel::keep_least(all, std::size_t(count));
  return std::ranges::count_if(all, [](double v) { return v < 0; });
}

std::shared_ptr<ExplicitFactors> DistributedFactors::explicit_factors() const {
  return gathered_triangles(impl_->comm, impl_->shared(), impl_->info.entries);
}

}  // namespace asterism::direct
