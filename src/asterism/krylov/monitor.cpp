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
    case Reason::converged_its: return "CONVERGED_ITS";
    case Reason::converged_happy_breakdown: return "CONVERGED_HAPPY_BREAKDOWN";
    case Reason::diverged_its: return "DIVERGED_ITS";
    case Reason::diverged_dtol: return "DIVERGED_DTOL";
    case Reason::diverged_breakdown: return "DIVERGED_BREAKDOWN";
    case Reason::diverged_indefinite_pc: return "DIVERGED_INDEFINITE_PC";
    case Reason::diverged_nanorinf: return "DIVERGED_NANORINF";
    case Reason::diverged_indefinite_mat: return "DIVERGED_INDEFINITE_MAT";
    case Reason::diverged_pc_failed: return "DIVERGED_PC_FAILED";
    case Reason::diverged_interrupted: return "DIVERGED_INTERRUPTED";
    default: return "DIVERGED_STAGNATED";
  }
}

using device::read;
using device::submit;
using device::update;
using device::value;
using device::write;
using kernel::Number;

Monitor::Monitor(StopRule rule, std::vector<double> norms_b, comm::Communicator comm, Judgement judgement, Watcher watcher)
    : rule_(rule),
      comm_(std::move(comm)),
      judgement_(std::move(judgement)),
      watcher_(std::move(watcher)),
      integers_((kernel::reasons + norms_b.size()) * sizeof(std::int64_t)),
      numbers_((kernel::firsts + 2 * norms_b.size()) * sizeof(double)),
      finished_(sizeof(Number)),
      reasons_(norms_b.size(), Reason::iterating) {
  if (judgement_.ctx.runs_inline()) judgement_.check_every = 0;  // everything is known at once
  for (auto const n : norms_b) targets_.push_back(std::max(rule.rtol * n, rule.atol));
  std::fill_n(integers_.as<std::int64_t>(), kernel::reasons + columns(), 0);
  integers_.as<std::int64_t>()[kernel::trouble] = kernel::none;
  auto* const numbers = numbers_.as<double>();
  std::fill_n(numbers, kernel::firsts + columns(), -1.0);
  std::copy(targets_.begin(), targets_.end(), numbers + kernel::firsts + columns());
  *finished_.as<Number>() = Number(0);
}

Monitor::~Monitor() {
  try {
    judgement_.ctx.collect_launches(false);
  } catch (...) {  // an error is under way
  }
}

void Monitor::initial_residual(la::Operator const& A, Vector const& b, Vector const& x, Vector& r) const {
  if (judgement_.zero_guess && !resumed_) copy(b, r);
  else A.residual(b, x, r);
}

bool Monitor::stop(std::int64_t it, Scalar const& residual_norm) {
  it += offset_;
  auto const k = columns();
  auto const every = std::max<std::int64_t>(judgement_.check_every, 1);
  auto const page = (it + every - 1) / every, row = it - (page - 1) * every - 1;  // page 0 has iteration 0 alone
  if (asynchronous() && judgement_.graphs) judgement_.ctx.collect_launches(true);
  if (asynchronous() && !unfinished_)
    unfinished_ = std::make_unique<device::Condition>(judgement_.ctx, device::Condition::Until{finished_});
  auto& norms = pages_[page];
  if (!norms) norms = device::Array::fresh(judgement_.ctx, std::size_t(every * k) * sizeof(double));
  auto const mask = device::Array::fresh(judgement_.ctx, std::size_t(k) * sizeof(Number));
  submit(judgement_.ctx, kernel::check_norms, k, it, kernel::Rule{rule_.atol, rule_.divtol, rule_.max_it}, value<Number>(residual_norm, k),
         update<std::int64_t>(integers_), update<double>(numbers_), update<Number>(finished_),
         write<double>(norms.view(std::size_t(row * k) * sizeof(double), std::size_t(k) * sizeof(double))), write<Number>(mask));
  mask_ = Scalar::pending(judgement_.ctx, mask, 0, k);
  if (!asynchronous()) {
    look(integers_, numbers_);
    take_rows(it);
    ask_for_interrupts(it);
    return done();
  }
  if ((it > offset_ && it % every == 0) || it >= rule_.max_it) look_back(it);
  return done();
}

void Monitor::look_back(std::int64_t it) {
  ask_for_interrupts(it);
  // a copy of the state as it is after this iteration, also where nothing else is done any more
  unfinished_.reset();
  Snapshot now{it, device::Array::fresh(judgement_.ctx, integers_.bytes()), device::Array::fresh(judgement_.ctx, numbers_.bytes())};
  submit(judgement_.ctx, kernel::copy_verdict, columns(), read<std::int64_t>(integers_), read<double>(numbers_),
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
    unfinished_ = std::make_unique<device::Condition>(judgement_.ctx, device::Condition::Until{finished_});
  }
}

void Monitor::look(device::Array const& integers, device::Array const& numbers) {
  integers.settle(device::Access::read, "check of convergence");
  numbers.settle(device::Access::read, "check of convergence");
  auto const* const n = integers.as<std::int64_t>();
  auto const* const x = numbers.as<double>();
  iterations_ = n[kernel::iteration];
  for (std::size_t j = 0; j < reasons_.size(); ++j) reasons_[j] = Reason(n[kernel::reasons + std::int64_t(j)]);
  auto const it = n[kernel::trouble_iteration];
  auto const v = x[kernel::trouble_value], other = x[kernel::trouble_other];
  if (!why_.empty()) return;
  if (std::find(reasons_.begin(), reasons_.end(), Reason::diverged_interrupted) != reasons_.end()) {
    why_ = format("interrupted at iteration {}", iterations_);
    return;
  }
  switch (n[kernel::trouble]) {
    case kernel::none: return;
    case kernel::norm_not_finite: why_ = format("the residual norm became {} at iteration {}", v, it); return;
    case kernel::scalar_nan: why_ = format("a scalar of the method became NaN at iteration {}", it); return;
    case kernel::grew: why_ = format("the residual norm grew from {} to {} by iteration {}", other, v, it); return;
    case kernel::too_many: why_ = format("after {} iterations the residual norm is {}, the target {}", it, v, other); return;
    default: why_ = format("{} ({} at iteration {})", sites_.at(std::size_t(n[kernel::trouble])), v, it);
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
    std::vector<double> const values(from, from + k);
    if (std::int64_t(history_.size()) > it) history_[std::size_t(it)] = values;  // the restart of a resumed solve
    else history_.push_back(values);
    if (watcher_ && !(resumed_ && it == offset_)) watcher_(it, values);
  }
  rows_taken_ = std::max(rows_taken_, last + 1);
  pages_.erase(pages_.begin(), pages_.lower_bound((rows_taken_ + every - 1) / every));
}

// Ctrl-C reaches one rank; all must leave together, so they ask each other now and then.
void Monitor::ask_for_interrupts(std::int64_t it) {
  if (asynchronous()) {
    bool const mine = interrupt_requested();
    if (comm_.size() == 1 && !mine) return;
    submit_on_host(
        judgement_.ctx,
        [k = columns(), mine, comm = comm_](device::Queue&, std::byte*, std::int64_t* integers, Number* finished) {
          if (comm.size() > 1 && comm.max(std::int64_t(mine)) == 0) return;
          std::fill_n(integers + kernel::reasons, k, std::int64_t(Reason::diverged_interrupted));
          *finished = Number(1);
        },
        update<std::byte>(comm_.lane()), update<std::int64_t>(integers_), update<Number>(finished_));
    return;
  }
  if (it % 16 != 0 && comm_.size() > 1) return;
  bool const mine = interrupt_requested();
  if (comm_.size() == 1 ? mine : comm_.max(std::int64_t(mine)) != 0)
    set_all(Reason::diverged_interrupted, format("interrupted at iteration {}", it));
}

bool Monitor::break_down_if(Scalar const& v, Bad bad, Reason reason, std::string_view why) {
  auto const k = columns();
  auto site = std::find(sites_.begin(), sites_.end(), why) - sites_.begin();
  if (site == std::ssize(sites_)) sites_.emplace_back(why);
  auto const mask = device::Array::fresh(judgement_.ctx, std::size_t(k) * sizeof(Number));
  submit(judgement_.ctx, kernel::check_scalar, k, bad, reason, std::int64_t(site), value<Number>(v, k), update<std::int64_t>(integers_),
         update<double>(numbers_), update<Number>(finished_), write<Number>(mask));
  mask_ = Scalar::pending(judgement_.ctx, mask, 0, k);
  if (!asynchronous()) look(integers_, numbers_);
  return done();
}

void Monitor::break_down(Reason reason, std::string_view why) {
  for (auto& r : reasons_)
    if (r == Reason::iterating) r = reason;
  if (why_.empty()) why_ = format("{} (iteration {})", why, iterations_);
  set_reasons();
}

void Monitor::set_all(Reason reason, std::string_view why) {
  for (auto& r : reasons_) r = reason;
  why_ = why;
  set_reasons();
}

/// What the host decided becomes the queue's knowledge.
void Monitor::set_reasons() {
  integers_.settle(device::Access::update, "verdict of the host");
  finished_.settle(device::Access::update, "verdict of the host");
  std::vector<Scalar::Value> mask;
  for (std::size_t j = 0; j < reasons_.size(); ++j) {
    integers_.as<std::int64_t>()[kernel::reasons + std::int64_t(j)] = std::int64_t(reasons_[j]);
    mask.push_back(reasons_[j] == Reason::iterating ? 1.0 : 0.0);
  }
  *finished_.as<Number>() = Number(done() ? 1.0 : 0.0);
  mask_ = Scalar(std::move(mask));
}

Scalar Monitor::active() const { return mask_; }

bool Monitor::done() const {
  return std::none_of(reasons_.begin(), reasons_.end(), [](Reason r) { return r == Reason::iterating; });
}

Reason Monitor::reason() const {
  Reason worst = reasons_.empty() ? Reason::converged_atol : reasons_[0];
  for (auto const r : reasons_)
    if (std::int8_t(r) <= 0 ? (std::int8_t(worst) > 0 || std::int8_t(r) < std::int8_t(worst)) : false) worst = r;
  return worst;
}

void Monitor::resume(std::vector<double> const& true_norms) {
  offset_ = rows_taken_ = iterations_;
  resumed_ = true;
  for (std::size_t j = 0; j < reasons_.size(); ++j) {
    if (!converged(reasons_[j])) continue;
    if (true_norms[j] > targets_[j] && iterations_ < rule_.max_it) reasons_[j] = Reason::iterating;
  }
  set_reasons();
}

}  // namespace asterism::krylov
