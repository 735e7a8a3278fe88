#include "asterism/base/shared_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "asterism/base/error.hpp"

namespace asterism {

SharedLibrary::SharedLibrary(std::vector<std::string> const& paths, char const* variable) {
  auto const* const given = std::getenv(variable);
  bool const chosen = given && *given;
  if (chosen && std::string_view(given) == "none") {
    why_not_ = format("{} is none", variable);
    return;
  }
  for (auto const& path : chosen ? std::vector<std::string>{given} : paths) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      path_ = path;
      return;
    }
    if (why_not_.empty()) why_not_ = dlerror();
  }
}

void* SharedLibrary::symbol(std::string const& name, bool needed) const {
  void* const found = handle_ ? dlsym(handle_, name.c_str()) : nullptr;
  ASTERISM_REQUIRE(found || !needed, unsupported, "{} has no {}: too old a version.", path_, name);
  return found;
}

}  // namespace asterism
