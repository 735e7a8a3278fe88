#include "asterism/la/largest_eigenvalue.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace asterism::la {

ExtremeEigenvalues extreme_eigenvalues(Operator const& A, Operator const& M, Vector const& like, int steps) {
  ExtremeEigenvalues out;
  // Lanczos on M A in the M-inner product, through the coefficients of CG for a hashed right-hand side
  Vector r(like.space(), like.dtype(), 1, like.queue());
  auto z = r.like(), p = r.like(), q = r.like();
  fill_hashed(r, 7);
  std::vector<double> diagonal, off;
  M.apply(r, z);
  copy(z, p);
  double rz = real_part(dot(r, z)).real(), alpha_old = 1, beta_old = 0;
  out.definite = !(rz < 0);
  for (int k = 0; k < steps && rz > 0; ++k) {
    A.apply(p, q);
    double const pq = real_part(dot(p, q)).real();
    if (!(pq > 0)) {
      out.definite = false;
      break;
    }
    double const alpha = rz / pq;
    diagonal.push_back(1 / alpha + (k ? beta_old / alpha_old : 0));
    if (k) off.push_back(std::sqrt(beta_old) / alpha_old);
    ++out.steps;
    if (out.steps == steps) break;
    axpy(-alpha, q, r);
    M.apply(r, z);
    double const rz_new = real_part(dot(r, z)).real();
    beta_old = rz_new / rz;
    alpha_old = alpha;
    rz = rz_new;
    out.definite = !(rz < 0);
    aypx(beta_old, z, p);
  }
  auto const n = diagonal.size();
  if (n == 0) return out;
  double bound = 0;
  for (std::size_t i = 0; i < n; ++i)
    bound = std::max(bound, diagonal[i] + (i ? std::abs(off[i - 1]) : 0) + (i + 1 < n ? std::abs(off[i]) : 0));
  // how many roots of the tridiagonal matrix are above x: Sturm's count
  auto const above = [&](double x) {
    std::size_t count = 0;
    double d = 1;
    for (std::size_t i = 0; i < n; ++i) {
      d = diagonal[i] - x - (i ? off[i - 1] * off[i - 1] / d : 0);
      if (d == 0) d = 1e-300;
      count += d > 0;
    }
    return count;
  };
  auto const root = [&](std::size_t more) {  // by bisection: the largest x that more than so many are above
    double lo = 0, hi = bound;
    for (int it = 0; it < 60; ++it) {
      double const mid = (lo + hi) / 2;
      (above(mid) > more ? lo : hi) = mid;
    }
    return hi;
  };
  out.most = root(0);
  out.least = root(n - 1);
  return out;
}

double largest_eigenvalue(Operator const& A, Operator const& M, Vector const& like, int steps) {
  return extreme_eigenvalues(A, M, like, steps).most;
}

}  // namespace asterism::la
