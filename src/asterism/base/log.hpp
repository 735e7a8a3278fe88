// Messages to people go through one sink; the library never prints by itself.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "asterism/base/format.hpp"

namespace asterism::log {

enum class Level { debug, info, warning };
using Sink = std::function<void(Level, std::string const&)>;

/// Default: warnings to stderr. Python replaces it by the logger "asterism".
void set_sink(Sink sink);
void write(Level level, std::string const& text);

template <class... A>
void info(std::string_view text, A const&... args) {
  write(Level::info, format(text, args...));
}
template <class... A>
void warning(std::string_view text, A const&... args) {
  write(Level::warning, format(text, args...));
}

}  // namespace asterism::log
