// An estimate of the 1-norm of an operator from some of its products.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "asterism/base/complex.hpp"

namespace asterism::direct {

/// ||M||_1 from below, mostly within a factor of 3 (Hager 1984; Higham 1988, algorithm 4.1). apply(x): x becomes M x; apply_adjoint(x): M^H
/// x. Cost: four or five products of each kind at most.
template <class T, class Apply, class Adjoint>
double estimate_norm1(std::int64_t n, Apply const& apply, Adjoint const& apply_adjoint) {
  if (n == 0) return 0;
  auto const norm1 = [](std::vector<T> const& x) {
    double sum = 0;
    for (auto const v : x) sum += double(magnitude(v));
    return sum;
  };
  std::vector<T> x(std::size_t(n), T(real_t<T>(1) / real_t<T>(n)));
  double best = 0;
  std::int64_t place = -1;
  for (int step = 0; step < 5; ++step) {
    apply(x);
    double const now = norm1(x);
    if (!std::isfinite(now)) return now;
    if (now <= best) break;
    best = now;
    for (auto& v : x) {
      auto const size = magnitude(v);
      v = size > 0 ? v / T(size) : T(1);
    }
    apply_adjoint(x);
    std::int64_t largest = 0;
    for (std::int64_t i = 1; i < n; ++i)
      if (magnitude(x[std::size_t(i)]) > magnitude(x[std::size_t(largest)])) largest = i;
    if (largest == place) break;
    place = largest;
    x.assign(std::size_t(n), T(0));
    x[std::size_t(place)] = T(1);
  }
  // entries of alternating sign find what cancels above
  for (std::int64_t i = 0; i < n; ++i) {
    real_t<T> const size = n > 1 ? real_t<T>(1) + real_t<T>(i) / real_t<T>(n - 1) : real_t<T>(1);
    x[std::size_t(i)] = T(i % 2 ? -size : size);
  }
  apply(x);
  return std::max(best, 2 * norm1(x) / (3 * double(n)));
}

/// ||M||_2 from below, by two steps of the power method from this rank's part of a random x, which is lost. apply(transposed): x becomes
/// M x, or M^T x. sum(v): of all ranks. n: rows of M.
template <class T, class Apply, class Sum>
double norm_by_two_steps(std::int64_t n, std::vector<T>& x, Apply const& apply, Sum const& sum) {
  auto const norm2 = [&] {
    double own = 0;
    for (auto const v : x) own += double(magnitude(v)) * double(magnitude(v));
    return std::sqrt(sum(own));
  };
  apply(false);
  double const first = norm2();
  if (!std::isfinite(first)) return first;
  for (auto& v : x) v = T(real_t<T>(1 / std::max(first, 1e-30))) * conj(v);
  apply(true);
  return std::max(first / std::sqrt(std::max(1.0, double(n))), norm2());
}

/// ||A^-1||_1 by estimate_norm1 from solves with A, solve(false, x), and with A^T, solve(true, x).
template <class T, class Solve>
double estimate_inverse_norm1(std::int64_t n, Solve const& solve) {
  auto const conjugated = [](std::vector<T>& x) {
    for (auto& v : x) v = conj(v);
  };
  auto const adjoint = [&](std::vector<T>& x) {
    conjugated(x);
    solve(true, x.data());
    conjugated(x);
  };
  return estimate_norm1<T>(n, [&](std::vector<T>& x) { solve(false, x.data()); }, adjoint);
}

/// Whether two solves with A show that its condition number in the 1-norm, ||A||_1 = norm, is far below the limit.
template <class T, class Solve>
bool condition_is_below(double limit, double norm, std::int64_t n, Solve const& solve) {
  std::vector<T> x(static_cast<std::size_t>(n));
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (auto& v : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = T(real_t<T>(double(state >> 11) * 0x1p-52 - 1));
  }
  double const size = norm_by_two_steps(n, x, [&](bool transposed) { solve(transposed, x.data()); }, [](double sum) { return sum; });
  return 10 * std::sqrt(double(n)) * norm * size <= limit;  // sqrt(n) is between the norms
}

}  // namespace asterism::direct
