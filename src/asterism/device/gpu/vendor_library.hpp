// Libraries of the GPU's vendor, which are used where they are found.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace asterism::device::gpu {

/// Where else to look than the system does: the folders of wheels, for one.
void set_library_folders(std::vector<std::string> folders);

/// Opened for good; false: not found, and why.
class VendorLibrary {
 public:
  /// names: of the file, the best first. `variable` of the environment names another file, or is "none".
  VendorLibrary(std::vector<std::string> const& names, char const* variable);
  explicit operator bool() const { return handle_ != nullptr; }
  std::string const& why_not() const { return why_not_; }
  /// The function of that name; an error where there is none, if it is needed.
  template <class F>
  void find(F*& function, char const* name, bool needed = true) const {
    function = reinterpret_cast<F*>(symbol(name, needed));
  }

 private:
  void* symbol(char const* name, bool needed) const;
  void* handle_ = nullptr;
  std::string why_not_;
};

}  // namespace asterism::device::gpu
