#include "asterism/precond/multigrid/cycle.hpp"

#include <algorithm>
#include <optional>

#include "asterism/base/profile.hpp"
#include "asterism/la/adjoint.hpp"

namespace asterism::precond {

CycleType cycle_type(std::string_view name) {
  return name == "w"      ? CycleType::w
         : name == "f"    ? CycleType::f
         : name == "k"    ? CycleType::k
         : name == "full" ? CycleType::full
                          : CycleType::v;
}

Cycle Cycle::adjoint() const {
  ASTERISM_REQUIRE(!varies(), unsupported, "a K cycle has no adjoint: it is another operator for each vector. Use the cycle type w.");
  ASTERISM_REQUIRE(type_ != CycleType::full, unsupported, "full multigrid has no adjoint. Use -pc_gmg_cycle_type v.");
  Cycle out(levels_, type_, hermitian_);
  out.v_before_f_ = !v_before_f_;
  for (auto& l : out.levels_) {
    if (!hermitian_) l.A = std::make_shared<la::Adjoint>(l.A);
    if (!l.paired) {
      auto const P = l.P;
      l.P = std::make_shared<la::Adjoint>(l.R);
      l.R = std::make_shared<la::Adjoint>(P);
    }
    if (l.solver) l.solver = std::make_shared<la::Adjoint>(l.solver);
    else l.smoother = l.smoother->adjoint();
  }
  return out;
}

bool Cycle::symmetric() const {
  // with one level between there is nothing that an F cycle visits twice
  bool const alike = type_ == CycleType::v || type_ == CycleType::w || (type_ == CycleType::full ? levels_.size() : levels_between()) <= 1;
  return alike && !varies() &&
         std::all_of(levels_.begin(), levels_.end(), [](auto const& l) { return l.solver || (l.paired && l.smoother->symmetric()); });
}

std::vector<Cycle::Work> Cycle::new_work(Vector const& like) const {
  std::vector<Work> levels(levels_.size());
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    auto const make = [&] { return Vector(levels_[l].A->range(), levels_[l].A->dtype(), like.columns(), like.queue()); };
    auto& level = levels[l];
    if (l > 0) level.b = make(), level.x = make();
    if (levels_[l].solver) continue;
    level.s.t = make(), level.s.r = make();
    if (levels_[l].smoother->needs_d()) level.s.d = make();
    if (l == 0 || type_ == CycleType::v || type_ == CycleType::full) continue;
    level.rest = make(), level.more = make();
    if (type_ == CycleType::k) level.Ax = make(), level.Amore = make();
  }
  return levels;
}

void Cycle::time_levels() {
  constexpr std::array names{"MGSmooth", "MGSmoothResid", "MGResid", "MGRestrict", "MGInterp", "MGSolve"};
  events_.clear();
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    auto& events = events_.emplace_back();
    for (std::size_t part = 0; part < events.size(); ++part) events[part] = profile::event(format("{} Level {}", names[part], l));
  }
}

template <class F>
void Cycle::timed(std::size_t l, Part part, F const& what) const {
  std::optional<profile::Scope> scope;
  if (!events_.empty()) scope.emplace(events_[l][part]);
  what();
}

void Cycle::apply(Vector const& b, Vector& x) const {
  auto const work = work_.lease(b, [&] { return new_work(b); });
  if (type_ == CycleType::full) run_full(*work, b, x);
  else run(0, type_, *work, b, x);
}

Scalar Cycle::apply_and_dot(Vector const& b, Vector& x) const {
  if (type_ == CycleType::full || levels_[0].solver) {
    apply(b, x);
    return dot(b, x);
  }
  auto const work = work_.lease(b, [&] { return new_work(b); });
  Scalar sum;
  run(0, type_, *work, b, x, true, nullptr, &sum);
  return sum;
}

void Cycle::improve(Vector const& b, Vector& x, Vector& r, bool fresh) const {
  auto const work = work_.lease(b, [&] { return new_work(b); });
  if (type_ == CycleType::full) run_full(*work, b, x, &r);
  else run(0, type_, *work, b, x, fresh, &r);
}

void Cycle::run_full(std::vector<Work>& work, Vector const& b, Vector& x, Vector* r) const {
  auto const right = [&](std::size_t l) -> Vector const& { return l == 0 ? b : work[l].b; };
  auto const last = levels_.size() - 1;
  for (std::size_t l = 0; l < last; ++l) timed(l, restriction, [&] { levels_[l].R->apply(right(l), work[l + 1].b); });
  run(last, CycleType::v, work, right(last), last == 0 ? x : work[last].x, true, last == 0 ? r : nullptr);
  for (std::size_t l = last; l-- > 0;) {
    auto const& level = levels_[l];
    auto& start = l == 0 ? x : work[l].x;
    timed(l, interpolation, [&] { (level.first ? level.first : level.P)->apply(work[l + 1].x, start); });
    run(l, CycleType::v, work, right(l), start, false, l == 0 ? r : nullptr);
  }
}

/// From x = 0 if `fresh`. r: of the smoother's level, and then the residual after the cycle. dot: b^H x then.
void Cycle::run(std::size_t l, CycleType type, std::vector<Work>& work, Vector const& b, Vector& x, bool fresh, Vector* r,
                Scalar* dot) const {
  auto const& level = levels_[l];
  if (level.solver) return timed(l, solving, [&] { level.solver->apply(b, x); });
  auto& w = work[l];
  auto const& smoother = *level.smoother;
  Vector *now = &x, *other = &w.s.t;
  if (fresh && smoother.swaps(r != nullptr, x.queue().memory() == device::Memory::gpu)) std::swap(now, other);  // so that it ends in x
  w.s.of_b = {};
  bool const last = l + 1 == levels_.size();
  if (!last && smoother.gives_residual()) {
    timed(l, both, [&] { smoother.run_and_residual(*level.A, b, now, other, w.s, Side::before, fresh); });
  } else {
    timed(l, smoothing, [&] { smoother.run(*level.A, b, now, other, w.s, Side::before, fresh); });
    if (!last) timed(l, residuals, [&] { level.A->residual(b, *now, w.s.r); });
  }
  if (!last) {
    auto& coarse = work[l + 1];
    timed(l, restriction, [&] { level.R->apply(w.s.r, coarse.b); });
    correct(l + 1, type, work);
    timed(l, interpolation, [&] { level.P->apply_add(coarse.x, *now); });
  }
  if (r) {
    timed(l, both, [&] { smoother.run_and_residual(*level.A, b, now, other, w.s, Side::after, false); });
    std::swap(w.s.r, *r);
  } else if (dot) {
    timed(l, smoothing, [&] { *dot = smoother.run_and_dot(*level.A, b, now, other, w.s); });
  } else {
    timed(l, smoothing, [&] { smoother.run(*level.A, b, now, other, w.s, Side::after, false); });
  }
  if (now != &x) copy(*now, x);
}

/// The equation of level l, approximately.
void Cycle::correct(std::size_t l, CycleType type, std::vector<Work>& work) const {
  auto& w = work[l];
  if (levels_[l].solver || type == CycleType::v) return run(l, type, work, w.b, w.x);
  if (type == CycleType::k) return two_krylov_steps(l, work);
  auto const first = type == CycleType::f && v_before_f_ ? CycleType::v : type;
  auto const second = type == CycleType::f && !v_before_f_ ? CycleType::v : type;
  run(l, first, work, w.b, w.x);
  levels_[l].A->residual(w.b, w.x, w.rest);
  run(l, second, work, w.rest, w.more);
  axpy(1.0, w.more, w.x);
}

/// From x = 0; the second direction is made orthogonal to the first. Two messages.
void Cycle::two_krylov_steps(std::size_t l, std::vector<Work>& work) const {
  auto& w = work[l];
  auto const& A = *levels_[l].A;
  auto const& queue = w.x.queue();
  auto const divided = [](Scalar const& a, Scalar const& b) { return select(equal(abs(b), 0.0), 0.0, a / b); };
  // cg: orthogonal in A; gcr: A times them are
  run(l, CycleType::k, work, w.b, w.x);
  A.apply(w.x, w.Ax);
  auto const& left = hermitian_ ? w.x : w.Ax;
  std::pair<Vector const*, Vector const*> const first[] = {{&left, &w.Ax}, {&left, &w.b}};
  auto const d1 = dots(first);
  auto const rho = d1[0].stored(queue);
  auto const step = divided(d1[1], rho).stored(queue);
  copy(w.b, w.rest);
  axpy(-step, w.Ax, w.rest);
  run(l, CycleType::k, work, w.rest, w.more);
  A.apply(w.more, w.Amore);
  auto const &of_first = hermitian_ ? w.more : w.Amore, &left2 = of_first;
  std::pair<Vector const*, Vector const*> const second[] = {{&w.Ax, &of_first}, {&left2, &w.Amore}, {&left2, &w.rest}};
  auto const d2 = dots(second);
  auto const gamma = d2[0].stored(queue);
  // what is left of the second direction; no more than rounding where it is the first one again
  double const rounding = real_of(w.x.dtype()) == Dtype::float32 ? 1e-5 : 1e-12;
  auto const left_of_it = d2[1] - divided(gamma * conj(gamma), rho);
  auto const usable = less(rounding * abs(d2[1]), abs(left_of_it));
  auto const more = select(usable, d2[2] / left_of_it, 0.0).stored(queue);
  axpby(more, w.more, step - divided(gamma * more, rho), w.x);
}

}  // namespace asterism::precond
