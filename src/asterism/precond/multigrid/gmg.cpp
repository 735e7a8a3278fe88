// Geometric multigrid: for operators that know a coarser one, and the way there and back (la::Operator::coarse). No matrix is needed but
// that of the coarsest level, which is found by products.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "asterism/base/lazy.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/la/largest_eigenvalue.hpp"
#include "asterism/precond/amg/level_smoother.hpp"
#include "asterism/precond/amg/smoother_choice.hpp"
#include "asterism/precond/direct/dense_inverse.hpp"
#include "asterism/precond/multigrid/cycle.hpp"
#include "asterism/precond/multigrid/fewer_ranks.hpp"

namespace asterism::precond {
namespace {

/// A level that knows no coarser one is solved by sparse factors if it has at most so many points.
constexpr std::int64_t most_factored = 20000;

OptionTable const& table() {
  static OptionTable const t = [] {
    OptionTable all = {
        choice_option(
            "pc_gmg_cycle_type", "v", {"v", "w", "f", "k", "full"},
            "cycle; f and full (full multigrid) are not symmetric, and k is another one for each vector: for -ksp_type fgmres and gcr"),
        integer_option("pc_gmg_max_levels", 30, "most levels", 1, 100),
        integer_option("pc_gmg_coarse_size", 600, "a level with at most this many points is the last one, and solved directly", 1, 20000),
        choice_option("pc_gmg_coarse_type", "direct", {"direct", "smoother", "ksp"},
                      "on the last level: factors, its smoother alone, or a solver with options of the prefix mg_coarse_"),
        choice_option(
            "pc_gmg_galerkin", "auto", {"auto", "both", "none"},
            "coarse operators by Galerkin's product R A P (both), or discretised again with twice the spacing (none); auto: again "
            "where the operator knows how, else the product"),
        integer_option("pc_gmg_coarse_rows_per_rank", 1000, "a coarse level with fewer points per rank is given to fewer ranks; 0: none is",
                       0, 1000000000),
        integer_option("pc_gmg_steps_at_once", 8,
                       "most steps of a smoother, the residual included, in one pass over memory and for one exchange", 1, 100),
        real_option("pc_gmg_omega", 0, "relaxation factor of jacobi and color_sor, below 2; 0: what is best for a Laplacian", 0, 1.99),
        flag_option("pc_gmg_log", false, "events of their own for what is done on each level, in -log_view"),
        flag_option("pc_gmg_measure", false, "measure the convergence factors of smoothers and cycles of all levels, for solver.view()"),
    };
    for (auto option : amg::smoother_table()) {
      if (option.name == "mg_levels_ksp_type") {
        option.help =
            "smoother of the levels: steps, or a polynomial; auto: a polynomial of degree 2 where the method needs a symmetric "
            "preconditioner, else a step of color_sor";
      } else if (option.name == "mg_levels_pc_type") {
        option.choices = {"auto", "jacobi", "color_sor"};
        option.help = "what the smoother multiplies residuals with; auto: color_sor for steps that are not asked for, else jacobi";
        for (auto const* const name : {"spai0", "sor", "ilu", "icc"}) option.elsewhere[name] = "A level has no entries to make it of.";
      } else if (option.name == "mg_levels_ksp_chebyshev_kind") {
        option.fallback = "first";
      }
      all.push_back(option);
    }
    return all;
  }();
  return t;
}

/// Points of all ranks.
std::int64_t points_of(Space const& space) {
  std::int64_t none = 0;
  for (auto const& [first, count] : space.padding()) none += count;
  return space.global_size() - space.comm().sum(none);
}

/// As the operator finds it, else by products with unit vectors, some at a time; ones where entries stand for nothing. Collective.
Matrix matrix_of(Operator const& A) {
  if (auto const known = A.assembled()) return *known;
  constexpr std::int64_t at_once = 32;
  auto const& space = A.range();
  std::int64_t const begin = space.begin(), mine = space.local_size();
  std::vector<bool> is_padding(std::size_t(mine), false);
  for (auto const& [first, count] : space.padding())
    for (auto i = first; i < first + count; ++i) is_padding[std::size_t(i)] = true;
  std::vector<std::int64_t> rows, columns;
  Matrix out;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values;
    for (std::int64_t i = 0; i < mine; ++i)
      if (is_padding[std::size_t(i)]) rows.push_back(begin + i), columns.push_back(begin + i), values.push_back(T(1));
    // of each rank in turn, without those that stand for nothing
    std::int64_t points = 0, done = 0;
    for (auto const none : is_padding) points += !none;
    auto const all = points_of(space);
    Progress progress(format("gmg: the matrix of the last level, {} points", all), double(all));
    comm::Cancellation cancel(space.comm(), progress);
    for (int rank = 0; rank < space.comm().size(); ++rank) {
      auto const left = space.comm().sum(rank == space.comm().rank() ? points : std::int64_t(0));
      std::int64_t next = 0;
      for (std::int64_t first = 0; first < left; first += at_once) {
        auto const k = std::min(at_once, left - first);
        Vector x(A.domain(), A.dtype(), k), y(space, A.dtype(), k);
        fill(x, 0.0);
        std::vector<std::int64_t> column(std::size_t(k), 0);
        if (rank == space.comm().rank())
          for (std::int64_t j = 0; j < k; ++j, ++next) {
            while (is_padding[std::size_t(next)]) ++next;
            x.host<T>()[std::size_t(next * k + j)] = T(1);
            column[std::size_t(j)] = begin + next;
          }
        space.comm().bcast(column.data(), column.size() * sizeof column[0], rank);
        A.apply(x, y);
        auto const products = y.host<T>();
        for (std::int64_t i = 0; i < mine; ++i)
          for (std::int64_t j = 0; j < k; ++j)
            if (auto const v = products[std::size_t(i * k + j)]; v != T(0))
              rows.push_back(begin + i), columns.push_back(column[std::size_t(j)]), values.push_back(v);
        cancel.at(double(done += k));
      }
    }
    out = Matrix::from_coo<std::int64_t>(space, space, A.dtype(), rows, columns, values.data());
  });
  return out;
}

/// What the last level's inverse should know. If a null space is projected: whether the finest operator maps constants to zero, since
/// rounding may hide that on the last level. Else constants that it maps to little, as a small reaction term does, are no null vector.
/// Collective.
CoarseOrigin origin_of(Operator const& finest, Space const& coarse, bool projects) {
  CoarseOrigin out;
  out.finest_rows = points_of(finest.range());
  if (!projects) return out;
  auto d = finest.diagonal();
  clear_padding(d);
  Vector ones(finest.domain(), finest.dtype()), product(finest.range(), finest.dtype());
  fill(ones, 1.0);
  clear_padding(ones);
  finest.apply(ones, product);
  Vector const* const both[] = {&d, &product};
  auto const entries = la::look_at_entries(both);
  out.largest_diagonal = entries[0].largest[0];
  out.null_tolerance = 1e3 * epsilon_of(finest.dtype());
  if (!(entries[1].largest[0] <= out.null_tolerance * out.largest_diagonal)) return out;
  Vector constants(coarse, with_precision_of(finest.dtype(), Dtype::float64));
  fill(constants, 1.0);
  clear_padding(constants);
  out.null_vectors = constants.data();
  out.null_columns = 1;
  // one part of all points, and each row that stands for nothing
  std::vector<double> is_padding(std::size_t(coarse.global_size()), 0);
  for (auto const& [first, count] : coarse.padding()) std::fill_n(is_padding.begin() + std::ptrdiff_t(coarse.begin() + first), count, 1);
  coarse.comm().max(std::span<double>(is_padding));
  auto const first_point = std::int32_t(std::find(is_padding.begin(), is_padding.end(), 0) - is_padding.begin());
  for (std::size_t i = 0; i < is_padding.size(); ++i) out.parts.push_back(is_padding[i] > 0 ? std::int32_t(i) : first_point);
  return out;
}

/// The largest eigenvalue of D^-1 A, or a bound of it.
double reach_of(OperatorPtr const& A) {
  if (auto const bound = A->eigenvalue_bound()) return *bound;
  return 1.1 * la::largest_eigenvalue(*A, *jacobi(*A), Vector(A->range(), A->dtype()));
}

enum class CoarseType : std::uint8_t { direct, smoother, ksp };

struct Choices {
  CycleType cycle;
  CoarseType coarse;
  la::CoarseRule rule;
  std::int64_t max_levels, coarse_size, at_once;
  double omega;
  bool log, measure, open;  ///< open: the smoother is chosen
  amg::SmootherOptions smoother;
};

/// directions: that the next level is coarser in. Of a Laplacian coarse points do not see eigenvalues of D^-1 A from 1 / directions to 2.
SmootherPtr smoother_of(Choices const& o, OperatorPtr const& A, double directions, bool symmetric) {
  auto s = o.smoother;
  auto w = A->diagonal();
  invert_entries(w, "gmg", A->matrix() != nullptr);
  auto weights = s.kind == "color_sor" ? A->colours() : std::vector<Vector>();
  if (s.kind == "color_sor" && weights.empty()) {
    ASTERISM_REQUIRE(o.open, option,
                     "gmg: {} knows no colours. A stencil does that reads the points around alone, where periodic axes have an even number "
                     "of points. Use -mg_levels_ksp_type chebyshev.",
                     A->describe());
    s.kind = "jacobi";
    s.method = o.omega > 0 ? "richardson" : "chebyshev";  // a polynomial has no factor
    s.steps = s.steps_or(2);
  }
  if (!weights.empty()) {
    double const omega = o.omega > 0 ? o.omega : symmetric ? 1 : 1 + 0.05 * directions;  // Yavneh (1996)
    scale(omega, w);
    for (auto& c : weights) {
      auto const mask = c;
      c = mask.like();
      multiply(w, mask, c);
    }
    return coloured_steps(std::move(weights), s.steps, symmetric, omega == 1 ? "" : format(", omega {}", omega), {A, o.at_once});
  }
  double const reach = reach_of(A), least = reach / std::max(3.0, 2 * directions);
  if (s.method == "chebyshev") return chebyshev_smoother({std::move(w), least, reach, 0, s.chebyshev}, s.steps, "jacobi", {A, o.at_once});
  scale(o.omega > 0 ? o.omega : 2 / (reach + reach / (2 * directions)), w);
  return weighted_steps(std::move(w), s.steps, "jacobi", {A, o.at_once});
}

class GeometricMultigrid final : public Preconditioner {
 public:
  GeometricMultigrid(Nest const& nest, OperatorPtr const& A, Choices const& options) : Preconditioner(*A) {
    static int const event = profile::event("PCSetUpGMG");
    profile::Scope const scope(event);
    std::vector<GridLevel> levels;
    for (auto now = A; now;) {
      GridLevel level;
      level.A = now;
      auto const points = points_of(now->range());
      points_.push_back(points);
      bool const small = points <= options.coarse_size, most = std::int64_t(points_.size()) == options.max_levels;
      auto next = small || most ? std::nullopt : now->coarse({options.rule.by, options.rule.rows_per_rank, nest.symmetric});
      bool const stuck = !next && !small && !most;
      if (stuck && levels.empty()) refuse(*now);
      if (!next && points > most_factored && options.coarse == CoarseType::direct) refuse(*now, points);
      if (!next && options.coarse != CoarseType::smoother) {
        level.solver = coarse_solver(nest, options, *A, now);
        if (stuck) last_ += " (no coarser grid fits)";
      } else {
        // 8 to 1 in three directions
        double const times = next ? double(points) / double(std::max<std::int64_t>(1, points_of(next->A->range()))) : 8;
        level.smoother = smoother_of(options, now, std::max(1.0, std::floor(std::log2(times))), nest.symmetric);
        memory_ += level.smoother->memory_bytes();
      }
      now = nullptr;
      if (next) {
        level.P = next->P, level.R = next->R, level.paired = next->paired, now = next->A;
        if (options.cycle == CycleType::full && next->higher) level.first = next->higher();
      }
      levels.push_back(std::move(level));
    }
    cycle_ = Cycle(std::move(levels), options.cycle, nest.hermitian);
    name_ = options.cycle == CycleType::v   ? "V"
            : options.cycle == CycleType::w ? "W"
            : options.cycle == CycleType::f ? "F"
            : options.cycle == CycleType::k ? "K"
                                            : "full";
    if (options.log) cycle_.time_levels();
    if (!options.measure) return;
    auto const& made = cycle_.levels();
    for (std::size_t l = 0; l < made.size(); ++l)
      if (made[l].solver) factors_.emplace_back(0, 0);
      else factors_.emplace_back(amg::smoothing_factor(made[l]), amg::convergence_factor(made, l, options.cycle, nest.hermitian));
  }
  void apply(Vector const& x, Vector& y) const override {
    static int const event = profile::event("PCApplyGMG");
    profile::Scope const scope(event);
    cycle_.apply(x, y);
  }
  bool improve(Operator const& A, Vector const& b, Vector& x, Vector& r, bool fresh) const override {
    if (&A != cycle_.levels().front().A.get() || !cycle_.improves(fresh)) return false;
    static int const event = profile::event("PCApplyGMG");
    profile::Scope const scope(event);
    cycle_.improve(b, x, r, fresh);
    return true;
  }
  std::string describe() const override { return format("gmg ({} levels)", points_.size()); }
  std::string report() const override {
    auto const right = [](std::string s, std::size_t w) { return std::string(w > s.size() ? w - s.size() : 0, ' ') + s; };
    auto const factor = [](double f) { return f > 0 ? format("{}", std::round(f * 1000) / 1000) : std::string("-"); };
    bool const several = space_.comm().size() > 1;
    std::string out = format("{}, {} cycle, {}\n  level      points", describe(), name_, name_of(dtype_));
    if (several) out += "  ranks";
    if (!factors_.empty()) out += "  smoothing  cycle";
    out += "  operator, smoother\n";
    for (std::size_t l = 0; l < points_.size(); ++l) {
      auto const& level = cycle_.levels()[l];
      out += right(std::to_string(l), 7) + right(std::to_string(points_[l]), 12);
      if (several) out += right(std::to_string(ranks_with_rows(level.A->range())), 7);
      if (!factors_.empty()) out += right(factor(factors_[l].first), 11) + right(factor(factors_[l].second), 7);
      out += "  " + level.A->describe() + ", " + (level.solver ? last_ : level.smoother->describe()) + "\n";
    }
    return out;
  }
  bool symmetric() const override { return cycle_.symmetric(); }
  bool varies() const override { return cycle_.varies() || coarse_varies_; }
  std::size_t memory_bytes() const override { return memory_; }
  bool update(Matrix const&) override { return false; }

 protected:
  void apply_adjoint(Vector const& x, Vector& y) const override {
    if (self_adjoint_) return apply(x, y);
    adjoint_.made_by([&] { return std::make_shared<Cycle const>(cycle_.adjoint()); })->apply(x, y);
  }

 private:
  OperatorPtr coarse_solver(Nest const& nest, Choices const& options, Operator const& finest, OperatorPtr const& A) {
    PreconditionerPtr made;
    if (options.coarse == CoarseType::ksp) {
      made = nest.make_solver(nest.config.nested("mg_coarse_"), A, A->matrix() ? "auto" : "none");
      last_ = made->describe();
      coarse_varies_ = made->varies();
    } else if (A->range().global_size() <= std::max<std::int64_t>(options.coarse_size, 2048)) {  // with the padding
      auto const inverse = std::make_shared<DenseInverse>(matrix_of(*A), A->dtype(), false, origin_of(finest, A->range(), nest.projects));
      last_ = inverse->storage();
      made = inverse;
    } else {
      made = nest.make_inner(nest.config.nested("mg_coarse_"), matrix_of(*A), "lu");
      last_ = made->describe();
    }
    made->set_hermitian(nest.hermitian);
    memory_ += made->memory_bytes();
    return made;
  }
  static constexpr char const* shapes = "2^k m - 1 points along an axis with borders, or 2^k m if it is periodic, or of cells";
  [[noreturn]] static void refuse(Operator const& A) {
    throw Error(
        ErrorKind::option,
        format(
            "gmg: {} has no coarser operator. One of am.stencil.operator has, with more than one point along an axis, and "
            "along periodic ones a divisor of half of the points that is as wide as the stencil reads. A Grid.star_operator, or any with "
            "-pc_gmg_galerkin none, needs {}. Use -pc_type chebyshev, "
            "or amg for a matrix.",
            A.describe(), shapes),
        true);
  }
  [[noreturn]] static void refuse(Operator const& A, std::int64_t points) {
    throw Error(ErrorKind::option,
                format("gmg: the last level, {}, has {} points: too many to be solved directly. Take {}, more -pc_gmg_max_levels, or "
                       "-pc_gmg_coarse_type smoother or ksp.",
                       A.describe(), points, shapes),
                true);
  }
  Cycle cycle_;
  mutable Lazy<std::shared_ptr<Cycle const>> adjoint_;  // made when asked for
  std::vector<std::int64_t> points_;                    // of each level
  std::vector<std::pair<double, double>> factors_;      // of each level's smoother, and of the cycle from there
  std::string name_, last_;
  bool coarse_varies_ = false;
  std::size_t memory_ = 0;
};

PreconditionerPtr make(Nest const& nest, OperatorPtr const& A) {
  auto r = nest.config.reader(table());
  auto const coarse = r.text("pc_gmg_coarse_type");
  Choices o{cycle_type(r.text("pc_gmg_cycle_type")),
            coarse == "ksp"        ? CoarseType::ksp
            : coarse == "smoother" ? CoarseType::smoother
                                   : CoarseType::direct,
            {r.text("pc_gmg_galerkin") == "both"   ? la::CoarseRule::By::galerkin
             : r.text("pc_gmg_galerkin") == "none" ? la::CoarseRule::By::again
                                                   : la::CoarseRule::By::either,
             r.integer("pc_gmg_coarse_rows_per_rank")},
            r.integer("pc_gmg_max_levels"),
            r.integer("pc_gmg_coarse_size"),
            r.integer("pc_gmg_steps_at_once"),
            r.real("pc_gmg_omega"),
            r.flag("pc_gmg_log"),
            r.flag("pc_gmg_measure"),
            false,
            amg::smoother_options(nest, r)};
  auto& s = o.smoother;
  o.open = s.is_open();
  if (o.open) {
    bool const colours = o.omega > 0 || (!nest.symmetric && !A->colours().empty());
    s.method = colours ? "richardson" : "chebyshev";
    s.kind = colours ? "color_sor" : "jacobi";
    s.steps = s.steps_or(colours ? 1 : 2);
  } else if (s.kind == "spai0" && !r.given("mg_levels_pc_type")) {
    s.kind = "jacobi";
  }
  ASTERISM_REQUIRE(!s.l1, option, "gmg: a level has no entries: -mg_levels_pc_jacobi_type rowl1 has no rows to sum.");
  ASTERISM_REQUIRE(o.omega == 0 || s.method != "chebyshev", option,
                   "gmg: -pc_gmg_omega has no effect with -mg_levels_ksp_type chebyshev. Leave out one of the two.");
  return std::make_shared<GeometricMultigrid>(nest, A, o);
}

}  // namespace

PreconditionerEntry geometric_multigrid_entry() {
  return {[](Nest const& nest, Matrix const& A) { return make(nest, std::make_shared<Matrix>(A)); }, &table(),
          "geometric multigrid, for stencils and other operators that know a coarser one", false, make};
}

}  // namespace asterism::precond
