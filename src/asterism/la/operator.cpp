#include "asterism/la/operator.hpp"

#include "asterism/base/error.hpp"
#include "asterism/comm/communicator/failures.hpp"

namespace asterism::la {

void require_distinct(char const* what, char const* name, Vector const& given, char const* result_name, Vector const& result) {
  auto const &from = given.data(), &to = result.data();
  // one array of NumPy may be wrapped twice; vectors without entries here may have no address
  bool const same =
      result.local_size() == 0 ? &given == &result : from.raw() == to.raw() && (from.raw() != nullptr || from.buffer() == to.buffer());
  ASTERISM_REQUIRE(!same, value, "{}: {} and {} are the same vector; they must differ.", what, name, result_name);
}

void Operator::apply_transpose(Vector const&, Vector&, bool) const {
  fail(ErrorKind::unsupported, "{} has no transposed product, which this method needs.", describe());
}

void Operator::apply_add(Vector const& x, Vector& y) const {
  auto product = y.like();
  apply(x, product);
  axpy(1.0, product, y);
}

void Operator::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  comm::collective(range().comm(), "weighted step", [&] {
    require_distinct("weighted step", "w", w, "y", y);
    residual(b, x, y);
    multiply(w, y, y);
    axpy(1.0, x, y);
  });
}

Scalar Operator::smooth_and_dot(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  smooth(b, x, w, y);
  return dot(b, y);
}

Vector Operator::diagonal() const {
  fail(ErrorKind::unsupported, "{} does not tell its diagonal. Give one (diagonal= of am.Operator), or P, a matrix near it.", describe());
}

void Operator::residual(Vector const& b, Vector const& x, Vector& r) const {
  comm::collective(range().comm(), "residual", [&] {
    require_distinct("residual", "b", b, "r", r);
    apply(x, r);
    axpby(1.0, b, -1.0, r);
  });
}

Scalar Operator::apply_and_dot(Vector const& x, Vector& y) const {
  apply(x, y);
  return dot(x, y);
}

}  // namespace asterism::la
