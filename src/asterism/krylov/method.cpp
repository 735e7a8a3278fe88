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

Scalar choose_shadow(Monitor const& monitor, Vector const& r, Vector& r0) {
  if (monitor.vain_starts() == 0) {
    copy(r, r0);
  } else {
    fill_hashed(r0, std::uint64_t(131 + monitor.vain_starts()));
    scale(norm(r) / norm(r0), r0);
  }
  return dot(r0, r);
}

}  // namespace asterism::krylov
