// A solver as a preconditioner: -pc_type ksp, with its own method and preconditioner under the prefix ksp_.
#include "asterism/precond/preconditioner.hpp"

namespace asterism::precond {

PreconditionerEntry inner_solver_entry() {
  static OptionTable const none;
  return {
      [](Nest const& nest, Matrix const& A) { return nest.make_solver(nest.config.nested("ksp_"), std::make_shared<Matrix>(A), "auto"); },
      &none, "a solver of its own: -ksp_ksp_type, -ksp_pc_type, -ksp_ksp_max_it and so on", false,
      [](Nest const& nest, OperatorPtr const& A) { return nest.make_solver(nest.config.nested("ksp_"), A, "none"); }};
}

}  // namespace asterism::precond
