#include "asterism/base/log.hpp"

#include <cstdio>
#include <mutex>

namespace asterism::log {
namespace {
std::mutex mutex;
Sink& sink() {
  static Sink s;
  return s;
}
}  // namespace

void set_sink(Sink s) {
  std::lock_guard lock(mutex);
  sink() = std::move(s);
}

void write(Level level, std::string const& text) {
  Sink s;
  {
    std::lock_guard lock(mutex);
    s = sink();
  }
  if (s) s(level, text);
  else if (level == Level::warning) std::fprintf(stderr, "asterism: %s\n", text.c_str());
}

}  // namespace asterism::log
