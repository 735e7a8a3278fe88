#include "asterism/la/largest_eigenvalue.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace asterism::la {

double largest_eigenvalue(Operator const& A, Operator const& M, Vector const& like, int steps) {
  // Lanczos on M A in the M-inner product, through the coefficients of CG for a hashed right-hand side
  Vector r(like.space(), like.dtype(), 1, like.queue());
  auto z = r.like(), p = r.like(), q = r.like();
  fill_hashed(r, 7);
  std::vector<double> diagonal, off;
  M.apply(r, z);
  copy(z, p);
  double rz = real_part(dot(r, z)).real(), alpha_old = 1, beta_old = 0;
  for (int k = 0; k < steps && rz > 0; ++k) {
    A.apply(p, q);
    double const pq = real_part(dot(p, q)).real();
    if (!(pq > 0)) break;
    double const alpha = rz / pq;
    diagonal.push_back(1 / alpha + (k ? beta_old / alpha_old : 0));
    if (k) off.push_back(std::sqrt(beta_old) / alpha_old);
    axpy(-alpha, q, r);
    M.apply(r, z);
    double const rz_new = real_part(dot(r, z)).real();
    beta_old = rz_new / rz;
    alpha_old = alpha;
    rz = rz_new;
    aypx(beta_old, z, p);
  }
  // largest root of the tridiagonal matrix by bisection on the Sturm count
  auto const n = diagonal.size();
  if (n == 0) return 1;
  double lo = 0, hi = 0;
  for (std::size_t i = 0; i < n; ++i) hi = std::max(hi, diagonal[i] + (i ? std::abs(off[i - 1]) : 0) + (i + 1 < n ? std::abs(off[i]) : 0));
  for (int it = 0; it < 60; ++it) {
    double const mid = (lo + hi) / 2;
    int above = 0;
    double d = 1;
    for (std::size_t i = 0; i < n; ++i) {
      d = diagonal[i] - mid - (i ? off[i - 1] * off[i - 1] / d : 0);
      if (d == 0) d = 1e-300;
      above += d > 0;
    }
    (above > 0 ? lo : hi) = mid;
  }
  return hi;
}

}  // namespace asterism::la
