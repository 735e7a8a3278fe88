#include "asterism/krylov/method.hpp"

namespace asterism::krylov {

std::map<std::string, MethodEntry> const& methods() {
#define NAMED(name) {#name, name##_entry()},
  static std::map<std::string, MethodEntry> const all = {ASTERISM_METHODS(NAMED){"bcgs", bicgstab_entry()}};  // PETSc's name
#undef NAMED
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
