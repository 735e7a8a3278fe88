// What to try after a solve that failed, by what is known of the matrix and what is in use.
#include "asterism/solve/solver.hpp"

namespace asterism::solve {
using krylov::Reason;

/// A preconditioner that is stronger, or fits the matrix better, than the one in use; with its options.
std::string Solver::other_preconditioner() const {
  auto const& now = preconditioner_type_;
  bool const definite = seen().hermitian && seen().positive_diagonal;
  std::string const direct = no_factors_.empty() ? ", or -ksp_type preonly -pc_type lu" : ", or am.least_squares if it is singular";
  if (M_) return "another M" + (A_->matrix() ? direct : "");
  if (!P_ && preconditioner_name().starts_with("gmg")) return "-pc_gmg_galerkin both, or a matrix near A as P";
  if (!P_)
    return std::string(preconditioner_->is_identity() && A_->coarsens() ? "-pc_type gmg, " : "") +
           "a matrix near A as P, or an approximate inverse as M";
  if ((now == "lu" || now == "cholesky") && P_is_A()) return "a wider dtype: this is a direct solution already";
  if (seen().zero_diagonals > 0) {
    std::string const matched = now == "ilut" ? "a smaller -pc_ilut_drop with a larger -pc_ilut_fill"
                                              : "-pc_type ilut -pc_factor_matching true -pc_ilut_drop 1e-6 -pc_ilut_fill 100";
    return format("{}{} ({} entries of the diagonal are zero){}", no_factors_.empty() ? "-ksp_type preonly -pc_type lu, or " : "", matched,
                  seen().zero_diagonals, no_factors_.empty() ? "" : direct);
  }
  if (definite) {
    if (now == "amg" || now == "gamg")
      return std::string(preconditioner_name().find("classical") == std::string::npos ? "-pc_amg_type classical, " : "") +
             "-mg_levels_ksp_type chebyshev -mg_levels_ksp_max_it 3, for several unknowns a node block_size and near_null_space or "
             "coordinates, "
             "or -pc_type icc -pc_factor_shift_type positive_definite" +
             direct;
    if (now == "icc") return "-pc_type amg" + direct;
    return "-pc_type amg or icc" + direct;
  }
  if (now == "ilu") return "-pc_factor_levels 2, or -pc_type ilut -pc_ilut_drop 1e-4 -pc_ilut_fill 10" + direct;
  if (now == "ilut") return "a smaller -pc_ilut_drop with a larger -pc_ilut_fill" + direct;
  return "-pc_type ilu or ilut" + direct;
}

std::string Solver::advice(Reason reason, double residual) const {
  std::string const accept = residual < 1e-2 ? "Accept this accuracy with a larger -ksp_rtol, or try " : "Try ";
  bool const is_gmres = method_name_ == "gmres" || method_name_ == "fgmres";
  bool const factors = preconditioner_type_ == "ilu" || preconditioner_type_ == "ilut" || preconditioner_type_ == "icc";
  std::string const method = is_gmres                                            ? ""
                             : inspection_.hermitian && method_name_ != "minres" ? "-ksp_type minres or gmres"
                                                                                 : "-ksp_type gmres";
  std::string const singular = null_space_.empty() && !A_->matrix() ? ""
                               : null_space_.empty()                ? " If the matrix is singular, give its null space (null_space=)."
                                                                    : "";
  switch (reason) {
    case Reason::diverged_its:
      return format("Try {}{}, or more -ksp_max_it.", other_preconditioner(), is_gmres ? ", a larger -ksp_gmres_restart" : "");
    case Reason::diverged_stagnated:
      if (bool const direct = preconditioner_type_ == "lu" || preconditioner_type_ == "cholesky"; !direct)
        return format("{}{}{}{}.", accept, epsilon_of(A_->dtype()) > 1e-10 ? "a wider dtype (float64), " : "", other_preconditioner(),
                      is_gmres ? ", or a larger -ksp_gmres_restart" : "");
      return format("{}{}.", accept, other_preconditioner());
    case Reason::diverged_indefinite_mat:
      return format("Use -ksp_type minres (Hermitian) or gmres.{}",
                    inspection_.positive_diagonal ? " If the matrix should be definite, look for a wrong sign."
                    : !P_                         ? ""
                                                  : " The diagonal has entries that are not positive: the matrix is indefinite.");
    case Reason::diverged_indefinite_pc:
      if (P_ && P_is_A() && !inspection_.positive_diagonal)
        return format("The diagonal of the matrix has {}: it is indefinite, and so is {}. Use {}{}.",
                      seen().zero_diagonals > 0 ? format("{} zeros", seen().zero_diagonals) : "entries of both signs", preconditioner_type_,
                      seen().zero_diagonals > 0 ? "" : "-ksp_type gmres with ", other_preconditioner());
      if (preconditioner_type_ == "ilu" || preconditioner_type_ == "icc")
        return "Use -pc_type icc -pc_factor_shift_type positive_definite, or amg, or -ksp_type gmres.";
      if (preconditioner_type_ == "amg" || preconditioner_type_ == "gamg")
        return "Use -pc_dtype float64, -mg_levels_ksp_type chebyshev, or -ksp_type gmres. If the matrix is indefinite, as that of waves, "
               "solve directly: -ksp_type preonly -pc_type lu.";
      return format("Use {}, or -ksp_type gmres.", M_                                 ? "an M that is positive definite"
                                                   : !P_                              ? "another -pc_type"
                                                   : preconditioner_type_ == "jacobi" ? "-pc_type amg"
                                                                                      : "-pc_type amg or jacobi");
    case Reason::diverged_breakdown:
      if (is_gmres)
        return format("Try {}: without it, or with another, it shows whether the matrix or the preconditioner is singular.{}",
                      M_ || preconditioner_type_ == "none" ? other_preconditioner() : "-pc_type none", singular);
      return format("Use {}.{}", method, singular);
    case Reason::diverged_dtol:
      return format("Try {}{}. Residuals of some methods grow for a while: a larger -ksp_divtol lets them.", other_preconditioner(),
                    is_gmres ? "" : ", or " + method);
    case Reason::diverged_nanorinf:
      if (factors) return format("The factors of {} may be unstable. Try {}.", preconditioner_type_, other_preconditioner());
      return format("Try {}.", other_preconditioner());
    default: return {};
  }
}

}  // namespace asterism::solve
