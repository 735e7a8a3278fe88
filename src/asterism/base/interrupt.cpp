#include "asterism/base/interrupt.hpp"

namespace asterism {
namespace {
std::function<bool()>& poll() {
  static std::function<bool()> p;
  return p;
}
}  // namespace

void set_interrupt_poll(std::function<bool()> p) { poll() = std::move(p); }
bool interrupt_requested() { return poll() && poll()(); }

}  // namespace asterism
