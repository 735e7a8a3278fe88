#include "asterism/krylov/method.hpp"

namespace asterism::krylov {

std::map<std::string, MethodEntry> const& methods() {
  static std::map<std::string, MethodEntry> const all = {
      {"cg", cg_entry()},
      {"pipecg", pipecg_entry()},
      {"tfqmr", tfqmr_entry()},
      {"gmres", gmres_entry()},
      {"fgmres", fgmres_entry()},
      {"bicgstab", bicgstab_entry()},
      {"bcgs", bicgstab_entry()},
      {"minres", minres_entry()},
      {"chebyshev", chebyshev_entry()},
      {"preonly", preonly_entry()},
      {"richardson", richardson_entry()},
      {"bicg", bicg_entry()},
      {"idr", idr_entry()},
      {"cgs", cgs_entry()},
      {"cr", cr_entry()},
      {"gcr", gcr_entry()},
  };
  return all;
}

}  // namespace asterism::krylov
