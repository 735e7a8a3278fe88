// Products and sums of distributed matrices.
#pragma once
#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "asterism/la/matrix.hpp"

namespace asterism::la {

enum class Form : std::uint8_t { plain, transposed, conjugate_transposed };

/// A matrix, or its transpose, in a product.
struct Factor {
  Matrix matrix;
  Form form = Form::plain;
  Space const& range() const { return form == Form::plain ? matrix.range() : matrix.domain(); }
  Space const& domain() const { return form == Form::plain ? matrix.domain() : matrix.range(); }
};

/// The product of two or more factors, the right ones first: A B, or R (A P). In the dtype that holds all factors. Every sum goes in
/// ascending inner index, so bits depend neither on the number of ranks nor on that of threads. Places where terms cancel stay. Collective;
/// an error on all ranks where shapes or layouts do not fit. Cost of A B: its multiplications, and the rows of B that A's columns on other
/// ranks ask for travel once. Inner products are in memory while they are needed.
Matrix product(std::span<Factor const> factors);

/// alpha A + beta B; the places of both, also where they cancel. What is known of A's rows, or else of B's. Collective.
Matrix sum(std::complex<double> alpha, Matrix const& A, std::complex<double> beta, Matrix const& B);
/// The same places, and alpha times the values, rounded once. A real matrix times a number that is not real is complex. Half of it is
/// stored where half of A is, but of a complex Hermitian one times such a number. Collective.
Matrix scaled(std::complex<double> alpha, Matrix const& A);
/// A^T or A^H as a matrix. What is known of a square A's rows is known of its. Collective.
Matrix transposed(Matrix const& A, bool conjugate);

/// A product whose places are found once: new values at the same places cost multiplications, and messages with values alone. Memory: the
/// factors' places, on several ranks or transposed their values too, the rows of other ranks, the inner products, the values of the first
/// product and of two more, and what ProductPlaces says.
class ProductPlan {
 public:
  /// The symbolic phase, and the first product. As product(), of two or more factors.
  explicit ProductPlan(std::span<Factor const> factors);
  /// Of the factors that it was made with.
  Matrix const& first() const;
  /// The numeric phase. The factors have the places that they had, which is checked; their dtype is one that the plan's holds. Bits as
  /// those of product(). Collective. Takes its turn where several threads ask at once.
  Matrix multiply(std::span<Matrix const> matrices) const;

 private:
  struct Steps;
  template <class T>
  struct StepsOf;
  std::vector<Factor> factors_;
  std::shared_ptr<Steps> steps_;
};

}  // namespace asterism::la
