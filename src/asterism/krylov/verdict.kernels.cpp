#include "asterism/krylov/verdict.kernels.hpp"

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

ASTERISM_FN void note(Verdict v, i64 what, double value, double other) {
  if (v.integers[trouble] != none) return;  // the first is told
  v.integers[trouble] = what;
  v.integers[trouble_iteration] = v.integers[iteration];
  v.numbers[trouble_value] = value;
  v.numbers[trouble_other] = other;
}

ASTERISM_FN bool finite(double x) { return x - x == 0; }

ASTERISM_FN bool is_bad(Bad what, Number x) { return what == Bad::zero ? x.re == 0 && x.im == 0 : !(x.re > 0); }

}  // namespace

void check_norms(Queue& q, i64 k, i64 it, Rule rule, Numbers<Number> values, i64* integers, double* numbers, Number* finished,
                 double* history, Number* mask) {
  Verdict const v{integers, numbers, finished};
  auto const norms = values.here();
  device::parallel_for(q, 1, [=] ASTERISM_KERNEL(i64) {
    v.integers[iteration] = it;
    for (i64 j = 0; j < k; ++j) {
      double const norm = norms[j].re, target = v.numbers[firsts + k + j];
      history[j] = norm;
      double& first = v.numbers[firsts + j];
      if (first < 0) first = norm;
      auto& reason = v.integers[reasons + j];
      if (reason != 0) continue;
      if (!finite(norm)) {
        reason = i64(Reason::diverged_nanorinf);
        note(v, norm_not_finite, norm, 0);
      } else if (norm <= target) {
        reason = i64(rule.atol > 0 && norm <= rule.atol && target <= rule.atol ? Reason::converged_atol : Reason::converged_rtol);
      } else if (norm > rule.divtol * (first < target ? target : first)) {
        reason = i64(Reason::diverged_dtol);
        note(v, grew, norm, first);
      } else if (it >= rule.max_it) {
        reason = i64(Reason::diverged_its);
        note(v, too_many, norm, target);
      }
    }
    conclude(k, v, mask);
  });
}

void check_scalar(Queue& q, i64 k, Bad what, Reason why, i64 site, Numbers<Number> scalars, i64* integers, double* numbers,
                  Number* finished, Number* mask) {
  Verdict const v{integers, numbers, finished};
  auto const values = scalars.here();
  device::parallel_for(q, 1, [=] ASTERISM_KERNEL(i64) {
    for (i64 j = 0; j < k; ++j) {
      auto& reason = v.integers[reasons + j];
      if (reason != 0) continue;
      Number const value = values[j];
      bool const nan = value.re != value.re || value.im != value.im;
      if (!nan && !is_bad(what, value)) continue;
      reason = i64(nan ? Reason::diverged_nanorinf : why);
      if (reason < 0) note(v, nan ? i64(scalar_nan) : site, value.re, 0);
    }
    conclude(k, v, mask);
  });
}

void copy_verdict(Queue& q, i64 k, i64 const* integers, double const* numbers, i64* to_integers, double* to_numbers) {
  device::parallel_for(q, firsts + 2 * k, [=] ASTERISM_KERNEL(i64 i) {
    to_numbers[i] = numbers[i];
    if (i < reasons + k) to_integers[i] = integers[i];
  });
}

}  // namespace asterism::krylov::kernel
