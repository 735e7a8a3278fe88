#include "asterism/krylov/monitor.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/error.hpp"
#include "asterism/base/interrupt.hpp"

namespace asterism::krylov {

std::string_view name_of(Reason r) {
  switch (r) {
    case Reason::iterating: return "ITERATING";
    case Reason::converged_rtol: return "CONVERGED_RTOL";
    case Reason::converged_atol: return "CONVERGED_ATOL";
    case Reason::converged_rounding: return "CONVERGED_ROUNDING";
    case Reason::start_again: return "START_AGAIN";
    case Reason::diverged_its: return "DIVERGED_ITS";
    case Reason::diverged_dtol: return "DIVERGED_DTOL";
    case Reason::diverged_breakdown: return "DIVERGED_BREAKDOWN";
    case Reason::diverged_indefinite_pc: return "DIVERGED_INDEFINITE_PC";
    case Reason::diverged_nanorinf: return "DIVERGED_NANORINF";
    case Reason::diverged_indefinite_mat: return "DIVERGED_INDEFINITE_MAT";
    case Reason::diverged_pc_failed: return "DIVERGED_PC_FAILED";
    case Reason::diverged_interrupted: return "DIVERGED_INTERRUPTED";
    case Reason::diverged_time_limit: return "DIVERGED_TIME_LIMIT";
    default: return "DIVERGED_STAGNATED";
  }
}

using device::read;
using device::submit;
using device::update;
using device::value;
using device::write;
using kernel::Number;

namespace {
/// Where the k norms of a kind are among the verdict's numbers.
enum Norms : std::int64_t { of_start = 0, target = 1, mark = 2, of_saved = 3 };
double* norms_of(device::Array const& numbers, Norms kind, std::int64_t k) { return numbers.as<double>() + kernel::firsts + kind * k; }

Reason reason_of(Interrupt i) { return i == Interrupt::user ? Reason::diverged_interrupted : Reason::diverged_time_limit; }
std::string why_interrupted(Reason r, std::int64_t it) {
  return format("{} at iteration {}", r == Reason::diverged_interrupted ? "interrupted" : "the time was over", it);
}
}  // namespace

Monitor::Monitor(StopRule rule, std::vector<Target> targets, Vector x, Judgement judgement, Watcher watcher)
    : rule_(rule),
      targets_(std::move(targets)),
      x_(std::move(x)),
      judgement_(std::move(judgement)),
      watcher_(std::move(watcher)),
      integers_(std::size_t(kernel::verdict_integers(columns())) * sizeof(std::int64_t)),
      numbers_(std::size_t(kernel::verdict_numbers(columns())) * sizeof(double)),
      finished_(sizeof(Number)),
      reasons_(targets_.size(), Reason::iterating) {
  if (judgement_.queue.runs_inline()) judgement_.check_every = 0;  // everything is known at once
  else if (judgement_.unobserved) judgement_.check_every = std::max<std::int64_t>(rule_.max_it, 1);
  auto const k = columns();
  std::fill_n(integers_.as<std::int64_t>(), kernel::verdict_integers(k), 0);
  integers_.as<std::int64_t>()[kernel::trouble] = kernel::none;
  std::fill_n(numbers_.as<double>(), kernel::verdict_numbers(k), -1.0);
  for (std::int64_t j = 0; j < k; ++j)
    norms_of(numbers_, target, k)[j] = reachable(targets_[std::size_t(j)], targets_[std::size_t(j)].tolerance);
  *finished_.as<Number>() = Number(0);
}

/// What cannot be reached is not waited for: the recurrence of a residual goes on falling when the residual itself does not.
double Monitor::reachable(Target const& t, double tolerance) const { return std::max(tolerance, epsilon_of(x_.dtype()) / 8 * t.norm_b); }

Monitor::~Monitor() {
  try {
    if (!judgement_.nested) judgement_.queue.collect_launches(false);
  } catch (...) {  // an error is under way
  }
}

void Monitor::initial_residual(la::Operator const& A, Vector const& b, Vector const& x, Vector& r) const {
  if (from_zero()) copy(b, r);
  else A.residual(b, x, r);
}

void Monitor::set_stagnation(Stagnation const& stagnation, bool keeps_iterate) {
  stagnation_ = stagnation;
  keeps_iterate_ = keeps_iterate;
  if (judgement_.zero_guess && (judgement_.queue.runs_inline() || !keeps_iterate)) return;  // made when something is saved
  saved_ = x_.like();
  copy(x_, saved_);
}

kernel::Rule Monitor::rule_of_checks(std::int64_t it) const {
  bool const saves = keeps_iterate_ && it > offset_ && it % judgement_.save_every == 0;
  // in vain with this patience: perhaps the method stood on a long plateau
  auto const window = stagnation_.window << std::min<std::int64_t>(vain_starts_, 16);
  return {rule_.divtol, rule_.max_it, window, offset_, stagnation_.steady, stagnation_.starts_again, judgement_.nested ? rule_.rtol : 0,
          saves};
}

bool Monitor::stop(std::int64_t it, Scalar const& residual_norm) {
  it += offset_;
  auto const k = columns();
  auto const every = std::max<std::int64_t>(judgement_.check_every, 1);
  auto const page = (it + every - 1) / every, row = it - (page - 1) * every - 1;  // page 0 has iteration 0 alone
  if (asynchronous() && judgement_.graphs && !judgement_.nested) judgement_.queue.collect_launches(true);
  if (asynchronous() && !unfinished_)
    unfinished_ = std::make_unique<device::Condition>(judgement_.queue, device::Condition::Until{finished_});
  auto& norms = pages_[page];
  if (!norms) norms = device::Array::fresh(judgement_.queue, std::size_t(every * k) * sizeof(double));
  auto const found = device::Array::fresh(judgement_.queue, std::size_t(2 * k + 1) * sizeof(Number));
  auto const rule = rule_of_checks(it);
  submit(judgement_.queue, kernel::check_norms, k, it, rule, value<Number>(residual_norm, k), update<std::int64_t>(integers_),
         update<double>(numbers_), update<Number>(finished_),
         write<double>(norms.view(std::size_t(row * k) * sizeof(double), std::size_t(k) * sizeof(double))), write<Number>(found));
  mask_ = Scalar::pending(judgement_.queue, found, 0, k);
  stalling_ = Scalar::pending(judgement_.queue, found, 2 * k, 1);
  if (rule.saves) save_iterate(Scalar::pending(judgement_.queue, found, k, k));
  if (!asynchronous()) {
    look(integers_, numbers_);
    take_rows(it);
    ask_for_interrupts(it);
    return done();
  }
  if (judgement_.unobserved && asynchronous()) {
    if (it < rule_.max_it) return false;
    unfinished_.reset();
    std::fill(reasons_.begin(), reasons_.end(), Reason::diverged_its);  // as far as the host knows
    return true;
  }
  if ((it > offset_ && it % every == 0) || it >= rule_.max_it) look_back(it);
  return done();
}

void Monitor::save_iterate(Scalar const& save) {
  if (device::Condition const any_column(judgement_.queue, any(save)); any_column) {
    if (!saved_) {  // until now the saved iterate was the initial guess, which is zero
      saved_ = x_.like();
      fill(saved_, 0.0);
    }
    copy_where(save, x_, saved_);
  }
}

void Monitor::look_back(std::int64_t it) {
  ask_for_interrupts(it);
  // a copy of the state as it is after this iteration, also where nothing else is done any more
  unfinished_.reset();
  Snapshot now{it, device::Array::fresh(judgement_.queue, integers_.bytes()), device::Array::fresh(judgement_.queue, numbers_.bytes())};
  submit(judgement_.queue, kernel::copy_verdict, columns(), read<std::int64_t>(integers_), read<double>(numbers_),
         write<std::int64_t>(now.integers), write<double>(now.numbers));
  if (!snapshot_) snapshot_ = Snapshot{};
  std::swap(now, *snapshot_);
  // the one before: work for as many iterations is queued behind it
  auto const& known = it >= rule_.max_it ? *snapshot_ : now;
  if (known.integers) {
    look(known.integers, known.numbers);
    take_rows(std::min(iterations_, known.it));
  }
  if (done()) {
    snapshot_.reset();
    pages_.clear();
  } else {
    unfinished_ = std::make_unique<device::Condition>(judgement_.queue, device::Condition::Until{finished_});
  }
}

void Monitor::look(device::Array const& integers, device::Array const& numbers) {
  integers.settle(device::Access::read, "check of convergence");
  numbers.settle(device::Access::read, "check of convergence");
  auto const* const n = integers.as<std::int64_t>();
  iterations_ = n[kernel::iteration];
  for (std::size_t j = 0; j < reasons_.size(); ++j) reasons_[j] = Reason(n[kernel::reasons + std::int64_t(j)]);
  if (!why_.empty()) return;
  for (auto const r : reasons_) {
    if (!interrupted(r)) continue;
    trouble_ = r;
    why_ = why_interrupted(r, iterations_);
    return;
  }
  auto const kind = n[kernel::trouble];
  if (kind == kernel::none) return;
  auto const of_column = reasons_[std::size_t(n[kernel::trouble_column])];
  trouble_ = kind == kernel::norm_not_finite || kind == kernel::scalar_nan ? Reason::diverged_nanorinf
             : kind == kernel::grew                                        ? Reason::diverged_dtol
             : kind == kernel::too_many                                    ? Reason::diverged_its
             : kind == kernel::stalled                                     ? Reason::diverged_stagnated
             : of_column == Reason::start_again                            ? Reason::diverged_breakdown
                                                                           : of_column;
  why_ = described_trouble(n, numbers.as<double>());
}

std::string Monitor::described_trouble(std::int64_t const* n, double const* numbers) const {
  auto const it = n[kernel::trouble_iteration];
  double const unit = targets_[std::size_t(n[kernel::trouble_column])].unit;
  double const v = numbers[kernel::trouble_value], other = numbers[kernel::trouble_other];
  switch (n[kernel::trouble]) {
    case kernel::norm_not_finite: return format("the residual norm became {} at iteration {}", v, it);
    case kernel::scalar_nan: return format("a scalar of the method became NaN at iteration {}", it);
    case kernel::grew: return format("the residual norm grew from {} to {} by iteration {}", unit * other, unit * v, it);
    case kernel::too_many: return format("after {} iterations the residual norm is {}, the target {}", it, unit * v, unit * other);
    case kernel::stalled:
      return format("the residual norm, {} at iteration {}, has not fallen by a tenth since iteration {}", unit * v, it,
                    std::int64_t(other));
    default: return format("{} ({} at iteration {})", sites_.at(std::size_t(n[kernel::trouble])), v, it);
  }
}

/// The norms of iterations up to `last` go into the history.
void Monitor::take_rows(std::int64_t last) {
  auto const every = std::max<std::int64_t>(judgement_.check_every, 1);
  auto const k = columns();
  for (auto it = rows_taken_; it <= last; ++it) {
    auto const page = (it + every - 1) / every, row = it - (page - 1) * every - 1;
    auto const& norms = pages_.at(page);
    norms.settle(device::Access::read, "check of convergence");
    auto const* const from = norms.as<double>() + row * k;
    std::vector<double> values(from, from + k);
    for (std::int64_t j = 0; j < k; ++j) values[std::size_t(j)] *= targets_[std::size_t(j)].unit;
    if (std::int64_t(history_.size()) > it) history_[std::size_t(it)] = values;  // the restart of a resumed solve
    else history_.push_back(values);
    if (watcher_ && !(resumed_ && it == offset_)) watcher_(it, values);
  }
  rows_taken_ = std::max(rows_taken_, last + 1);
  pages_.erase(pages_.begin(), pages_.lower_bound((rows_taken_ + every - 1) / every));
}

// Ctrl-C reaches one rank, and a time limit one rank first; all must leave together, so they ask each other now and then.
void Monitor::ask_for_interrupts(std::int64_t it) {
  auto const& comm = x_.comm();
  if (asynchronous()) {
    auto const mine = interrupt_requested();
    if (comm.size() == 1 && mine == Interrupt::none) return;
    submit_on_host(
        judgement_.queue,
        [k = columns(), mine, comm](device::Executor&, std::byte*, std::int64_t* integers, Number* finished) {
          auto const all = comm.size() > 1 ? Interrupt(comm.max(std::int64_t(mine))) : mine;
          if (all == Interrupt::none) return;
          std::fill_n(integers + kernel::reasons, k, std::int64_t(reason_of(all)));
          *finished = Number(1);
        },
        update<std::byte>(comm.order_token()), update<std::int64_t>(integers_), update<Number>(finished_));
    return;
  }
  if (it % 16 != 0 && comm.size() > 1) return;
  auto const mine = interrupt_requested();
  auto const all = comm.size() > 1 ? Interrupt(comm.max(std::int64_t(mine))) : mine;
  if (all != Interrupt::none) set_all(reason_of(all), why_interrupted(reason_of(all), it));
}

bool Monitor::break_down_if(Scalar const& v, Bad bad, Reason reason, std::string_view why) {
  auto const k = columns();
  auto site = std::find(sites_.begin(), sites_.end(), why) - sites_.begin();
  if (site == std::ssize(sites_)) sites_.emplace_back(why);
  auto const mask = device::Array::fresh(judgement_.queue, std::size_t(k) * sizeof(Number));
  submit(judgement_.queue, kernel::check_scalar, k, bad, reason, std::int64_t(site), value<Number>(v, k), update<std::int64_t>(integers_),
         update<double>(numbers_), update<Number>(finished_), write<Number>(mask));
  mask_ = Scalar::pending(judgement_.queue, mask, 0, k);
  if (!asynchronous()) look(integers_, numbers_);
  return done();
}

void Monitor::break_down(Reason reason, std::string_view why) {
  for (auto& r : reasons_)
    if (r == Reason::iterating) r = reason;
  if (why_.empty() && !why.empty()) {
    trouble_ = reason == Reason::start_again ? Reason::diverged_breakdown : reason;
    why_ = format("{} (iteration {})", why, iterations_);
  }
  set_reasons();
}

void Monitor::set_all(Reason reason, std::string_view why) {
  for (auto& r : reasons_) r = reason;
  trouble_ = reason;
  why_ = why;
  set_reasons();
}

/// What the host decided becomes the queue's knowledge.
void Monitor::set_reasons() {
  integers_.settle(device::Access::update, "verdict of the host");
  finished_.settle(device::Access::update, "verdict of the host");
  std::vector<Scalar::Value> mask;
  stalling_ = 0.0;
  for (std::size_t j = 0; j < reasons_.size(); ++j) {
    integers_.as<std::int64_t>()[kernel::reasons + std::int64_t(j)] = std::int64_t(reasons_[j]);
    mask.push_back(reasons_[j] == Reason::iterating ? 1.0 : 0.0);
  }
  *finished_.as<Number>() = Number(done() ? 1.0 : 0.0);
  mask_ = Scalar(std::move(mask));
}

bool Monitor::done() const {
  return std::none_of(reasons_.begin(), reasons_.end(), [](Reason r) { return r == Reason::iterating; });
}

bool Monitor::all_iterate() const {
  return !asynchronous() && std::all_of(reasons_.begin(), reasons_.end(), [](Reason r) { return r == Reason::iterating; });
}

std::vector<double> Monitor::last_norms() const {
  if (asynchronous() || history_.empty()) return {};
  auto out = history_.back();
  for (std::size_t j = 0; j < out.size(); ++j) out[j] /= targets_[j].unit;
  return out;
}

Reason Monitor::reason() const {
  Reason worst = reasons_.empty() ? Reason::converged_atol : reasons_[0];
  for (auto const r : reasons_)
    if (!converged(r) && (converged(worst) || std::int8_t(r) < std::int8_t(worst))) worst = r;
  return worst;
}

bool Monitor::restore_best(std::vector<double> const& true_norms) {
  numbers_.settle(device::Access::read, "saved iterates");
  auto const k = columns();
  std::vector<Scalar::Value> back;
  bool any = false;
  for (std::int64_t j = 0; j < k; ++j) {
    double const saved = norms_of(numbers_, of_saved, k)[j], now = true_norms[std::size_t(j)];
    bool const better = !converged(reasons_[std::size_t(j)]) && saved >= 0 && !(now <= saved);
    back.push_back(better ? 1.0 : 0.0);
    any = any || better;
  }
  if (!any) return false;
  if (!saved_) {
    saved_ = x_.like();
    fill(saved_, 0.0);
  }
  copy_where(Scalar(std::move(back)), saved_, x_);
  return true;
}

void Monitor::start_again(std::vector<char> const& go_on, std::vector<double> const& true_norms, bool in_vain) {
  offset_ = rows_taken_ = iterations_;
  resumed_ = true;
  vain_starts_ = in_vain ? vain_starts_ + 1 : 0;
  auto const k = columns();
  integers_.settle(device::Access::update, "a new start");
  numbers_.settle(device::Access::update, "a new start");
  integers_.as<std::int64_t>()[kernel::trouble] = kernel::none;
  trouble_ = Reason::iterating;
  why_.clear();
  if (!saved_) saved_ = x_.like();
  copy(x_, saved_);
  for (std::int64_t j = 0; j < k; ++j) {
    norms_of(numbers_, mark, k)[j] = -1;
    norms_of(numbers_, of_saved, k)[j] = true_norms[std::size_t(j)];
    if (!go_on[std::size_t(j)]) continue;
    reasons_[std::size_t(j)] = Reason::iterating;
    // The method aims a little lower: a norm that only rounding keeps above the target (of the transpose's products, say) may be
    // below it by the method's own products, and it would end where it starts.
    norms_of(numbers_, target, k)[j] = reachable(targets_[std::size_t(j)], 0.9 * targets_[std::size_t(j)].tolerance);
  }
  set_reasons();
}

void Monitor::conclude(std::vector<Reason> const& reasons, std::vector<double> const& true_norms, std::string_view why) {
  reasons_ = reasons;
  why_ = why;
  if (history_.empty()) return;
  for (std::size_t j = 0; j < reasons_.size(); ++j) history_.back()[j] = true_norms[j] * targets_[j].unit;
}

}  // namespace asterism::krylov
