// The options of a solver itself, beside those of its method and its preconditioner.
#pragma once
#include "asterism/base/options.hpp"

namespace asterism::solve {

OptionTable const& method_table();
OptionTable const& preconditioner_table();
/// What each rank may have its own way: where its work runs, what it prints, what is its process's alone.
bool may_differ_between_ranks(std::string_view option);
/// What holds from now on for everything in the process.
void apply_process_options(OptionReader& r);

}  // namespace asterism::solve
