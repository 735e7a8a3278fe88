// The options of a solver itself, beside those of its method and its preconditioner; and those of the whole process.
#pragma once
#include <map>
#include <string>

#include "asterism/base/options.hpp"

namespace asterism::solve {

OptionTable const& method_table();
OptionTable const& preconditioner_table();
/// Options of PETSc's that are not offered, and what takes their place.
std::map<std::string, std::string> const& names_elsewhere();
/// What each rank may have its own way: where its work runs, what it prints, what is its process's alone.
bool may_differ_between_ranks(std::string_view option);
/// What holds for everything in the process. A solver does not take them.
OptionTable const& process_table();
/// Sets those that are given, from now on.
void apply_process_options(Options const& options);
/// Those that were set, and to what.
std::map<std::string, std::string> process_settings();

}  // namespace asterism::solve
