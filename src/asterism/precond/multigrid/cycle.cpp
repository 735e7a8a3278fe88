#include "asterism/precond/multigrid/cycle.hpp"

#include "asterism/la/adjoint.hpp"

namespace asterism::precond {

Cycle Cycle::adjoint() const {
  auto levels = levels_;
  for (auto& l : levels) {
    l.A = std::make_shared<la::Adjoint>(l.A);
    if (l.solver) l.solver = std::make_shared<la::Adjoint>(l.solver);
    if (l.smoother.kind == SmootherKind::chebyshev) {
      l.smoother.polynomial = l.smoother.polynomial.adjoint();
    } else if (!l.solver) {
      auto conjugated = l.smoother.weights.like();
      conjugate(l.smoother.weights, conjugated);
      l.smoother.weights = conjugated;
    }
  }
  return {std::move(levels), visits_};
}

std::vector<Cycle::Work> Cycle::new_work(Vector const& like) const {
  std::vector<Work> levels(levels_.size());
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    auto const make = [&] { return Vector(levels_[l].A->range(), levels_[l].A->dtype(), like.columns(), like.queue()); };
    auto& level = levels[l];
    if (l > 0) level.b = make(), level.x = make();
    if (l + 1 < levels_.size() || levels_.size() == 1) level.t = make(), level.r = make();
    if (levels_[l].smoother.kind == SmootherKind::chebyshev) level.d = make();
  }
  return levels;
}

void Cycle::apply(Vector const& b, Vector& x) const {
  auto const work = work_.lease(b, [&] { return new_work(b); });
  run(0, *work, b, x);
}

void Cycle::run(std::size_t l, std::vector<Work>& work, Vector const& b, Vector& x) const {
  auto const& level = levels_[l];
  if (level.solver) {
    level.solver->apply(b, x);
    return;
  }
  auto& w = work[l];
  auto const& s = level.smoother;
  bool const polynomial = s.kind == SmootherKind::chebyshev;

  // before: from x = 0
  Vector *now = &w.t, *other = &x;
  if (polynomial) {
    now = &x;
    chebyshev(*level.A, s.polynomial, b, x, w.r, w.d, true);
  } else {
    multiply(s.weights, b, *now);
    for (std::int64_t k = 1; k < s.steps; ++k) {
      level.A->smooth(b, *now, s.weights, *other);
      std::swap(now, other);
    }
  }
  if (l + 1 < levels_.size()) {
    auto& coarse = work[l + 1];
    level.A->residual(b, *now, w.r);
    level.R->apply(w.r, coarse.b);
    run(l + 1, work, coarse.b, coarse.x);
    for (int visit = 1; visit < visits_ && !levels_[l + 1].solver; ++visit) {
      // once more on what is left of the coarse equation
      auto rest = coarse.b.like(), more = coarse.b.like();
      levels_[l + 1].A->residual(coarse.b, coarse.x, rest);
      run(l + 1, work, rest, more);
      axpy(1.0, more, coarse.x);
    }
    level.P->apply_add(coarse.x, *now);
  }
  // after
  if (polynomial) {
    chebyshev(*level.A, s.polynomial, b, x, w.r, w.d, false);
    return;
  }
  for (std::int64_t k = 0; k < s.steps; ++k) {
    level.A->smooth(b, *now, s.weights, *other);
    std::swap(now, other);
  }
  if (now != &x) copy(*now, x);
}

}  // namespace asterism::precond
