// What auto takes for the preconditioner: a list of them, until one works.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "asterism/base/profile.hpp"
#include "asterism/solve/options.hpp"
#include "asterism/solve/solver.hpp"

namespace asterism::solve {
namespace {

using krylov::Reason;
using precond::PreconditionerPtr;

/// Factors of so few rows always fit, and where the matrix is nearly dense they are as good as incomplete ones.
constexpr std::int64_t few_rows = 2000;

/// Factors that cost more are left to incomplete ones: minutes of one core.
constexpr double most_flops = 2e12;

/// Of a factorisation, for each entry of the matrix: about the time of a set-up of amg and some iterations.
constexpr double flops_for_an_entry = 1500;

/// Fill is allowed until factors have so many entries (of 8 + 4 bytes).
constexpr double most_entries = 5e7;

/// Of an operator without entries: with fewer rows a first solve without a preconditioner takes less time than one that compiles levels. On
/// two cores of an Intel Xeon both took the same at 0.3 million rows in two dimensions, and at 1 to 3 million in three.
constexpr std::int64_t rows_for_gmg = 1000000;

/// By this at least a cycle of geometric multigrid must reduce the residual, or it is not taken.
constexpr double most_left_by_cycle = 0.6;

AutomaticAttempt ilut(Inspection const& found) {
  double const fill = std::clamp(std::floor(most_entries / std::max(1.0, double(found.entries))), 5.0, 100.0);
  return {"ilut", {{"pc_factor_matching", "true"}, {"pc_ilut_drop", "1e-06"}, {"pc_ilut_fill", format("{}", fill)}}};
}

AutomaticAttempt factors(Inspection const& found, bool definite, double flop_limit) {
  AutomaticAttempt out{found.hermitian ? "cholesky" : "lu", {}, flop_limit};
  if (found.hermitian && !definite) out.options.emplace_back("pc_cholesky_type", "indefinite");
  return out;
}

/// Iterations after which an attempt is given up, unless it is half way: of a small matrix factors soon cost less.
std::int64_t patience(std::int64_t rows) { return std::clamp<std::int64_t>(rows / 200, 25, 2000); }

/// Of many rows that is long. After so many iterations, two cycles of gmres, factors take their turn if they cost little, or amg.
constexpr std::int64_t few_iterations = 60;

/// By this at least a cycle of amg must reduce the residual of a matrix that is not Hermitian, or it is not taken.
constexpr double most_left_by_amg = 0.95;

/// From the first norms and those after so many steps: in how many more iterations all columns are there, if they go on at this rate.
double left_to_do(std::vector<double> const& first, std::size_t steps, std::vector<double> const& now, std::vector<double> const& targets) {
  double most = 0;
  for (std::size_t j = 0; j < now.size(); ++j) {
    if (now[j] <= targets[j]) continue;
    double const done = std::log(first[j] / now[j]), needed = std::log(now[j] / targets[j]);
    most = std::max(most, done > 0 ? needed / done * double(steps) : 1e300);
  }
  return std::isnan(most) ? 1e300 : most;
}

}  // namespace

std::string AutomaticAttempt::text() const {
  auto out = "-pc_type " + type;
  for (auto const& [name, value] : options) out += format(" -{} {}", name, value);
  return out;
}

AutomaticChoice automatic_choice(Inspection const& found, std::int64_t rows) {
  bool const definite = found.hermitian && (found.positive_diagonal || found.negative_diagonal);
  bool const nearly_dense = rows <= few_rows && double(found.entries) >= 0.1 * double(rows) * double(rows);
  AutomaticChoice out{definite ? "cg" : "gmres", {}};
  if (found.entries == rows && found.zero_diagonals == 0) {  // a diagonal matrix
    out.attempts.push_back({"jacobi", {}});
    if (found.hermitian && !definite) out.attempts.back().options.emplace_back("pc_jacobi_type", "rowl1");
    out.attempts.push_back(factors(found, definite, 0));
    return out;
  }
  // where the diagonal is weak, iterations are many, and factors of so few rows cost less
  bool const at_once = rows <= few_rows && found.dominant < 0.5;
  if (at_once) {
    out.attempts.push_back(factors(found, definite, 0));
  } else if (rows <= rows_for_direct_first && (definite ? found.half_dominant < 0.5 : found.dominant < 0.5 && found.zero_diagonals == 0)) {
    out.attempts.push_back(factors(found, definite, flops_for_an_entry * double(found.entries)));
  }
  if (definite) out.attempts.push_back({"amg", {}});
  else if (found.zero_diagonals == 0) out.attempts.push_back({"ilu", {}});
  // of rows as those of a discretised diffusion: ilu needs more iterations the more rows there are
  if (!found.hermitian && (found.positive_diagonal || found.negative_diagonal) && found.half_dominant >= 0.9 &&
      patience(rows) > few_iterations) {
    out.attempts.back().briefly = true;
    out.attempts.push_back({"amg", {}, 0, true});
    out.attempts.push_back({"ilu", {}});
  }
  if (!at_once) out.attempts.push_back(factors(found, definite, rows > few_rows ? most_flops : 0));
  if (!nearly_dense) out.attempts.push_back(ilut(found));
  if (rows > few_rows) out.attempts.push_back({"jacobi", {{"pc_jacobi_type", "rowl1"}}});  // where factors would not fit
  return out;
}

bool Solver::lets_go_on(Error const& e) const {
  return comm::is_of_all(A_->range().comm(), e) &&
         (e.kind() == ErrorKind::value || e.kind() == ErrorKind::breakdown || e.kind() == ErrorKind::memory);
}

/// Of one that auto chose: whether it is any use as an approximate inverse. A product and an application.
bool Solver::seems_stable(precond::Preconditioner const& M) const {
  Vector r(A_->range(), A_->dtype()), z = r.like(), back = r.like();
  fill_hashed(r, 5);
  M.apply(r, z);
  if (look_at_entries(z).not_finite > 0) return false;
  A_->residual(r, z, back);
  double const size = norm(back).real();
  return size <= 1e6 * norm(r).real();  // false for NaN
}

PreconditionerPtr Solver::make_attempt(Configuration const& config, AutomaticAttempt const& attempt) {
  auto options = options_;
  auto const set = [&](std::string const& name, std::string const& value) {
    if (!options.find(prefix_ + name)) options.set(prefix_ + name, value, OptionLayer::file, "auto");
  };
  for (auto const& [name, value] : attempt.options) set(name, value);
  if (attempt.flop_limit > 0) set("pc_factor_flop_limit", format("{}", attempt.flop_limit));
  return make_preconditioner({&options, prefix_, config.record}, P_, attempt.type);
}

/// The first from attempt_ on that can be set up and is stable; the last one as it is.
PreconditionerPtr Solver::automatic_preconditioner(Configuration const& config) {
  auto const before = record_.size();
  std::exception_ptr singular;
  for (;; ++attempt_) {
    auto const& attempt = attempts_[attempt_];
    bool const last = attempt_ + 1 == attempts_.size();
    std::string why;
    try {
      auto p = make_attempt(config, attempt);
      double const left = attempt.briefly && attempt.type == "amg" ? left_by_cycle(*p) : 0;
      bool const is_good = attempt.type == "amg" ? left <= most_left_by_amg : p->direct() || seems_stable(*p);  // false for NaN
      if (last || is_good) {
        if (attempt_ > 0 || p->direct() || seen().zero_diagonals > 0) tell_attempt(attempt);
        if (p->direct()) attempts_.resize(attempt_ + 1);  // there is no stronger one
        return p;
      }
      why = attempt.type == "amg" ? format("a cycle of amg leaves {} of the residual", std::round(100 * left) / 100)
                                  : format("the factors of {} are unstable", attempt.type);
    } catch (Error const& e) {
      if (last && singular && lets_go_on(e)) std::rethrow_exception(singular);  // which explains this one
      if (last || !lets_go_on(e)) throw;
      why = e.what();
      if (e.kind() == ErrorKind::value && why.find("singular") != std::string::npos) no_factors_ = why, singular = std::current_exception();
    }
    why_attempt_ = why;
    record_.resize(before);
  }
}

/// Whether the preconditioner in use takes new values. Of one that auto chose, and that cannot be made for them, the next attempt's turn
/// has come.
bool Solver::updates(precond::Preconditioner& old, bool by_itself) {
  try {
    return old.update(P_);
  } catch (Error const& e) {
    if (!by_itself || attempt_ + 1 == attempts_.size() || !lets_go_on(e)) throw;
    why_attempt_ = e.what();
    ++attempt_;
    return false;
  }
}

void Solver::tell_attempt(AutomaticAttempt const& attempt) {
  auto const why = !why_attempt_.empty()       ? why_attempt_
                   : seen().zero_diagonals > 0 ? format("{} entries of the diagonal are zero", seen().zero_diagonals)
                                               : format("{} rows, of which {} % are dominated by their diagonal entries", P_.global_rows(),
                                                        std::floor(100 * seen().dominant));
  notes_.push_back(format("pc auto: {} ({})", attempt.type == "jacobi" ? "jacobi by sums of rows" : attempt.text().substr(9), why));
}

/// What a cycle leaves of the residual of random numbers, as a factor: the third one, when what it reduces well is gone.
double Solver::left_by_cycle(precond::Preconditioner const& M) const {
  Vector r(A_->range(), A_->dtype()), z = r.like(), product = r.like();
  fill_hashed(r, 5);
  clear_padding(r);
  if (!null_space_.empty()) null_space_.remove_from(r);
  double before = 0, now = norm(r).real();
  for (int cycle = 0; cycle < 3 && now > 0; ++cycle) {
    M.apply(r, z);
    A_->apply(z, product);
    axpy(-1.0, product, r);
    before = std::exchange(now, norm(r).real());
  }
  return before > 0 ? now / before : 0;
}

/// For an operator without entries: geometric multigrid, where the operator knows coarser ones and that works; else none.
PreconditionerPtr Solver::automatic_without_entries(Configuration const& config) {
  auto const none = [&] { return make_matrix_free(config, A_, "none"); };  // or what was named
  std::vector<EffectiveOption> not_again;
  auto const type = Configuration{&options_, prefix_, &not_again}.reader(preconditioner_table()).text("pc_type");
  bool const open = type == "auto";
  preconditioner_type_ = open ? "none" : type;
  if (!open || !A_->coarsens() || check_every_ > 0) return none();
  std::int64_t padding = 0;
  for (auto const& [first, count] : A_->range().padding()) padding += count;
  auto const rows = A_->range().global_size() - A_->range().comm().sum(padding);
  if (rows < rows_for_gmg) {
    notes_.push_back(format("pc auto: none, for {} rows. -pc_type gmg is geometric multigrid for this operator", rows));
    return none();
  }
  auto const before = record_.size();
  std::string why;
  try {
    auto p = make_matrix_free(config, A_, "gmg");
    double const left = left_by_cycle(*p);
    if (left <= most_left_by_cycle) {  // false for NaN
      notes_.push_back(format("pc auto: gmg ({} rows; a cycle leaves {} of the residual)", rows, std::round(100 * left) / 100));
      preconditioner_type_ = "gmg";
      return p;
    }
    why = format("a cycle leaves {} of the residual", left);
  } catch (Error const& e) {
    bool const has_none = e.kind() == ErrorKind::option || e.kind() == ErrorKind::unsupported;  // of this grid, say
    if (!(has_none && comm::is_of_all(A_->range().comm(), e)) && !lets_go_on(e)) throw;
    why = e.what();
  }
  record_.resize(before);
  notes_.push_back("pc auto: none (" + std::string(why.starts_with("gmg: ") ? "" : "gmg: ") + why + ")");
  return none();
}

/// For the queue of the iterations; with what is to be told of it.
void Solver::prepare_preconditioner() {
  preconditioner_->prepare(queue_);
  for (auto const& note : preconditioner_->notes()) notes_.push_back(note);
}

/// Whether there is one left, and the method works with whatever it is.
bool Solver::has_stronger() const {
  bool const any_method = wanted_method_ == "auto" || !method_->needs_symmetric_matrix();
  return attempt_ + 1 < attempts_.size() && any_method && check_every_ == 0;
}

Solver::InUse Solver::in_use() const {
  return {preconditioner_, preconditioner_type_, attempts_, attempt_, why_attempt_, method_, method_name_, notes_, record_};
}

void Solver::use(InUse const& before) {
  std::tie(preconditioner_, preconditioner_type_, attempts_, attempt_, why_attempt_, method_, method_name_, notes_, record_) = before;
}

/// What is in use stays so if none of the others can be set up; then it says why.
std::string Solver::take_stronger(std::string const& why) {
  double const start = profile::now();
  auto const before = in_use();
  try {
    why_attempt_ = why;
    record_.resize(record_without_preconditioner_);
    ++attempt_;
    Configuration const config{&options_, prefix_, &record_};
    preconditioner_ = automatic_preconditioner(config);
    preconditioner_type_ = attempts_[attempt_].type;
    prepare_preconditioner();
    fit_method(config);
    setup_seconds_ += profile::now() - start;
    return {};
  } catch (Error const& e) {
    use(before);
    if (!lets_go_on(e)) throw;
    attempts_.resize(attempt_ + 1);
    return e.what();
  }
}

/// Before their turn, if they take no more work than where they come first.
bool Solver::take_cheap_factors(std::string const& why) {
  looked_for_cheap_factors_ = true;
  auto const all = attempts_;
  auto const next = all.begin() + std::ptrdiff_t(attempt_) + 1;
  auto const factors = std::find_if(next, all.end(), [](auto const& a) { return a.type == "lu" || a.type == "cholesky"; });
  if (factors == all.end()) return false;
  attempts_.assign(all.begin(), next);
  attempts_.push_back(*factors);
  attempts_.back().flop_limit = P_.global_rows() > few_rows ? flops_for_an_entry * double(seen().entries) : 0;
  if (take_stronger(why).empty()) return true;
  attempts_ = all;
  return false;
}

/// With the preconditioner that follows, from where the columns came to. It may take them one after the other.
SolveInfo Solver::goes_on(SolveInfo all, Vector const& b, Vector& x, la::Entries const& of_b, Watch const& watch) {
  krylov::Watcher watcher;
  if (watch.watcher)
    watcher = [&, from = all.iterations](std::int64_t it, std::vector<double> const& norms) { watch.watcher(from + it, norms); };
  auto rest = solve_by_columns(b, x, of_b, look_at_entries(x), {watcher, watch.needs_iterate, watch.adjoint});
  if (!rest.residual_norms.empty()) rest.residual_norms.erase(rest.residual_norms.begin());
  rest.residual_norms.insert(rest.residual_norms.begin(), all.residual_norms.begin(), all.residual_norms.end());
  rest.iterations += all.iterations;
  rest.resumes += all.resumes;
  rest.solve_seconds += all.solve_seconds;
  rest.host_waits += all.host_waits;
  return rest;
}

/// One attempt after the other: the next goes on from where the last one came to.
SolveInfo Solver::solve_at_once(Vector const& b, Vector& x, la::Entries const& of_b, la::Entries const& of_x, Watch const& watch) {
  if (!has_stronger()) {
    auto only = attempt_at_once(b, x, of_b, of_x, watch, rule_.max_it);
    tell_small_rows(only);
    return std::move(only.info);
  }
  auto guess = x.like();
  copy(x, guess);
  SolveInfo all;
  auto const no_more = [&](std::int64_t its) { return all.iterations + its >= rule_.max_it; };
  bool longer = false;    // once for each attempt
  bool waited = false;    // for iterations that were expected to be enough
  std::int64_t done = 0;  // of this attempt, which goes on
  std::size_t steps = 0;  // the norms that it has, but for the first ones
  std::vector<double> first_norms;
  auto const usual = patience(b.global_size());
  auto const for_attempt = [&] {
    if (attempts_[attempt_].briefly) return std::min(few_iterations, usual);
    bool const second_time = attempt_ > 0 && attempts_[0].briefly && attempts_[attempt_].type == attempts_[0].type;
    return second_time ? usual - few_iterations : usual;
  };
  auto most = for_attempt();
  // factors may follow before their turn
  bool cheap_ones_next = !looked_for_cheap_factors_ && attempt_ == 0 && attempts_.size() > 1 && !preconditioner_->direct() &&
                         attempts_[0].type != "jacobi" && usual > few_iterations;
  if (cheap_ones_next) most = few_iterations;
  for (bool first = true;; first = false) {
    bool const stronger = has_stronger();
    auto const limit = std::min(stronger ? most : rule_.max_it, rule_.max_it - all.iterations);
    krylov::Watcher watcher;
    if (watch.watcher)
      watcher = [&, from = all.iterations](std::int64_t it, std::vector<double> const& norms) {
        if (it > 0 || from == 0) watch.watcher(from + it, norms);  // where one attempt ends the next begins
      };
    auto now = attempt_at_once(b, x, of_b, first ? of_x : look_at_entries(x), {watcher, watch.needs_iterate, watch.adjoint}, limit);
    auto info = now.info;
    bool const ended = info.converged || now.interrupted || !stronger || no_more(info.iterations);
    if (done == 0) first_norms = info.residual_norms.front(), steps = 0;
    done += info.iterations;
    steps += info.residual_norms.size() - 1;  // the first norms are there in any case
    bool const half_way = left_to_do(first_norms, steps, info.true_residual, now.targets) <= 1.2 * double(done);
    // what was done before counts too
    info.iterations += all.iterations;
    info.resumes += all.resumes;
    info.solve_seconds += all.solve_seconds;
    info.host_waits += all.host_waits;
    if (!first) info.residual_norms.erase(info.residual_norms.begin());
    info.residual_norms.insert(info.residual_norms.begin(), all.residual_norms.begin(), all.residual_norms.end());
    all = std::move(info);
    if (!now.small_rows.empty()) {
      if (solves_small_rows(now, all, b, x, of_b, watch)) return all;
      now.info.notes = std::move(all.notes);
      tell_small_rows(now);
      all.notes = std::move(now.info.notes);
    }
    if (ended) return all;
    bool const looks = std::exchange(cheap_ones_next, false) && now.out_of_iterations;
    if (now.out_of_iterations && !longer && half_way && !(looks && waited)) {
      bool const waits = looks && !attempts_[attempt_].briefly;
      auto const expected = std::int64_t(1.2 * double(done));
      cheap_ones_next = waited = waits && expected < usual - done;  // they follow if it is not there by then
      most = waits ? std::min(expected, usual - done) : 2 * done;
      longer = !waits;
      continue;
    }
    double worst = 0;
    for (std::size_t j = 0; j < all.true_residual.size(); ++j)
      if (all.rhs_norm[j] > 0) worst = std::max(worst, all.true_residual[j] / all.rhs_norm[j]);
    if (!(worst < 1)) copy(guess, x);  // NaN too
    auto const why =
        format("after {} iterations of {} with {} ||b - A x|| is {} of ||b||", done, method_name_, preconditioner_type_, worst);
    if (looks && take_cheap_factors(why)) {
      // they are next
    } else if (looks && !attempts_[attempt_].briefly) {
      most = usual - done;
      continue;
    } else if (auto const failed = take_stronger(why); !failed.empty()) {
      all.why += format("{}The next preconditioner cannot be set up: {}", all.why.empty() ? "" : " ", failed);
      return all;
    }
    if (b.columns() > 1 && !takes_columns_together()) return goes_on(std::move(all), b, x, of_b, watch);
    done = 0;
    longer = false;
    most = for_attempt();
  }
}

void Solver::fit_method(Configuration const& config) {
  if (wanted_method_ == "auto" && preconditioner_->direct() && check_every_ == 0 && P_is_A()) {
    notes_.push_back(format("ksp auto: preonly instead of {} (the preconditioner solves)", method_name_));
    use_method(config, "preonly");
  }
  if (method_->needs_symmetric_matrix() && !preconditioner_->symmetric() && wanted_method_ == "auto" && check_every_ == 0) {
    notes_.push_back(format("ksp auto: gmres instead of {} (the preconditioner is not symmetric)", method_name_));
    use_method(config, preconditioner_->varies() ? "fgmres" : "gmres");
  }
  if (method_->needs_symmetric_matrix() && !preconditioner_->symmetric())
    ASTERISM_REQUIRE_ALIKE(
        false, option, "{} needs a symmetric preconditioner, but '{}' is not one. Use {}.", method_name_, preconditioner_->describe(),
        preconditioner_->varies()       ? "-ksp_type fgmres, gcr or richardson"
        : preconditioner_type_ == "sor" ? "-pc_sor_symmetric true, or -ksp_type gmres"
        : preconditioner_type_ == "gmg" ? "-pc_gmg_cycle_type v or w with equal steps before and after, or -ksp_type gmres"
        : preconditioner_type_ == "amg" ? "-pc_amg_cycle_type v or w with equal steps before and after, or -ksp_type gmres"
        : preconditioner_type_ == "asm" ? "-pc_asm_type basic, or -ksp_type gmres"
                                        : "-pc_type icc, amg or jacobi, or -ksp_type gmres");
  if (!M_) preconditioner_->set_hermitian(of_P_.hermitian);
  look_beside_null_space();
}

}  // namespace asterism::solve
