// Answers of direct methods: refined, judged by their backward error; and what is known of the factors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/la/adjoint.hpp"
#include "asterism/solve/inner_solver.hpp"
#include "asterism/solve/solver.hpp"

namespace asterism::solve {

using krylov::Monitor;
using krylov::Reason;

bool Solver::applies_once() const { return method_name_ == "preonly"; }
bool Solver::solves_directly() const { return applies_once() && preconditioner_->direct() && A_->matrix() && P_is_A(); }

bool Solver::solves_by_lu() const { return preconditioner_type_ == "lu" && solves_directly(); }

/// By the factors; where that gets nowhere, as with factors of a lower precision, by gmres preconditioned with them (Carson and Higham
/// 2017, 2018).
void Solver::refine(Operator const& A, Operator const& M, bool adjoint, Vector const& b, Vector& x, SolveInfo& info) const {
  if (!magnitudes_) magnitudes_ = magnitudes_of(*A_->matrix());
  Refinement const refinement(A, *magnitudes_, adjoint);
  auto done = refinement.refine(M, b, x, 10);
  auto const worst = [&] {
    return done.backward_error.empty() ? 0 : *std::max_element(done.backward_error.begin(), done.backward_error.end());
  };
  std::string how = done.steps > 0 ? format("{} step(s) of refinement", done.steps) : "no refinement";
  if (!(worst() <= magnitudes_->rounding_level)) {
    std::vector<EffectiveOption> not_again;
    auto const gmres = krylov::methods().at("gmres").make(Configuration{&options_, prefix_, &not_again});
    auto const inner = std::make_shared<InnerSolver>(A_, preconditioner_, gmres, krylov::StopRule{.rtol = 1e-4, .max_it = 50});
    OperatorPtr by = adjoint ? OperatorPtr(std::make_shared<la::Adjoint>(inner)) : inner;
    if (!null_space_.empty() && !adjoint) by = std::make_shared<WithoutNullSpace>(by, null_space_, inspection_.hermitian);
    done = refinement.refine(*by, b, x, 10);
    how += format(" and {} by gmres", done.steps);
  }
  if (!(worst() <= magnitudes_->rounding_level) && P_is_A() && preconditioner_->pivot_more(*A_->matrix())) {
    for (auto const& note : preconditioner_->notes()) info.notes.push_back(note);
    la::fill(x, 0.0);  // rounding of a large wrong x would stay
    done = refinement.refine(M, b, x, 10);
    how += format(", and {} with other factors", done.steps);
  }
  info.backward_error = done.backward_error;
  info.notes.push_back(format("componentwise backward error {} after {}", worst(), how));
}

/// What factors cannot tell whose small pivots a null space explains: whether it explains all of them. Two solves.
void Solver::look_beside_null_space() {
  if (null_space_.empty() || !inspection_.hermitian || !solves_directly()) return;
  Vector x(A_->range(), A_->dtype()), y = x.like();
  WithoutNullSpace const inverse(preconditioner_, null_space_, true);
  fill_hashed(x, 3);
  null_space_.remove_from(x);
  double size = 0;
  for (int step = 0; step < 2; ++step) {
    double const before = norm(x).real();
    if (!(before > 0)) return;
    scale(1 / before, x);
    inverse.apply(x, y);
    size = norm(y).real();
    std::swap(x, y);
  }
  double const condition = size * A_->matrix()->largest_entry();
  auto const replaced = A_->range().comm().max(preconditioner()->factors()->replaced_pivots());
  if (replaced > std::int64_t(null_space_.dimension()))
    notes_.push_back(
        format("{} pivots were at rounding level, more than the {} null vector(s) known explain. x is one of many solutions. "
               "Give all of the null space (null_space=)",
               replaced, null_space_.dimension()));
  else if (!(condition <= 0.1 / epsilon_of(A_->dtype())))
    notes_.push_back(
        format("the matrix has another null vector, or nearly one, beside the {} known: the condition number without those is {} or "
               "more. x is one of many solutions. Give all of its null space (null_space=)",
               null_space_.dimension(), condition));
}

/// What a direct method cannot improve has converged, whatever the residual is beside b.
void Solver::conclude_directly(Monitor& monitor, std::vector<double> const& norms, SolveInfo const& info) const {
  if (krylov::interrupted(monitor.reason())) return;
  std::vector<Reason> reasons;
  std::string why;
  std::optional<double> condition;  // asked for where an answer is doubtful
  auto const singular = [&](double left) {
    if (left <= 1e-3) return false;
    if (!condition) {
      auto const* const factors = preconditioner_->factors();
      double known = factors ? factors->facts().condition : 1;
      A_->range().comm().bcast(&known, sizeof known, 0);
      condition = known;
    }
    return !(*condition < 0.1 / epsilon_of(A_->dtype()));
  };
  for (std::size_t j = 0; j < norms.size(); ++j) {
    double const error = info.backward_error[j];
    auto const& target = monitor.targets()[j];
    if (!std::isfinite(norms[j])) {
      reasons.push_back(Reason::diverged_nanorinf);
      why = "the answer has entries that are NaN or infinite";
    } else if (error <= magnitudes_->rounding_level && norms[j] <= target.tolerance) {
      reasons.push_back(Reason::converged_rtol);
    } else if (singular(norms[j] / target.norm_b)) {
      reasons.push_back(Reason::diverged_stagnated);
      why = format(
          "the matrix is singular to working precision: its condition number is about {}, and the residual stays at {} of the right-hand "
          "side. Look for an equation that repeats others; am.least_squares takes singular matrices",
          *condition, norms[j] / target.norm_b);
    } else if (error <= magnitudes_->rounding_level) {
      reasons.push_back(Reason::converged_rounding);
    } else if (!attempts_.empty() && wanted_method_ == "auto" && norms[j] <= target.tolerance) {
      reasons.push_back(Reason::converged_rtol);  // no direct solve was asked for, but a tolerance
    } else {
      reasons.push_back(Reason::diverged_stagnated);
      why = format(
          "the componentwise backward error stays at {}, above the {} that rounding makes, after refinement: the factors have "
          "too few correct digits",
          error, magnitudes_->rounding_level);
    }
  }
  monitor.conclude(reasons, norms, why);
}

std::optional<precond::FactorFacts> Solver::factor_facts() const {
  auto const* const factors = preconditioner()->factors();
  if (!factors) return std::nullopt;
  std::optional facts(factors->facts());
  auto const& comm = given_A_->range().comm();
  facts->kind = comm.bcast(facts->kind, 0), facts->ordering = comm.bcast(facts->ordering, 0);
  facts->by = comm.bcast(facts->by, 0);
  auto const n = double(given_A_->range().global_size());
  facts->zero = std::max({facts->zero, facts->replaced, std::int64_t(null_space_.dimension())});
  if (facts->zero > 0) facts->determinant = {0, 0, -std::numeric_limits<double>::infinity()};
  if (facts->kind != "lu") facts->negative -= factors->negative_among_least(facts->zero - facts->replaced);
  if (scale_.negated && std::fmod(n, 2) != 0) facts->determinant[0] *= -1, facts->determinant[1] *= -1;
  if (scale_.negated && facts->kind != "lu") facts->negative = std::int64_t(n) - facts->zero - facts->negative;
  facts->determinant[2] -= n * double(scale_.exponent) * std::log(2.0);
  for (auto* const whole :
       {&facts->entries, &facts->bytes, &facts->delayed, &facts->replaced, &facts->two_by_two, &facts->negative, &facts->zero})
    comm.bcast(whole, sizeof *whole, 0);
  std::int64_t said[] = {facts->dense, facts->matched};
  comm.bcast(said, sizeof said, 0);
  facts->dense = said[0] != 0, facts->matched = said[1] != 0;
  for (auto* const real : {&facts->growth, &facts->condition}) comm.bcast(real, sizeof *real, 0);
  comm.bcast(facts->determinant.data(), sizeof facts->determinant, 0);
  return facts;
}

direct::ExplicitFactors Solver::explicit_factors() const {
  auto const* const factors = preconditioner()->factors();
  auto const found = factors ? factors->explicit_factors() : nullptr;
  ASTERISM_REQUIRE_ALIKE(found != nullptr, unsupported,
                         "{} has no sparse factors. Use -pc_type lu -pc_lu_type sparse, or -pc_type cholesky.", preconditioner_name());
  auto out = std::move(*found);
  for (auto& r : out.row_scale) r = std::ldexp(scale_.negated ? -r : r, scale_.exponent);
  return out;
}

}  // namespace asterism::solve
