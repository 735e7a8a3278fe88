#include "asterism/krylov/verdict.kernels.hpp"

#include <cmath>

namespace asterism::krylov::kernel {
namespace {

using i64 = std::int64_t;

/// Columns that go on, in mask; all ended: nothing more is done.
ASTERISM_FN void conclude(i64 k, Verdict v, Number* mask) {
  bool goes_on = false;
  for (i64 j = 0; j < k; ++j) {
    bool const active = v.integers[reasons + j] == 0;
    mask[j] = Number(active ? 1.0 : 0.0);
    goes_on = goes_on || active;
  }
  if (!goes_on) *v.finished = Number(1.0);
}

ASTERISM_FN void note(Verdict v, i64 j, i64 what, double value, double other) {
  if (v.integers[trouble] != none) return;  // the first is told
  v.integers[trouble] = what;
  v.integers[trouble_iteration] = v.integers[iteration];
  v.integers[trouble_column] = j;
  v.numbers[trouble_value] = value;
  v.numbers[trouble_other] = other;
}

ASTERISM_FN bool finite(double x) { return x - x == 0; }

ASTERISM_FN bool is_bad(Bad what, Number x) { return what == Bad::zero ? x.re == 0 && x.im == 0 : !(x.re > 0); }

}  // namespace

namespace {

/// Whether the norm, `since` iterations after its mark, will not reach the target in time.
ASTERISM_FN bool is_stalled(Rule rule, i64 it, i64 mark_it, double mark, double norm, double target) {
  i64 const since = it - mark_it, before = mark_it - rule.start;
  if (rule.window == 0 || since < rule.window || since < before) return false;
  if (!rule.steady || norm >= mark) return true;
  double const left = std::log(target / norm) / std::log(norm / mark) * double(since);
  return left > 4.0 * double(rule.max_it - it);
}

}  // namespace

void check_norms(Executor& executor, i64 k, i64 it, Rule rule, Numbers<Number> values, i64* integers, double* numbers, Number* finished,
                 double* history, Number* out) {
  Verdict const v{integers, numbers, finished};
  Found const found{out, out + k, out + 2 * k};
  auto const norms = values.here();
  device::parallel_for(executor, 1, [=] ASTERISM_KERNEL(i64) {
    v.integers[iteration] = it;
    *found.stalling = Number(0.0);
    double* const of = v.numbers + firsts;
    for (i64 j = 0; j < k; ++j) {
      double const norm = norms[j].re;
      double &first = of[j], &target = of[k + j], &mark = of[2 * k + j], &saved = of[3 * k + j];
      i64& mark_it = v.integers[reasons + k + j];
      history[j] = norm;
      found.save[j] = Number(0.0);
      if (first < 0) {
        first = norm;
        if (rule.relative * norm > target) target = rule.relative * norm;
      }
      auto& reason = v.integers[reasons + j];
      if (reason != 0) continue;
      i64 const lost = i64(rule.starts_again ? Reason::start_again : Reason::iterating);
      if (!finite(norm)) {
        reason = lost ? lost : i64(Reason::diverged_nanorinf);
        note(v, j, norm_not_finite, norm, 0);
        continue;
      }
      if (norm <= target) {
        reason = i64(Reason::converged_rtol);
        continue;
      }
      if (norm > rule.divtol * (first < target ? target : first)) {
        reason = lost ? lost : i64(Reason::diverged_dtol);
        note(v, j, grew, norm, first);
      } else if (it >= rule.max_it) {
        reason = i64(Reason::diverged_its);
        note(v, j, too_many, norm, target);
      } else if (mark < 0 || norm < 0.9 * mark) {
        mark = norm;
        mark_it = it;
      } else if (is_stalled(rule, it, mark_it, mark, norm, target)) {
        reason = i64(Reason::start_again);
        note(v, j, stalled, norm, double(mark_it));
      } else if (it > mark_it && (it - mark_it) % stalling_every == 0) {
        *found.stalling = Number(1.0);
      }
      if (saved < 0) saved = norm;  // of where the method started
      if (rule.saves && norm < 0.5 * saved) {
        saved = norm;
        found.save[j] = Number(1.0);
      }
    }
    conclude(k, v, found.mask);
  });
}

void check_scalar(Executor& executor, i64 k, Bad what, Reason why, i64 site, Numbers<Number> scalars, i64* integers, double* numbers,
                  Number* finished, Number* mask) {
  Verdict const v{integers, numbers, finished};
  auto const values = scalars.here();
  device::parallel_for(executor, 1, [=] ASTERISM_KERNEL(i64) {
    for (i64 j = 0; j < k; ++j) {
      auto& reason = v.integers[reasons + j];
      if (reason != 0) continue;
      Number const value = values[j];
      bool const nan = value.re != value.re || value.im != value.im;
      if (!nan && !is_bad(what, value)) continue;
      reason = i64(nan && why != Reason::start_again ? Reason::diverged_nanorinf : why);
      note(v, j, nan ? i64(scalar_nan) : site, value.re, 0);
    }
    conclude(k, v, mask);
  });
}

void copy_verdict(Executor& executor, i64 k, i64 const* integers, double const* numbers, i64* to_integers, double* to_numbers) {
  device::parallel_for(executor, verdict_numbers(k), [=] ASTERISM_KERNEL(i64 i) {
    to_numbers[i] = numbers[i];
    if (i < verdict_integers(k)) to_integers[i] = integers[i];
  });
}

}  // namespace asterism::krylov::kernel
