// Geometric multigrid: for operators that know a coarser one, and the way there and back (la::Operator::coarse). No matrix is needed but
// that of the coarsest level, which is found by products.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "asterism/base/lazy.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/la/largest_eigenvalue.hpp"
#include "asterism/precond/amg/level_smoother.hpp"
#include "asterism/precond/direct/dense_inverse.hpp"
#include "asterism/precond/multigrid/cycle.hpp"

namespace asterism::precond {
namespace {

OptionTable const& table() {
  static OptionTable const t = [] {
    OptionTable all = {
        choice_option("pc_gmg_cycle_type", "v", {"v", "w", "f", "k"},
                      "cycle; f is not symmetric, and k another one for each vector: for -ksp_type fgmres and gcr"),
        integer_option("pc_gmg_max_levels", 30, "most levels", 1, 100),
        integer_option("pc_gmg_coarse_size", 600, "a level with at most this many points is solved directly", 1, 20000),
    };
    all.insert(all.end(), amg::smoother_table().begin(), amg::smoother_table().end());
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

/// Found by products with unit vectors, some at a time; ones where entries stand for nothing. Collective.
Matrix matrix_of(Operator const& A) {
  constexpr std::int64_t at_once = 32;
  auto const& space = A.range();
  std::int64_t const n = space.global_size(), begin = space.begin(), mine = space.local_size();
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
    for (std::int64_t first = 0; first < n; first += at_once) {
      auto const k = std::min(at_once, n - first);
      Vector x(A.domain(), A.dtype(), k), y(space, A.dtype(), k);
      fill(x, 0.0);
      for (std::int64_t j = 0; j < k; ++j)
        if (auto const i = first + j - begin; i >= 0 && i < mine && !is_padding[std::size_t(i)]) x.host<T>()[std::size_t(i * k + j)] = T(1);
      A.apply(x, y);
      auto const products = y.host<T>();
      for (std::int64_t i = 0; i < mine; ++i)
        for (std::int64_t j = 0; j < k; ++j)
          if (auto const v = products[std::size_t(i * k + j)]; v != T(0))
            rows.push_back(begin + i), columns.push_back(first + j), values.push_back(v);
    }
    out = Matrix::from_coo<std::int64_t>(space, space, A.dtype(), rows, columns, values.data());
  });
  return out;
}

/// The largest eigenvalue of D^-1 A, or a bound of it.
double reach_of(OperatorPtr const& A) {
  if (auto const bound = A->eigenvalue_bound()) return *bound;
  return 1.1 * la::largest_eigenvalue(*A, *jacobi(*A), Vector(A->range(), A->dtype()));
}

struct Choices {
  CycleType cycle;
  std::int64_t max_levels, coarse_size;
  amg::SmootherOptions smoother;
};

/// directions: that the next level is coarser in.
SmootherPtr smoother_of(Choices const& o, OperatorPtr const& A, double directions) {
  auto w = A->diagonal();
  invert_entries(w, "gmg");
  double const reach = reach_of(A);
  if (o.smoother.method == "chebyshev") {
    // of the first kind: what coarse points do not see of a Laplacian has eigenvalues from 1 / d to 2
    double const least = reach / std::atof(std::getenv("RATIO"));
    return chebyshev_smoother({std::move(w), least, reach * std::atof(std::getenv("TOP")), 0, o.smoother.chebyshev}, o.smoother.steps, "jacobi");
  }
  scale(4.0 / 3 / reach, w);
  return weighted_steps(std::move(w), o.smoother.steps, "jacobi");
}

class GeometricMultigrid final : public Preconditioner {
 public:
  GeometricMultigrid(OperatorPtr const& A, Choices const& options, bool hermitian) : Preconditioner(*A) {
    static int const event = profile::event("PCSetUpGMG");
    profile::Scope const scope(event);
    std::vector<GridLevel> levels;
    for (auto now = A; now;) {
      GridLevel level;
      level.A = now;
      points_.push_back(points_of(now->range()));
      bool const small = points_.back() <= options.coarse_size, last = std::int64_t(levels.size()) + 1 == options.max_levels;
      auto next = small || last ? std::nullopt : now->coarse();
      if (small) {
        auto const inverse = std::make_shared<DenseInverse>(matrix_of(*now), now->dtype(), false, points_.front());
        memory_ += inverse->memory_bytes();
        last_ = inverse->storage();
        level.solver = inverse;
      } else {
        if (!next && !last) refuse(*now, levels.empty(), options.coarse_size);
        double const times = next ? double(points_.back()) / double(std::max<std::int64_t>(1, points_of(next->A->range()))) : 8;
        level.smoother = smoother_of(options, now, std::round(std::log2(std::max(1.0, times))));
        memory_ += level.smoother->memory_bytes();
        if (levels.empty()) smoother_ = level.smoother->describe();
        last_ = "its smoother alone";
      }
      now = nullptr;
      if (next) level.P = next->P, level.R = next->R, now = next->A;
      levels.push_back(std::move(level));
    }
    cycle_ = Cycle(std::move(levels), options.cycle, hermitian);
    name_ = options.cycle == CycleType::v ? "V" : options.cycle == CycleType::w ? "W" : options.cycle == CycleType::f ? "F" : "K";
  }
  void apply(Vector const& x, Vector& y) const override {
    static int const event = profile::event("PCApplyGMG");
    profile::Scope const scope(event);
    cycle_.apply(x, y);
  }
  std::string describe() const override { return format("gmg ({} levels)", points_.size()); }
  std::string report() const override {
    std::string out = format("{}, {} cycle, {}", describe(), name_, name_of(dtype_));
    if (!smoother_.empty()) out += ", " + smoother_;
    for (std::size_t l = 0; l < points_.size(); ++l)
      out += format("\n  level {}: {} points, {}", l, points_[l], l + 1 < points_.size() ? cycle_.levels()[l].A->describe() : last_);
    return out;
  }
  bool symmetric() const override { return cycle_.symmetric(); }
  bool varies() const override { return cycle_.varies(); }
  std::size_t memory_bytes() const override { return memory_; }
  bool update(Matrix const&) override { return false; }

 protected:
  void apply_adjoint(Vector const& x, Vector& y) const override {
    if (self_adjoint_) return apply(x, y);
    adjoint_.made_by([&] { return std::make_shared<Cycle const>(cycle_.adjoint()); })->apply(x, y);
  }

 private:
  [[noreturn]] static void refuse(Operator const& A, bool finest, std::int64_t coarse_size) {
    if (finest)
      fail(ErrorKind::option,
           "gmg: {} knows no coarser operator. Stencils of am.stencil.operator and Grid.star_operator do where each axis has 2 m + 1 "
           "points, "
           "or 2 m if it is periodic or points=\"cells\". Use -pc_type chebyshev.",
           A.describe());
    fail(ErrorKind::option,
         "gmg: the level of {} cannot be made coarser, and it has more than {} points. Take 2^k m - 1 points along an axis (2^k m if it is "
         "periodic, or of cells), or raise -pc_gmg_coarse_size.",
         A.describe(), coarse_size);
  }
  Cycle cycle_;
  mutable Lazy<std::shared_ptr<Cycle const>> adjoint_;  // made when asked for
  std::vector<std::int64_t> points_;                    // of each level
  std::string name_, smoother_, last_;
  std::size_t memory_ = 0;
};

PreconditionerPtr make(Nest const& nest, OperatorPtr const& A) {
  auto r = nest.config.reader(table());
  Choices o{cycle_type(r.text("pc_gmg_cycle_type")), r.integer("pc_gmg_max_levels"), r.integer("pc_gmg_coarse_size"),
            amg::smoother_options(nest, r)};
  if (o.smoother.is_open()) {
    o.smoother = o.smoother.chosen(false);
    o.smoother.steps = {2, 2};
  } else if (o.smoother.kind == "spai0" && !r.given("mg_levels_pc_type")) {
    o.smoother.kind = "jacobi";
  }
  if (!r.given("mg_levels_ksp_chebyshev_kind")) o.smoother.chebyshev = ChebyshevKind::first;
  ASTERISM_REQUIRE(o.smoother.kind == "jacobi" && !o.smoother.l1, option,
                   "gmg: a level has no entries, so its smoother multiplies with the diagonal: -mg_levels_pc_type jacobi, not {}{}.",
                   o.smoother.kind, o.smoother.l1 ? " with sums of rows" : "");
  return std::make_shared<GeometricMultigrid>(A, o, nest.hermitian);
}

}  // namespace

PreconditionerEntry geometric_multigrid_entry() {
  return {[](Nest const& nest, Matrix const& A) { return make(nest, std::make_shared<Matrix>(A)); }, &table(),
          "geometric multigrid, for stencils and other operators that know a coarser one", false, make};
}

}  // namespace asterism::precond
