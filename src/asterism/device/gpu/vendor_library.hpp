// Libraries of the GPU's vendor, which are used where they are found.
#pragma once
#include <string>
#include <vector>

#include "asterism/base/shared_library.hpp"

namespace asterism::device::gpu {

/// Where else to look than the system does: the folders of wheels, for one.
void set_library_folders(std::vector<std::string> folders);

/// One of these files, where the system finds it or in those folders.
class VendorLibrary : public SharedLibrary {
 public:
  VendorLibrary(std::vector<std::string> const& names, char const* variable);
};

}  // namespace asterism::device::gpu
