#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

std::map<std::string, PreconditionerEntry> const& preconditioners() {
  static std::map<std::string, PreconditionerEntry> const all = {
      {"none", none_entry()}, {"jacobi", jacobi_entry()}, {"chebyshev", chebyshev_entry()},
      {"sor", sor_entry()},   {"ilu", ilu_entry()},       {"bjacobi", block_jacobi_entry()},
      {"lu", lu_entry()},     {"amg", amg_entry()},       {"gamg", amg_entry()},
  };
  return all;
}

void Cast::apply(Vector const& x, Vector& y) const {
  Vector low_x(x.layout(), inner_->dtype(), x.columns(), x.context()), low_y(x.layout(), inner_->dtype(), x.columns(), x.context());
  copy(x, low_x);
  inner_->apply(low_x, low_y);
  copy(low_y, y);
}

std::string Cast::describe() const { return format("{} in {}", inner_->describe(), name_of(inner_->dtype())); }
std::string Cast::report() const { return inner_->report(); }

}  // namespace asterism::precond
