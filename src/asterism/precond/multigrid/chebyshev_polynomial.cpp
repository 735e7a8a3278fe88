#include "asterism/precond/multigrid/chebyshev_polynomial.hpp"

namespace asterism::precond {
namespace {

using la::Operator;
using la::Vector;

/// Lottes (2023), table 1: beta_1 ... beta_k of degree k. Tests find them again from what defines them.
constexpr double optimal[most_opt_fourth][most_opt_fourth] = {
    {1.12500000000000},
    {1.02387287570313, 1.26408905371085},
    {1.00842544782028, 1.08867839208730, 1.33753125909618},
    {1.00391310427285, 1.04035811188593, 1.14863498546254, 1.38268869241000},
    {1.00212930146164, 1.02173711549260, 1.07872433192603, 1.19810065292663, 1.41322542791682},
    {1.00128517255940, 1.01304293035233, 1.04678215124113, 1.11616489419675, 1.23829020222444, 1.43524297106744}};

/// The first step of x, by the residual of the start.
void first_step(Operator const& A, double b0, Vector const& w, Vector const& b, Vector& x, Vector& r, Vector& d, bool fresh) {
  if (fresh) {
    fill(x, 0.0);
    chebyshev_step(0, b0, w, b, d, x);
  } else {
    A.residual(b, x, r);
    chebyshev_step(0, b0, w, r, d, x);
  }
}

void first_kind(Operator const& A, ChebyshevPolynomial const& p, Vector const& b, Vector& x, Vector& r, Vector& d, bool fresh) {
  double const theta = (p.hi + p.lo) / 2, delta = (p.hi - p.lo) / 2, sigma = theta / delta;
  double rho = 1 / sigma;
  first_step(A, 1 / theta, p.weights, b, x, r, d, fresh);
  for (std::int64_t k = 1; k < p.degree; ++k) {
    A.residual(b, x, r);
    double const next = 1 / (2 * sigma - rho);
    chebyshev_step(next * rho, 2 * next / delta, p.weights, r, d, x);
    rho = next;
  }
}

void fourth_kind(Operator const& A, ChebyshevPolynomial const& p, Vector const& b, Vector& x, Vector& r, Vector& d, bool fresh) {
  first_step(A, 4 / (3 * p.hi), p.weights, b, x, r, d, fresh);
  for (std::int64_t k = 1; k < p.degree; ++k) {
    A.residual(b, x, r);
    auto const i = double(k);
    chebyshev_step((2 * i - 1) / (2 * i + 3), (8 * i + 4) / ((2 * i + 3) * p.hi), p.weights, r, d, x);
  }
}

/// Here x moves by d = beta z, where z is the step of the fourth kind; r is what the steps z leave, times the beta of the step before.
void optimal_fourth_kind(Operator const& A, ChebyshevPolynomial const& p, Vector const& b, Vector& x, Vector& r, Vector& t, Vector& d,
                         bool fresh) {
  auto const& beta = optimal[p.degree - 1];
  first_step(A, beta[0] * 4 / (3 * p.hi), p.weights, b, x, r, d, fresh);
  Vector *now = &r, *next = &t;
  for (std::int64_t k = 1; k < p.degree; ++k) {
    auto const i = double(k);
    if (k == 1 && fresh) axpby(beta[0], b, 0.0, *now);
    else scale(k == 1 ? beta[0] : beta[k - 1] / beta[k - 2], *now);
    A.residual(*now, d, *next);
    std::swap(now, next);
    chebyshev_step(beta[k] / beta[k - 1] * (2 * i - 1) / (2 * i + 3), beta[k] / beta[k - 1] * (8 * i + 4) / ((2 * i + 3) * p.hi), p.weights,
                   *now, d, x);
  }
}

}  // namespace

char const* name_of(ChebyshevKind kind) {
  return kind == ChebyshevKind::first ? "first" : kind == ChebyshevKind::fourth ? "fourth" : "opt_fourth";
}

ChebyshevPolynomial ChebyshevPolynomial::adjoint() const {
  auto out = *this;
  out.weights = weights.like();
  la::conjugate(weights, out.weights);
  return out;
}

void chebyshev(Operator const& A, ChebyshevPolynomial const& p, Vector const& b, Vector& x, Vector& r, Vector& t, Vector& d, bool fresh) {
  switch (p.kind) {
    case ChebyshevKind::first: return first_kind(A, p, b, x, r, d, fresh);
    case ChebyshevKind::fourth: return fourth_kind(A, p, b, x, r, d, fresh);
    case ChebyshevKind::opt_fourth: return optimal_fourth_kind(A, p, b, x, r, t, d, fresh);
  }
}

}  // namespace asterism::precond
