#include "asterism/device/gpu/vendor_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "asterism/base/error.hpp"

namespace asterism::device::gpu {
namespace {
struct Folders {
  std::mutex mutex;
  std::vector<std::string> all;
};
Folders& folders() {
  static auto* const f = new Folders;
  return *f;
}
}  // namespace

void set_library_folders(std::vector<std::string> all) {
  std::lock_guard const lock(folders().mutex);
  folders().all = std::move(all);
}

VendorLibrary::VendorLibrary(std::vector<std::string> const& names, char const* variable) {
  std::vector<std::string> paths;
  if (auto const* const given = std::getenv(variable); given && *given) {
    if (std::string_view(given) == "none") {
      why_not_ = format("{} is none", variable);
      return;
    }
    paths = {given};
  } else {
    paths = names;
    std::lock_guard const lock(folders().mutex);
    for (auto const& folder : folders().all)
      for (auto const& name : names) paths.push_back(folder + "/" + name);
  }
  for (auto const& path : paths) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    if (why_not_.empty()) why_not_ = dlerror();
  }
}

void* VendorLibrary::symbol(char const* name, bool needed) const {
  void* const found = handle_ ? dlsym(handle_, name) : nullptr;
  ASTERISM_REQUIRE(found || !needed, unsupported, "the vendor's library has no {}: too old a version.", name);
  return found;
}

}  // namespace asterism::device::gpu
