// Libraries that are used where they are found, so that nothing is needed to build with them.
#pragma once
#include <string>
#include <vector>

namespace asterism {

/// Opened for good; false: not found, and why.
class SharedLibrary {
 public:
  SharedLibrary() = default;
  /// paths: of the file, the best first. `variable` of the environment names another file, or is "none".
  SharedLibrary(std::vector<std::string> const& paths, char const* variable);
  explicit operator bool() const { return handle_ != nullptr; }
  std::string const& path() const { return path_; }
  std::string const& why_not() const { return why_not_; }
  /// The function of that name; an error where there is none, if it is needed.
  template <class F>
  void find(F*& function, std::string const& name, bool needed = true) const {
    function = reinterpret_cast<F*>(symbol(name, needed));
  }

 private:
  void* symbol(std::string const& name, bool needed) const;
  void* handle_ = nullptr;
  std::string path_, why_not_;
};

}  // namespace asterism
