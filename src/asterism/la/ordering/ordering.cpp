#include "asterism/la/ordering/ordering.hpp"

#include "asterism/base/error.hpp"

namespace asterism::la {

std::vector<std::int32_t> ordering_by_name(std::string const& name, Csr const& a) {
  if (name == "rcm") return reverse_cuthill_mckee(Graph(a));
  if (name == "nd") return nested_dissection(Graph(a));
  if (name == "colamd") return column_minimum_degree(a);
  ASTERISM_REQUIRE(name == "amd", option, "no ordering is called '{}': rcm, amd, nd, colamd.", name);
  return approximate_minimum_degree(Graph(a));
}

std::string library_of_ordering(std::string const& name) { return name == "nd" ? " by METIS" : name == "colamd" ? " by SuiteSparse" : ""; }

}  // namespace asterism::la
