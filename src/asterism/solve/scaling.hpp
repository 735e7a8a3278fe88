// Systems whose numbers are near the ends of their dtype's range, solved as systems whose numbers are not.
//
// With A' = +-2^a A and b' = 2^e b (an e for each column), A' x' = b' has the solution x' = +-2^(e - a) x. Powers of two change no bit of
// a number, so where nothing overflows or underflows the iterates are the same.
#pragma once
#include <memory>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::solve {

/// What A, and a matrix that preconditioners are made from, are multiplied with: 2^exponent or its negative.
struct MatrixScale {
  int exponent = 0;
  bool negated = false;
  bool is_one() const { return exponent == 0 && !negated; }
};

/// The exponent that brings the largest entry of a matrix near 1; 0 where it is near enough for squares and products to be safe.
int scaling_exponent(double largest, Dtype dtype);

/// A times a power of two, or its negative. A matrix is copied; of another operator the products are scaled.
std::shared_ptr<la::Operator const> scaled(std::shared_ptr<la::Operator const> const& A, MatrixScale const& by);
/// Its inverse: an approximate inverse of A becomes one of A'.
std::shared_ptr<la::Operator const> scaled_inverse(std::shared_ptr<la::Operator const> const& M, MatrixScale const& by);

/// The right-hand sides and initial guesses of one solve.
class ScaledColumns {
 public:
  /// largest_A: the largest entry of A', or its size by another measure.
  ScaledColumns(MatrixScale const& scale, double largest_A, la::Entries const& b, la::Entries const& x, Dtype dtype);
  /// Nothing is scaled, and no guess dropped: b and x can be worked with as they are.
  bool nothing_to_do() const;
  /// ||b|| is so many times ||b'||.
  double unit(std::size_t j) const;
  la::Vector scaled_b(la::Vector const& b) const;
  /// Guesses beside which b is nothing are zero.
  la::Vector scaled_guess(la::Vector const& x) const;
  /// x from x'.
  void unscale(la::Vector const& from, la::Vector& x) const;
  /// x' from x.
  void rescale(la::Vector const& x, la::Vector& to) const;
  std::vector<std::size_t> const& dropped_guesses() const { return dropped_; }

 private:
  MatrixScale scale_;
  std::vector<int> exponents_;  ///< of b'
  std::vector<std::size_t> dropped_;
};

}  // namespace asterism::solve
