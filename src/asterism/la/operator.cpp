#include "asterism/la/operator.hpp"

#include "asterism/base/error.hpp"

namespace asterism::la {

void Operator::apply_transpose(Vector const&, Vector&, bool) const {
  fail(ErrorKind::unsupported, "{} has no transposed product, which this method needs.", describe());
}

void Operator::residual(Vector const& b, Vector const& x, Vector& r) const {
  apply(x, r);
  axpby(1.0, b, -1.0, r);
}

std::pair<Scalar, Scalar> Operator::apply_and_dot(Vector const& x, Vector& y) const {
  apply(x, y);
  std::pair<Vector const*, Vector const*> const both[] = {{&x, &y}, {&x, &x}};
  auto const d = dots(both);
  return {d[0], real_part(d[1])};
}

}  // namespace asterism::la
