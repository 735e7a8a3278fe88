// What this build needs and what this machine gives.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace asterism {

std::string_view version();
/// compiler, instruction set of the kernels, BLAS...
std::map<std::string, std::string> build_info();
/// Throws UnsupportedError if the kernels were compiled for instructions that this CPU lacks: an error
/// at import instead of a crash later.
void check_cpu();

}  // namespace asterism
