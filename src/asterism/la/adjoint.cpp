#include "asterism/la/adjoint.hpp"

namespace asterism::la {

void Adjoint::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  if (conjugate || !is_complex(dtype())) return of_->apply(x, y);
  auto conjugated = x.like();  // conj(A) x = conj(A conj(x))
  la::conjugate(x, conjugated);
  of_->apply(conjugated, y);
  la::conjugate(y, y);
}

Vector Adjoint::diagonal() const {
  auto d = of_->diagonal();
  la::conjugate(d, d);
  return d;
}

}  // namespace asterism::la
