// "{}" formatting: g++ 12 has no <format>.
#pragma once
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace asterism {

namespace detail {
inline void put(std::string& out, std::string_view v) { out += v; }
inline void put(std::string& out, bool v) { out += v ? "true" : "false"; }
inline void put(std::string& out, char v) { out += v; }
template <class T>
  requires(std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
void put(std::string& out, T v) {
  out += std::to_string(v);
}
template <std::floating_point T>
void put(std::string& out, T v) {
  char buffer[40];
  auto const r = std::to_chars(buffer, buffer + sizeof buffer, double(v), std::chars_format::general, 6);
  out.append(buffer, r.ptr);
}
inline void format_into(std::string& out, std::string_view text) { out += text; }
template <class First, class... Rest>
void format_into(std::string& out, std::string_view text, First const& first, Rest const&... rest) {
  auto const at = text.find("{}");
  if (at == std::string_view::npos) {
    out += text;
    return;
  }
  out += text.substr(0, at);
  if constexpr (std::is_convertible_v<First const&, std::string_view>) put(out, std::string_view(first));
  else put(out, first);
  format_into(out, text.substr(at + 2), rest...);
}
}  // namespace detail

/// Replaces each "{}" by the next argument; numbers with six significant digits.
template <class... A>
std::string format(std::string_view text, A const&... args) {
  std::string out;
  out.reserve(text.size() + 16 * sizeof...(A));
  detail::format_into(out, text, args...);
  return out;
}

}  // namespace asterism
