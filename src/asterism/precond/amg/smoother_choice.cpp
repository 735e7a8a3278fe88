#include "asterism/precond/amg/smoother_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "asterism/la/largest_eigenvalue.hpp"

namespace asterism::precond::amg {
namespace {

constexpr int trial_steps = 6, factor_steps = 8;
constexpr double small = 2e6;  // entries of a level whose trial costs little
/// The largest x p(x)^2 / (1 - p(x)^2) on [0, 1] of some degrees: what an error in the norm of A is bounded by, times a number that the
/// degree does not change. Lottes (2023), table 1.
constexpr std::pair<std::int64_t, double> bounds[] = {{2, 0.10557}, {3, 0.05210}, {4, 0.03109}, {6, 0.01474}};

/// A cycle as an operator.
class OfCycle final : public Operator {
 public:
  OfCycle(Cycle const& cycle, Operator const& A) : cycle_(cycle), A_(A) {}
  Space const& range() const override { return A_.range(); }
  Space const& domain() const override { return A_.domain(); }
  Dtype dtype() const override { return A_.dtype(); }
  void apply(Vector const& x, Vector& y) const override {
    auto const dtype = cycle_.levels()[0].A->dtype();
    if (dtype == x.dtype()) return cycle_.apply(x, y);
    Vector from(x.space(), dtype), to = from.like();
    copy(x, from);
    cycle_.apply(from, to);
    copy(to, y);
  }
  std::string describe() const override { return "cycle"; }

 private:
  Cycle const& cycle_;
  Operator const& A_;
};

}  // namespace

double DegreeChoice::cost() const {
  double out = std::numeric_limits<double>::infinity();
  for (auto const& e : estimates)
    if (e.degree == degree) out = e.cost;
  return out;
}

DegreeChoice choose_degree(std::vector<GridLevel>& levels, std::vector<double> const& entries, CycleType type, Matrix const* exact) {
  DegreeChoice out;
  auto const smoothed = [&](std::size_t l) { return l < levels.size() && !levels[l].solver; };
  out.level = !exact && entries[0] > small && smoothed(1) ? 1 : 0;
  constexpr std::int64_t middle = 3;
  auto const set = [&](std::int64_t degree) {
    out.degree = degree;
    for (std::size_t l = 0; smoothed(l); ++l) levels[l].smoother = levels[l].smoother->with({degree, degree});
  };
  set(middle);
  std::vector<GridLevel> const from(levels.begin() + std::ptrdiff_t(out.level), levels.end());
  auto const& A = exact ? static_cast<Operator const&>(*exact) : *from[0].A;
  Cycle const cycle(from, type == CycleType::k ? CycleType::w : type, true);
  auto const found = la::extreme_eigenvalues(A, OfCycle(cycle, A), Vector(A.range(), A.dtype()), trial_steps);
  if (!found.definite || !(found.least > 0)) return out;
  out.condition = found.most / found.least;
  // the vectors of cg, in passes
  auto const others = 1 + 16 * double(levels[0].A->range().global_size()) / std::max(entries[0], 1.0);
  for (auto const& [degree, bound] : bounds) {
    auto const root = std::sqrt(1 + std::max(out.condition - 1, 1e-3) * bound / bounds[middle - bounds[0].first].second);
    auto const iterations = std::log(2e8) / std::log((root + 1) / (root - 1));
    // 2 k - 1 products and a residual on each level, whose visits double in all but V cycles
    double passes = others, visits = 1;
    for (std::size_t l = 0; smoothed(l); ++l) {
      passes += visits * double(2 * degree) * entries[l] / std::max(entries[0], 1.0);
      if (type != CycleType::v) visits *= 2;
    }
    out.estimates.push_back({degree, iterations, passes * iterations});
  }
  set(std::min_element(out.estimates.begin(), out.estimates.end(), [](auto const& a, auto const& b) { return a.cost < b.cost; })->degree);
  return out;
}

double convergence_factor(std::vector<GridLevel> const& levels, std::size_t first, CycleType type, bool hermitian) {
  Cycle const cycle(std::vector<GridLevel>(levels.begin() + std::ptrdiff_t(first), levels.end()), type, hermitian);
  auto const& A = *levels[first].A;
  Vector e(A.range(), A.dtype());
  fill_hashed(e, 11);
  auto r = e.like(), z = e.like();
  A.apply(e, r);
  double factor = 0, before = norm(r).real();
  for (int k = 0; k < factor_steps && before > 0; ++k) {
    cycle.apply(r, z);
    axpy(-1.0, z, e);
    A.apply(e, r);
    auto const now = norm(r).real();
    factor = now / before;
    before = now;
  }
  return factor;
}

double smoothing_factor(GridLevel const& level) {
  auto const& A = *level.A;
  Vector x(A.range(), A.dtype()), b(A.range(), A.dtype());
  fill_hashed(x, 11);
  fill(b, 0.0);
  Smoother::Work w{b.like(), b.like(), level.smoother->needs_d() ? b.like() : Vector(), {}};
  auto y = b.like(), r = b.like();
  Vector *now = &x, *other = &y;
  auto const residual = [&] {
    A.apply(*now, r);
    return norm(r).real();
  };
  auto const before = residual();
  for (auto const side : {Side::before, Side::after}) level.smoother->run(A, b, now, other, w, side, false);
  return before > 0 ? std::sqrt(residual() / before) : 0;
}

}  // namespace asterism::precond::amg
