#include "asterism/precond/multigrid/chebyshev_polynomial.hpp"

#include <algorithm>
#include <array>
#include <cmath>

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

/// What the optimal polynomial of the fourth kind leaves of an error at a share of hi.
double left_by_optimal(std::int64_t degree, double at) {
  double x = 0, y = 0, z = 0;  // for A = at and the solution 1
  for (std::int64_t k = 0; k < degree; ++k) {
    auto const i = double(k);
    z = (k == 0 ? 0 : (2 * i - 1) / (2 * i + 3) * z) + (k == 0 ? 4.0 / 3 : (8 * i + 4) / (2 * i + 3)) * at * (1 - y);
    y += z, x += optimal[degree - 1][k] * z;
  }
  return 1 - x;
}

/// One between any two points of a fine enough grid where the sign changes, by bisection.
std::vector<double> searched_roots_of_optimal(std::int64_t degree) {
  constexpr int points = 1024;
  std::vector<double> out;
  for (int n = 0; n < points; ++n) {
    double low = double(n) / points, high = double(n + 1) / points;
    bool const positive = left_by_optimal(degree, low) > 0;
    if (positive == (left_by_optimal(degree, high) > 0)) continue;
    for (int halved = 0; halved < 60; ++halved) {
      double const middle = (low + high) / 2;
      ((left_by_optimal(degree, middle) > 0) == positive ? low : high) = middle;
    }
    out.push_back((low + high) / 2);
  }
  return out;
}

/// Found once: each level of a set-up asks.
std::vector<double> roots_of_optimal(std::int64_t degree) {
  static auto const all = [] {
    std::array<std::vector<double>, most_opt_fourth + 1> out;
    for (std::size_t d = 1; d < out.size(); ++d) out[d] = searched_roots_of_optimal(std::int64_t(d));
    return out;
  }();
  return all[std::size_t(degree)];
}

}  // namespace

std::vector<double> roots_of(ChebyshevPolynomial const& p) {
  double const pi = std::acos(-1.0);
  auto const n = double(p.degree);
  std::vector<double> left;
  if (p.kind == ChebyshevKind::opt_fourth) {
    left = roots_of_optimal(p.degree);
    for (auto& r : left) r *= p.hi;
  } else {
    for (std::int64_t k = 1; k <= p.degree; ++k)
      left.push_back(p.kind == ChebyshevKind::first ? (p.hi + p.lo) / 2 + (p.hi - p.lo) / 2 * std::cos((2 * double(k) - 1) * pi / (2 * n))
                                                    : p.hi / 2 * (1 - std::cos(2 * double(k) * pi / (2 * n + 1))));
  }
  std::vector<double> out;
  while (!left.empty()) {  // the one that is farthest from those before it, by the product of distances; first the largest
    auto const distance = [&](double r) {
      double log = out.empty() ? std::log(r) : 0;
      for (double const before : out) log += std::log(std::abs(r - before));
      return log;
    };
    auto const next = std::max_element(left.begin(), left.end(), [&](double a, double b) { return distance(a) < distance(b); });
    out.push_back(*next);
    left.erase(next);
  }
  return out;
}

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
