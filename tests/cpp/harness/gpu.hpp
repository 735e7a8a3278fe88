// Which GPU the tests have: a real one (ASTERISM_TEST_GPU), or the plug-in's source on threads of the host.
#pragma once
#include <cstdlib>
#include <string_view>

inline bool on_the_emulated_gpu() {
  auto const* const plugin = std::getenv("ASTERISM_GPU_PLUGIN");
  return plugin && std::string_view(plugin).find("emulated") != std::string_view::npos;
}
