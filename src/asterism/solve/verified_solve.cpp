// A solve: its columns, the method, and the verification of what it says.
#include <algorithm>
#include <cmath>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/comm/gpu/messenger.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/la/adjoint.hpp"
#include "asterism/solve/solver.hpp"

namespace asterism::solve {
namespace {

using krylov::Monitor;
using krylov::Reason;

/// What ran on the host because it has no form for a GPU, since `before`.
std::string told_without_form(std::vector<device::gpu::WithoutForm> const& before) {
  std::string out;
  for (auto const& now : device::gpu::without_form()) {
    auto count = now.count;
    for (auto const& b : before)
      if (b.event == now.event) count -= b.count;
    if (count > 0) out += format("{}{} ({} times)", out.empty() ? "" : ", ", now.event, count);
  }
  return out;
}

std::int64_t host_waits(device::Queue const& queue) {
  std::int64_t n = 0;
  for (auto const& w : queue.waits()) n += w.count;
  return n;
}

/// Whether an operator knows its adjoint: one that does not refuses every product with it, on all ranks.
bool knows_adjoint(la::Operator const& A, Vector const& b) {
  auto product = b.like();
  try {
    A.apply_transpose(b, product, true);
  } catch (Error const& e) {
    if (e.kind() != ErrorKind::unsupported) throw;
    return false;
  }
  return true;
}

std::vector<double> column_norms(Vector const& v) {
  std::vector<double> out;
  for (auto const& n : norm(v).values()) out.push_back(n.real());
  return out;
}

}  // namespace

SolveInfo Solver::solve(Vector const& b, Vector& x, krylov::Watcher const& watcher, bool needs_iterate, bool zero_guess,
                        OwnRule const& own) {
  return comm::collective(given_A_->range().comm(), "Solver.solve", [&] {
    auto const turn = take_turn("solve");
    return solve_in_turn(b, x, {watcher, needs_iterate, false, zero_guess, own});
  });
}

SolveInfo Solver::solve_transpose(Vector const& b, Vector& x, bool conjugated, krylov::Watcher const& watcher, bool needs_iterate,
                                  OwnRule const& own) {
  return comm::collective(given_A_->range().comm(), "Solver.solve_transpose", [&] {
    comm::Fact const facts[] = {{"conjugate", conjugated ? "true" : "false"}};
    comm::require_same(given_A_->range().comm(), "Solver.solve_transpose", facts);
    auto const turn = take_turn("solve_transpose");
    Watch const watch{watcher, needs_iterate, true, false, own};
    if (conjugated || !is_complex(A_->dtype()) || b.columns() == 0) return solve_in_turn(b, x, watch);
    ASTERISM_REQUIRE(!needs_iterate, unsupported, "solve_transpose: iterates of A^T x = b are not shown; those of A^H x = b are.");
    auto conj_b = b.like(), y = x.like();  // A^H conj(x) = conj(b)
    conjugate(b, conj_b);
    conjugate(x, y);
    auto info = solve_in_turn(conj_b, y, watch);
    conjugate(y, x);
    return info;
  });
}

/// The options' rule, but for what a solve is told instead.
krylov::StopRule Solver::rule_with(OwnRule const& own) const {
  for (auto const& [name, value] : {std::pair("rtol", own.rtol), std::pair("atol", own.atol)})
    ASTERISM_REQUIRE_ALIKE(!value || (*value >= 0 && std::isfinite(*value)), value, "solve: {} is {}; a number of at least 0 is needed.",
                           name, *value);
  ASTERISM_REQUIRE_ALIKE(!own.max_it || *own.max_it >= 0, value, "solve: maxiter is {}; at least 0 is needed.", *own.max_it);
  return {own.rtol.value_or(rule_.rtol), own.atol.value_or(rule_.atol), rule_.divtol, own.max_it.value_or(rule_.max_it)};
}

SolveInfo Solver::solve_in_turn(Vector const& b, Vector& x, Watch const& watch) {
  preconditioner();  // an error if there is none
  la::require_layout(b, A_->range(), A_->dtype(), "solve: b");
  la::require_layout(x, A_->range(), A_->dtype(), "solve: x");
  ASTERISM_REQUIRE(b.columns() == x.columns(), shape, "solve: b has {} columns, x has {}.", b.columns(), x.columns());
  auto const told = [](auto const& given) { return given ? format("{}", *given) : std::string("not given"); };
  comm::Fact const facts[] = {{"the number of columns of b (a complex b of a real matrix has two for each)", std::to_string(b.columns())},
                              {"rtol", told(watch.own.rtol)},
                              {"atol", told(watch.own.atol)},
                              {"maxiter", told(watch.own.max_it)}};
  comm::require_same(b.comm(), "Solver.solve", facts);
  struct Kept {  // for the solves after this one
    krylov::StopRule& now;
    krylov::StopRule const rule;
    ~Kept() { now = rule; }
  } const kept{rule_, rule_};
  rule_ = rule_with(watch.own);
  if (b.columns() == 0) {
    SolveInfo nothing_to_do;
    nothing_to_do.converged = true;
    nothing_to_do.reason = krylov::name_of(Reason::converged_atol);
    nothing_to_do.residual_norms = {{}};
    nothing_to_do.method = method_name(), nothing_to_do.preconditioner = preconditioner_name();
    return nothing_to_do;
  }
  Vector const* const both[] = {&b, &x};
  bool const zero = x.comm().min(std::int64_t(watch.zero_guess)) == 1;
  auto entries = look_at_entries(std::span(both).first(zero ? 1 : 2));
  if (zero) entries.emplace_back().largest.assign(std::size_t(x.columns()), 0);
  auto const &rhs = entries[0], &guess = entries[1];
  ASTERISM_REQUIRE_ALIKE(rhs.not_finite == 0, value, "solve: b has {} entries that are NaN or infinite; the first is in {}.",
                         rhs.not_finite, b.space().entry_name(rhs.first_not_finite));
  ASTERISM_REQUIRE_ALIKE(guess.not_finite == 0, value,
                         "solve: the initial guess has {} entries that are NaN or infinite; the first is in {}.", guess.not_finite,
                         x.space().entry_name(guess.first_not_finite));

  if (!queue_.runs_inline() && b.queue().runs_inline()) {  // the same memory, worked on through the queue
    auto const on_queue = [&](Vector const& v) { return Vector::wrap(v.space(), v.dtype(), v.columns(), v.data(), queue_); };
    auto xq = on_queue(x);
    if (zero && queue_.memory() == device::Memory::gpu) fill(xq, 0.0);  // there: the host's zeros need not be copied
    try {
      auto info = solve_by_columns(on_queue(b), xq, rhs, guess, watch);
      x.data().settle(device::Access::read, "end of solve");
      return info;
    } catch (...) {
      queue_.finish();  // x and b are the caller's, and may end with this error
      throw;
    }
  }
  return solve_by_columns(b, x, rhs, guess, watch);
}

bool Solver::takes_columns_together() const {  // the projection works on one
  return method_->blocks_columns() && null_space_.empty() && !A_->takes_columns_apart();
}

SolveInfo Solver::solve_by_columns(Vector const& b, Vector& x, la::Entries const& of_b, la::Entries const& of_x, Watch const& watch) {
  if (b.columns() == 1 || takes_columns_together()) return solve_at_once(b, x, of_b, of_x, watch);
  SolveInfo all;
  all.converged = true;
  bool stopped = false;
  for (std::int64_t j = 0; j < b.columns(); ++j) {
    auto const bj = column_of(b, j);
    auto xj = column_of(x, j);
    la::Entries of_bj, of_xj;
    of_bj.largest = {of_b.largest[std::size_t(j)]};
    of_xj.largest = {of_x.largest[std::size_t(j)]};
    // after Ctrl-C, or the end of the time, the others are looked at only
    auto one = stopped ? attempt_at_once(bj, xj, of_bj, of_xj, watch, 0).info : solve_at_once(bj, xj, of_bj, of_xj, watch);
    set_column(xj, j, x);
    bool const stops =
        one.reason == krylov::name_of(Reason::diverged_interrupted) || one.reason == krylov::name_of(Reason::diverged_time_limit);
    if ((all.converged && !stopped) || (stops && !stopped)) all.reason = one.reason, all.why = one.why;
    stopped = stopped || stops;
    all.converged = all.converged && one.converged;
    for (std::size_t it = 0; it < one.residual_norms.size(); ++it) {
      if (all.residual_norms.size() <= it) {
        all.residual_norms.push_back(it ? all.residual_norms.back() : std::vector<double>{});
        all.residual_norms.back().resize(std::size_t(j));
      }
      all.residual_norms[it].push_back(one.residual_norms[it][0]);
    }
    for (auto it = one.residual_norms.size(); it < all.residual_norms.size(); ++it)
      all.residual_norms[it].push_back(one.residual_norms.back()[0]);
    all.iterations = std::max(all.iterations, one.iterations);
    all.true_residual.push_back(one.true_residual[0]);
    all.rhs_norm.push_back(one.rhs_norm[0]);
    if (!one.backward_error.empty() || !all.backward_error.empty()) {  // of columns that were not solved directly it is not known
      auto const unknown = std::numeric_limits<double>::quiet_NaN();
      all.backward_error.resize(all.true_residual.size() - 1, unknown);
      all.backward_error.push_back(one.backward_error.empty() ? unknown : one.backward_error[0]);
    }
    all.resumes += one.resumes;
    all.setup_seconds = one.setup_seconds;
    all.solve_seconds += one.solve_seconds;
    all.memory_bytes = one.memory_bytes;
    all.host_waits += one.host_waits;
    all.notes = one.notes, all.method = one.method, all.preconditioner = one.preconditioner;  // which become stronger only
  }
  all.notes.push_back(format("{} columns were solved one after the other", b.columns()));
  return all;
}

/// b without what no x can give; zero, where rounding alone is left.
Vector Solver::projected_rhs(Vector const& b, std::vector<std::string>& notes) const {
  auto out = b.like();
  copy(b, out);
  double const size = norm(out).real();
  double removed = 0;
  for (auto const& parts : null_space_.remove_from(out))
    for (auto const& part : parts.values()) removed = std::hypot(removed, std::abs(part));
  if (removed > 0.5 * size) {
    null_space_.remove_from(out);  // what rounding left beside a large part
    if (norm(out).real() <= 16 * epsilon_of(b.dtype()) * size) fill(out, 0.0);
  }
  if (removed > 1e-8 * size)
    notes.push_back(
        format("b is not in the range of the matrix: its part in the null space, {} of ||b||, was removed; x solves the "
               "nearest consistent system",
               removed / size));
  return out;
}

Solver::Attempted Solver::attempt_at_once(Vector const& b_given, Vector& x_given, la::Entries const& of_b, la::Entries const& of_x,
                                          Watch const& watch, std::int64_t max_it) {
  static int const event = profile::event("KSPSolve");
  profile::Scope const scope(event);
  double const start = profile::now();
  auto const waits_before = host_waits(x_given.queue());
  auto const on_gpu = x_given.queue().memory() == device::Memory::gpu;
  auto const without_form = on_gpu ? device::gpu::without_form() : std::vector<device::gpu::WithoutForm>();
  SolveInfo info;
  info.notes = notes_;
  info.setup_seconds = setup_seconds_;
  info.method = method_name();
  info.preconditioner = preconditioner_name();

  ScaledColumns const scaling(scale_, largest_A_, of_b, of_x, A_->dtype());
  bool const scales = !scaling.nothing_to_do();
  Vector b = scales ? scaling.scaled_b(b_given) : b_given, x = scales ? scaling.scaled_guess(x_given) : x_given;
  for (auto const j : scaling.dropped_guesses())
    info.notes.push_back(format("the initial guess of column {} is so large beside b that it was not used", j));
  // the adjoint system: that of a Hermitian matrix is the system itself. One that is Hermitian to rounding has an adjoint of its own, which
  // lu solves at the same cost. Of an operator without entries two products alone say that it is Hermitian: they miss a skew part of some
  // percent in float32
  bool const by_lu = solves_by_lu() && null_space_.empty() && !A_->matrix()->half();
  bool const by_products = watch.adjoint && !A_->matrix() && real_of(A_->dtype()) == Dtype::float32 && A_is_hermitian() &&
                           null_space_.empty() && knows_adjoint(*A_, b);
  bool const adjoint = watch.adjoint && (!A_is_hermitian() || by_lu || by_products);
  OperatorPtr const system = adjoint ? OperatorPtr(std::make_shared<la::Adjoint>(A_)) : A_;
  OperatorPtr inverse = adjoint && !by_products ? OperatorPtr(std::make_shared<la::Adjoint>(preconditioner_)) : preconditioner_;
  if (!null_space_.empty()) {
    // the range of A^H is orthogonal to the null space of A, whose vectors say nothing of the null space of A^H
    if (inspection_.hermitian || adjoint) b = projected_rhs(b, info.notes);
    if (!adjoint) {
      null_space_.remove_from(x);
      inverse = std::make_shared<WithoutNullSpace>(inverse, null_space_, inspection_.hermitian && solves_directly());
    }
  }
  la::Operator const &A = *system, &M = *inverse;

  std::vector<krylov::Target> targets;
  auto const norms_b = column_norms(b);
  for (std::size_t j = 0; j < norms_b.size(); ++j) {
    double const unit = scaling.unit(j);
    targets.push_back({norms_b[j], std::max(rule_.rtol * norms_b[j], rule_.atol / unit), unit});
    info.rhs_norm.push_back(norms_b[j] * unit);
  }
  if (rule_.atol == 0) {  // of b = 0 only x = 0 satisfies the test
    std::vector<la::Scalar::Value> zero;
    for (auto const n : norms_b) zero.push_back(n == 0 ? 1.0 : 0.0);
    if (std::find(norms_b.begin(), norms_b.end(), 0.0) != norms_b.end()) {
      auto none = x.like();
      fill(none, 0.0);
      copy_where(la::Scalar(std::move(zero)), none, x);
    }
  }
  krylov::Watcher watcher;
  if (watch.watcher)
    watcher = [&](std::int64_t it, std::vector<double> const& norms) {
      if (scales && watch.needs_iterate) scaling.unscale(x, x_given);
      watch.watcher(it, norms);
    };
  auto rule = rule_;
  rule.max_it = max_it;
  Monitor monitor(rule, targets, x, {x.queue(), check_every_, 20, watch.needs_iterate, of_x.all_zero(), graphs_}, watcher);
  monitor.set_stagnation(method_->stagnation(b.global_size()), method_->keeps_iterate());

  // a matrix that is taken for Hermitian is so to rounding beside the largest entries of its rows
  bool const may_differ = watch.adjoint && !adjoint && A_->matrix() && !A_->matrix()->half();
  auto const checked = may_differ ? OperatorPtr(std::make_shared<la::Adjoint>(A_)) : system;
  Vector residual;
  auto const true_norms = [&] {
    if (!residual) residual = b.like();
    checked->residual(b, x, residual);
    auto norms = column_norms(residual);
    if (auto const messenger = comm::sent_by(x.queue(), b.comm())) messenger->check();
    return norms;
  };
  std::vector<double> norms, before, norms_of_last;
  Vector last;  // iterate, which is returned where the best one is not
  if (solves_directly() && max_it > 0) {
    method_->solve(A, M, b, x, monitor);
    bool const of_transpose = may_differ && null_space_.empty();
    if (!krylov::interrupted(monitor.reason())) refine(of_transpose ? *checked : A, M, adjoint || of_transpose, b, x, info);
    norms = true_norms();
    conclude_directly(monitor, norms, info);
  } else do {
      method_->solve(A, M, b, x, monitor);
      norms = method_->ends_with_true_residual() && checked == system ? monitor.last_norms() : std::vector<double>{};
      if (norms.empty()) norms = true_norms();
      bool const finite = std::ranges::all_of(norms, [](double v) { return std::isfinite(v); });
      if ((!keeps_best_ || applies_once()) && finite) {
        if (!last) last = x.like();
        copy(x, last);
        norms_of_last = norms;
      } else {
        norms_of_last.clear();
      }
      if (monitor.restore_best(norms)) norms = true_norms();  // a new start begins there
    } while (!ended(monitor, norms, x, before, info));

  if (!norms_of_last.empty() && !krylov::converged(monitor.reason())) {
    copy(last, x);
    norms = norms_of_last;
  }

  if (scales) {
    scaling.unscale(x, x_given);
    // what the answer has lost where its numbers are at the ends of the dtype's range
    scaling.rescale(x_given, x);
    auto const of_answer = true_norms();
    for (std::size_t j = 0; j < norms.size(); ++j)
      if (krylov::converged(monitor.reason()) && !(of_answer[j] <= std::max(1.5 * norms[j], targets[j].tolerance)))
        monitor.set_all(Reason::diverged_stagnated, format("the solution has entries that {} does not have: too large, or so small that "
                                                           "they have few digits",
                                                           name_of(A_->dtype())));
    norms = of_answer;
  }
  for (std::size_t j = 0; j < norms.size(); ++j) info.true_residual.push_back(norms[j] * targets[j].unit);
  info.converged = krylov::converged(monitor.reason());
  bool const to_rounding = solves_directly() && max_it > 0 &&
                           std::ranges::all_of(info.backward_error, [&](double e) { return e <= magnitudes_->rounding_level; });
  std::string small_rows;
  if (info.converged && !to_rounding && !watch.adjoint && inspection_.row_sizes && !targets.empty()) {
    if (!residual) true_norms();
    small_rows = wrong_small_rows(b, x, residual);
  }
  double worst = 0;  // of the columns, relative to b
  for (std::size_t j = 0; j < norms.size(); ++j) worst = std::max(worst, norms[j] / std::max(targets[j].norm_b, 1e-300));
  if (info.converged && solves_directly() && worst > 1e-3) {
    info.notes.push_back(
        format("||b - A x|| is {} of ||b||, though x solves a system that differs from this one by rounding: the matrix "
               "is nearly singular, and digits of x mean little",
               worst));
    if (b.comm().rank() == 0) log::warning("{}.", info.notes.back());
  }
  info.reason = krylov::name_of(monitor.reason());
  info.why = info.converged ? "" : monitor.why();
  info.iterations = monitor.iterations();
  info.residual_norms = monitor.history();
  if (!info.residual_norms.empty()) info.residual_norms.back() = info.true_residual;
  info.memory_bytes = (P_ ? P_.memory_bytes() + P_.range().memory_bytes() : 0) + preconditioner_->memory_bytes();
  info.host_waits = host_waits(x.queue()) - waits_before;
  if (on_gpu)
    if (auto const told = told_without_form(without_form); !told.empty())
      info.notes.push_back(format("without a form for the GPU, so on the host with data copied: {}", told));
  if (!info.converged) {
    if (auto const hint = advice(monitor.reason(), worst); !hint.empty()) info.why += (info.why.empty() ? "" : ". ") + hint;
    if (auto const count = null_space_.components_not_taken_apart; count > 0)
      info.why += format(
          " {} connected components of the matrix are singular, too many to take apart: am.least_squares solves such systems.", count);
    if (!no_factors_.empty()) info.why = format("{} Then {}", no_factors_, info.why);
  }
  info.solve_seconds = profile::now() - start;
  Attempted out{std::move(info), {}, false, false, std::move(small_rows)};
  auto const reason = monitor.reason();
  for (auto const& t : targets) out.targets.push_back(t.tolerance * t.unit);
  out.interrupted = krylov::interrupted(reason);
  out.out_of_iterations = reason == Reason::diverged_its || reason == Reason::diverged_stagnated;
  return out;
}

/// After a method has ended and its answer was verified: whether that is all. Else the method starts again from x.
bool Solver::ended(Monitor& monitor, std::vector<double> const& norms, Vector const& x, std::vector<double>& before,
                   SolveInfo& info) const {
  auto const k = norms.size();
  auto const& targets = monitor.targets();
  auto const stagnation = method_->stagnation(x.global_size());
  std::vector<Reason> reasons(k);
  std::vector<char> open(k, false);  // what may be improved
  bool any_open = false, progress = before.empty(), believed = false;
  for (std::size_t j = 0; j < k; ++j) {
    auto const r = monitor.reason(std::int64_t(j));
    auto const& t = targets[j];
    bool const by_atol = rule_.atol > 0 && rule_.atol / t.unit >= rule_.rtol * t.norm_b;
    reasons[j] = r;
    if (krylov::interrupted(r)) continue;
    if (norms[j] <= t.tolerance) {
      reasons[j] = by_atol ? Reason::converged_atol : Reason::converged_rtol;
    } else if (!std::isfinite(norms[j])) {
      reasons[j] = Reason::diverged_nanorinf;
    } else if (krylov::converged(r) || r == Reason::start_again) {
      open[j] = any_open = true;
      believed = believed || krylov::converged(r);
      progress = progress || norms[j] < 0.5 * before[j];
    }
  }
  if (!any_open) {
    monitor.conclude(reasons, norms, monitor.why());
    return true;
  }
  bool const stalled = monitor.trouble() == Reason::diverged_stagnated;
  // with another start it may do better, but not if it had reached what it takes for its target
  bool const worth_a_try = stagnation.starts_again && !believed && monitor.vain_starts() < 4;
  bool const again = !applies_once() && !(stalled && !stagnation.starts_again) && (progress || worth_a_try);
  if (again && info.resumes < max_resumes_ && monitor.iterations() < rule_.max_it) {
    if (progress) before = norms;
    ++info.resumes;
    monitor.start_again(open, norms, !progress);
    return false;
  }
  std::size_t worst = k;
  for (std::size_t j = 0; j < k; ++j) {
    if (!open[j]) continue;
    if (targets[j].tolerance == 0 && at_rounding_level(norms[j], targets[j].norm_b, x)) {
      reasons[j] = Reason::converged_rounding;
      continue;
    }
    auto const excess = [&](std::size_t i) { return norms[i] / std::max(targets[i].tolerance, 1e-300); };
    if (worst == k || excess(j) > excess(worst)) worst = j;
    reasons[j] = !krylov::converged(monitor.reason(std::int64_t(j))) && monitor.trouble() != Reason::iterating ? monitor.trouble()
                                                                                                               : Reason::diverged_stagnated;
  }
  auto why = monitor.why();
  if (worst < k) {
    double const unit = targets[worst].unit;
    auto const where = format("||b - A x|| stays at {} ({} of ||b||) above the target {}", norms[worst] * unit,
                              norms[worst] / std::max(targets[worst].norm_b, 1e-300), targets[worst].tolerance * unit);
    bool const alone = why.empty() || krylov::converged(monitor.reason(std::int64_t(worst)));
    if (alone && applies_once() && !solves_directly())
      why = format("{} applies the preconditioner once, and {} is no direct solve: {}", method_name_, preconditioner_name(), where);
    else if (alone)
      why = format("the method believed it had converged, but {}: {}", where,
                   norms[worst] > 0.01 * targets[worst].norm_b
                       ? "that is no rounding. The preconditioner is far from an inverse, or not definite where the method needs it"
                       : format("rounding in A x and in the preconditioner is that large in {}", name_of(A_->dtype())));
    else if (info.resumes > 0) why = format("{}; after {} new start(s) {}", why, info.resumes, where);
    else why = format("{}; {}", why, where);
  }
  monitor.conclude(reasons, norms, why);
  return true;
}

/// Whether a residual is what rounding in A x and b makes (Rigal and Gaches 1967).
bool Solver::at_rounding_level(double residual, double norm_b, Vector const& x) const {
  auto const* const matrix = A_->matrix();
  double norm_Ax = norm_b;
  if (matrix) {
    auto const norms = column_norms(x);
    norm_Ax = matrix->scaled_row_sum_norm() * *std::max_element(norms.begin(), norms.end());
  }
  return residual <= 100 * epsilon_of(A_->dtype()) * (norm_Ax + norm_b);
}

}  // namespace asterism::solve
