#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

std::map<std::string, PreconditionerEntry> const& preconditioners() {
#define NAMED(name, function) {name, function##_entry()},
  static std::map<std::string, PreconditionerEntry> const all = {ASTERISM_PRECONDITIONERS(NAMED){"gamg", amg_entry()}};  // PETSc's name
#undef NAMED
  return all;
}

void Preconditioner::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  if (conjugate || !is_complex(dtype_)) return apply_adjoint(x, y);
  auto conjugated = x.like();  // M^T x = conj(M^H conj(x))
  la::conjugate(x, conjugated);
  apply_adjoint(conjugated, y);
  la::conjugate(y, y);
}

void Preconditioner::apply_adjoint(Vector const& x, Vector& y) const {
  ASTERISM_REQUIRE(self_adjoint_, unsupported,
                   "the preconditioner '{}' has no transpose unless the matrix is Hermitian. Use -pc_type ilu, jacobi or none.",
                   describe());
  apply(x, y);
}

/// low(x, v) with x in its precision, and v to work in.
template <class F>
void Cast::in_precision(Vector const& x, F const& low) const {
  auto const work = work_.lease(x, [&] {
    Vector const u(x.space(), inner_->dtype(), x.columns(), x.queue());
    return std::pair(u, u.like());
  });
  copy(x, work->first);
  low(work->first, work->second);
}

void Cast::apply(Vector const& x, Vector& y) const {
  in_precision(x, [&](Vector const& u, Vector& v) {
    inner_->apply(u, v);
    copy(v, y);
  });
}

void Cast::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  in_precision(x, [&](Vector const& u, Vector& v) {
    inner_->apply_transpose(u, v, conjugate);
    copy(v, y);
  });
}

std::string Cast::describe() const { return format("{} in {}", inner_->describe(), name_of(inner_->dtype())); }
std::string Cast::report() const { return inner_->report(); }

}  // namespace asterism::precond
