#include "asterism/la/operator.hpp"

#include "asterism/base/error.hpp"

namespace asterism::la {

void Operator::apply_transpose(Vector const&, Vector&, bool) const {
  fail(ErrorKind::unsupported, "{} has no transposed product, which this method needs.", describe());
}

void Operator::apply_add(Vector const& x, Vector& y) const {
  auto product = y.like();
  apply(x, product);
  axpy(1.0, product, y);
}

void Operator::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  residual(b, x, y);
  multiply(w, y, y);
  axpy(1.0, x, y);
}

Vector Operator::diagonal() const {
  fail(ErrorKind::unsupported, "{} does not tell its diagonal. Give one (diagonal= of am.Operator), or P, a matrix near it.", describe());
}

void Operator::residual(Vector const& b, Vector const& x, Vector& r) const {
  apply(x, r);
  axpby(1.0, b, -1.0, r);
}

Scalar Operator::apply_and_dot(Vector const& x, Vector& y) const {
  apply(x, y);
  return dot(x, y);
}

}  // namespace asterism::la
