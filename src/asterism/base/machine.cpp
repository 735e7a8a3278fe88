#include "asterism/base/machine.hpp"

#include "asterism/base/error.hpp"

extern "C" {
extern const bool asterism_kernels_use_avx512;
extern const bool asterism_kernels_use_avx2;
extern const char asterism_kernels_arch[];
}

namespace asterism {

std::string_view version() { return ASTERISM_VERSION; }

std::map<std::string, std::string> build_info() {
  return {{"compiler", __VERSION__},
          {"arch", asterism_kernels_arch},
          {"kernels", asterism_kernels_use_avx512 ? "AVX-512"
                      : asterism_kernels_use_avx2 ? "AVX2"
                                                  : "baseline"}};
}

void check_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  ASTERISM_REQUIRE(
      !asterism_kernels_use_avx512 || __builtin_cpu_supports("avx512f"), unsupported,
      "this build uses AVX-512, which this CPU does not have. Reinstall on this machine, or build with ASTERISM_ARCH=x86-64-v3.");
  ASTERISM_REQUIRE(!asterism_kernels_use_avx2 || __builtin_cpu_supports("avx2"), unsupported,
                   "this build uses AVX2, which this CPU does not have. Reinstall on this machine, or build with ASTERISM_ARCH=x86-64-v2.");
#endif
}

}  // namespace asterism
