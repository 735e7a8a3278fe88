#pragma once
#include "asterism/stencil/table.hpp"

namespace asterism::stencil::kernel {

/// For bricks with the arrays, neighbours and order of generated kernels.
template <class T>
void run_table(Table const& table, Arguments const& a);

}  // namespace asterism::stencil::kernel
