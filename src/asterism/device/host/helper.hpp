// A thread beside the team that does something over and over while there is a reason to.
#pragma once
#include <functional>
#include <memory>

namespace asterism::device::host {

class Helper {
 public:
  explicit Helper(std::function<void()> step);
  /// Waits for its thread.
  ~Helper();
  Helper(Helper const&) = delete;
  /// Between begin and end, counted, the thread runs; it sleeps else.
  void begin();
  void end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::device::host
