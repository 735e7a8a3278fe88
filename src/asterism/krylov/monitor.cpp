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

Monitor::Monitor(StopRule rule, std::vector<double> norms_b, comm::Communicator comm, Watcher watcher)
    : rule_(rule), comm_(std::move(comm)), watcher_(std::move(watcher)), reasons_(norms_b.size(), Reason::iterating) {
  for (auto const n : norms_b) targets_.push_back(std::max(rule.rtol * n, rule.atol));
}

bool Monitor::stop(std::int64_t it, Scalar const& residual_norm) {
  it += offset_;
  auto const k = reasons_.size();
  std::vector<double> norms(k);
  for (std::size_t j = 0; j < k; ++j) norms[j] = residual_norm.real(residual_norm.width() == 1 ? 0 : std::int64_t(j));
  iterations_ = it;
  if (std::int64_t(history_.size()) > it) history_[std::size_t(it)] = norms;  // the restart of a resumed solve
  else history_.push_back(norms);
  if (first_.empty()) first_ = norms;
  for (std::size_t j = 0; j < k; ++j) {
    if (reasons_[j] != Reason::iterating) continue;
    double const r = norms[j];
    if (!std::isfinite(r)) {
      reasons_[j] = Reason::diverged_nanorinf;
      if (why_.empty()) why_ = format("the residual norm became {} at iteration {}", r, it);
    } else if (r <= targets_[j]) {
      reasons_[j] = rule_.atol > 0 && r <= rule_.atol && targets_[j] <= rule_.atol ? Reason::converged_atol : Reason::converged_rtol;
    } else if (r > rule_.divtol * std::max(first_[j], targets_[j])) {
      reasons_[j] = Reason::diverged_dtol;
      if (why_.empty()) why_ = format("the residual norm grew from {} to {} by iteration {}", first_[j], r, it);
    } else if (it >= rule_.max_it) {
      reasons_[j] = Reason::diverged_its;
      if (why_.empty()) why_ = format("after {} iterations the residual norm is {}, the target {}", it, r, targets_[j]);
    }
  }
  if (watcher_ && !(resumed_ && it == offset_)) watcher_(it, norms);
  // Ctrl-C reaches one rank; all must leave together, so they ask each other now and then
  if (it % 16 == 0 || comm_.size() == 1) {
    bool const mine = interrupt_requested();
    if (comm_.size() == 1 ? mine : comm_.max(std::int64_t(mine)) != 0)
      set_all(Reason::diverged_interrupted, format("interrupted at iteration {}", it));
  }
  return done();
}

bool Monitor::break_down_if(Scalar const& value, bool (*bad)(Scalar::Value), Reason reason, std::string_view why) {
  for (std::size_t j = 0; j < reasons_.size(); ++j) {
    if (reasons_[j] != Reason::iterating) continue;
    auto const v = value.value(value.width() == 1 ? 0 : std::int64_t(j));
    if (std::isnan(v.real()) || std::isnan(v.imag())) {
      reasons_[j] = Reason::diverged_nanorinf;
      if (why_.empty()) why_ = format("a scalar of the method became NaN at iteration {}", iterations_);
    } else if (bad(v)) {
      reasons_[j] = reason;
      if (why_.empty()) why_ = format("{} ({} at iteration {})", why, v.real(), iterations_);
    }
  }
  return done();
}

void Monitor::break_down(Reason reason, std::string_view why) {
  for (auto& r : reasons_)
    if (r == Reason::iterating) r = reason;
  if (why_.empty()) why_ = format("{} (iteration {})", why, iterations_);
}

void Monitor::set_all(Reason reason, std::string_view why) {
  for (auto& r : reasons_) r = reason;
  why_ = why;
}

Scalar Monitor::active() const {
  std::vector<Scalar::Value> mask;
  for (auto const r : reasons_) mask.push_back(r == Reason::iterating ? 1.0 : 0.0);
  return Scalar(std::move(mask));
}

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
  offset_ = iterations_;
  resumed_ = true;
  for (std::size_t j = 0; j < reasons_.size(); ++j) {
    if (!converged(reasons_[j])) continue;
    if (true_norms[j] > targets_[j] && iterations_ < rule_.max_it) reasons_[j] = Reason::iterating;
  }
}

}  // namespace asterism::krylov
