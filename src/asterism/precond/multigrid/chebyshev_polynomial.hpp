// Chebyshev polynomials in D^-1 A: a preconditioner of their own, and smoothers of multigrid.
#pragma once
#include <vector>

#include "asterism/la/operator.hpp"

namespace asterism::precond {

enum class ChebyshevKind : std::uint8_t {
  first,       ///< smallest on [lo, hi]: Saad (2003), algorithm 12.1
  fourth,      ///< on (0, hi], smallest where a V-cycle needs it: Lottes (2023), algorithm 3.1
  opt_fourth,  ///< the same with the coefficients that make the bound of a V-cycle smallest: Lottes (2023), section 4
};
/// As users write it.
char const* name_of(ChebyshevKind kind);
/// The largest degree that the optimal coefficients are known for.
inline constexpr std::int64_t most_opt_fourth = 6;

struct ChebyshevPolynomial {
  la::Vector weights;     ///< the inverse diagonal
  double lo = 0, hi = 0;  ///< the part of the spectrum of diag(weights) A that is damped; of the fourth kind hi alone is read
  std::int64_t degree = 1;
  ChebyshevKind kind = ChebyshevKind::first;
  /// Of the adjoint: W p(A W) = p(W A) W, so that the same steps with A^H and conj(W) make the adjoint of what these make.
  ChebyshevPolynomial adjoint() const;
};

/// The numbers at which the polynomial that errors are multiplied with is zero: steps x + w .* (b - A x) / root, one for each, make what
/// chebyshev() makes, but for rounding. In Leja's order, which keeps what is between small.
std::vector<double> roots_of(ChebyshevPolynomial const& p);

/// `degree` steps on x for A x = b; from x = 0, whatever x holds, if `fresh`. r, d and, for opt_fourth, t are scratch. Costs a product with
/// A a step (the first one is saved if fresh) and 6 n values moved besides (opt_fourth 8 n); no sums, so nothing travels but the ghosts.
void chebyshev(la::Operator const& A, ChebyshevPolynomial const& p, la::Vector const& b, la::Vector& x, la::Vector& r, la::Vector& t,
               la::Vector& d, bool fresh);

}  // namespace asterism::precond
