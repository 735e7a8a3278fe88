// What LSMR and LSQR have in common: the bidiagonalisation of Golub and Kahan (1965), and the rules by which they stop.
#pragma once
#include <cmath>
#include <string>

#include "asterism/krylov/least_squares.hpp"

namespace asterism::krylov {

struct Rotation {  // (c s; s -c) (a; b) = (r; 0)
  double c, s, r;
  Rotation(double a, double b) : c(1), s(0), r(std::hypot(a, b)) {
    if (r > 0) c = a / r, s = b / r;
  }
};

/// A V = U B with orthonormal columns and a lower bidiagonal B, from beta u = b - A x on. Checks b and x first.
class GolubKahan {
 public:
  GolubKahan(la::Operator const& A, la::Vector const& b, la::Vector const& x, char const* method);
  /// beta u = A v - alpha u, alpha v = A^H u - beta v: two products, two messages.
  void step();
  la::Vector u, v;
  double alpha = 0, beta = 0;

 private:
  la::Operator const& A_;
  la::Vector Av_, Au_;
};

/// Whether and why to stop now, by Paige and Saunders' numbers (0: not), of what info says; throws where norms are not finite and,
/// every 16 iterations, on an interrupt. Collective.
int stop_now(LeastSquaresInfo const& info, LeastSquaresRule const& rule, std::int64_t max_it, double norm_b, la::Vector const& b,
             char const* method);

}  // namespace asterism::krylov
