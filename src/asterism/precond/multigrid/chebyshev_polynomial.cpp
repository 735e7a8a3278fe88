#include "asterism/precond/multigrid/chebyshev_polynomial.hpp"

namespace asterism::precond {

ChebyshevPolynomial ChebyshevPolynomial::adjoint() const {
  auto out = *this;
  out.weights = weights.like();
  la::conjugate(weights, out.weights);
  return out;
}

void chebyshev(la::Operator const& A, ChebyshevPolynomial const& p, la::Vector const& b, la::Vector& x, la::Vector& r, la::Vector& d,
               bool fresh) {
  double const theta = (p.hi + p.lo) / 2, delta = (p.hi - p.lo) / 2, sigma = theta / delta;
  double rho = 1 / sigma;
  if (fresh) {
    fill(x, 0.0);
    chebyshev_step(0, 1 / theta, p.weights, b, d, x);
  } else {
    A.residual(b, x, r);
    chebyshev_step(0, 1 / theta, p.weights, r, d, x);
  }
  for (std::int64_t k = 1; k < p.degree; ++k) {
    A.residual(b, x, r);
    double const next = 1 / (2 * sigma - rho);
    chebyshev_step(next * rho, 2 * next / delta, p.weights, r, d, x);
    rho = next;
  }
}

}  // namespace asterism::precond
