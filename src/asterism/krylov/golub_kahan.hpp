// What LSMR and LSQR have in common: the bidiagonalisation of Golub and Kahan (1965), and the rules by which they stop.
#pragma once
#include <cmath>
#include <functional>

#include "asterism/krylov/least_squares.hpp"

namespace asterism::krylov {

struct Rotation {  // (c s; s -c) (a; b) = (r; 0)
  double c, s, r;
  Rotation(double a, double b) : c(1), s(0), r(std::hypot(a, b)) {
    if (r > 0) c = a / r, s = b / r;
  }
};

/// A V = U B with orthonormal columns and a lower bidiagonal B, from beta u = b - A x on; and when to stop. Checks b and x first.
class GolubKahan {
 public:
  using Watch = std::function<void(std::int64_t, double, double)>;
  /// All but x are kept by reference.
  GolubKahan(la::Operator const& A, la::Vector const& b, la::Vector const& x, LeastSquaresRule const& rule, Watch const& watch,
             char const* method);
  /// beta u = A v - alpha u, alpha v = A^H u - beta v: two products, two messages.
  void step();
  /// Whether to stop, by what info says of x, and why (info.stop). Tells the watcher. Throws where norms are not finite and, every 16
  /// iterations, on an interrupt. Collective.
  bool ended(la::Vector& x);
  la::Vector u, v;
  double alpha = 0, beta = 0;
  LeastSquaresInfo info;

 private:
  int rule_that_holds() const;
  la::Operator const& A_;
  LeastSquaresRule const& rule_;
  Watch const& watch_;
  char const* method_;
  la::Vector Av_, Au_;
  std::int64_t max_it_;
  double norm_b_;
};

}  // namespace asterism::krylov
