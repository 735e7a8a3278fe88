#include "asterism/device/gpu/vendor_library.hpp"

#include <mutex>

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

std::vector<std::string> also_in_folders(std::vector<std::string> const& names) {
  auto paths = names;
  std::lock_guard const lock(folders().mutex);
  for (auto const& folder : folders().all)
    for (auto const& name : names) paths.push_back(folder + "/" + name);
  return paths;
}
}  // namespace

void set_library_folders(std::vector<std::string> all) {
  std::lock_guard const lock(folders().mutex);
  folders().all = std::move(all);
}

VendorLibrary::VendorLibrary(std::vector<std::string> const& names, char const* variable)
    : SharedLibrary(also_in_folders(names), variable) {}

}  // namespace asterism::device::gpu
