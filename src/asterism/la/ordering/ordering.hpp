// Permutations that make factors small or near the diagonal. They look at the pattern of A + A^T, but for that of columns.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asterism/la/formats/csr.hpp"
#include "asterism/la/ordering/graph.hpp"

namespace asterism::la {

/// order[k]: the row and column that become the k-th. Reverse Cuthill-McKee (Cuthill and McKee 1969; George and Liu 1981), each component
/// from an end that George and Liu's search finds: a small profile. O(nnz log(entries of a row)). Looks for Ctrl-C.
std::vector<std::int32_t> reverse_cuthill_mckee(Graph const& g);

/// Approximate minimum degree (Amestoy, Davis and Duff 1996): little fill. A quotient graph in place, with elements absorbed, alike rows
/// merged, and rows with more than 10 sqrt(n) entries last. Looks for Ctrl-C.
std::vector<std::int32_t> approximate_minimum_degree(Graph const& g);

struct OrderWithWork {
  std::vector<std::int32_t> order;
  double flops = 0;  ///< of a factorisation of a symmetric matrix in that order, at least; exact where no row has too many entries
};

/// The same. It ends with a part of the order as soon as its flops pass the limit.
OrderWithWork minimum_degree_within(Graph const& g, double most_flops);

/// Nested dissection (George 1973; Karypis and Kumar 1998): for a 7-point grid of 60^3 points 0.6 of amd's fill, and several times
/// its time. By METIS, which is opened where it is found: what set_metis named, libmetis.so.5, or what the variable ASTERISM_METIS names
/// ("none": nowhere). An error with a hint where there is none. METIS looks for no Ctrl-C, so it does not begin where a time
/// limit (base/interrupt.hpp) is too near; threads that call it take turns.
std::vector<std::int32_t> nested_dissection(Graph const& g);

/// The file of METIS; empty: none was found.
std::string metis_library();

/// Where else to look. Before the first nested dissection; no effect after it.
void set_metis(std::string path);

/// Column approximate minimum degree (Davis, Gilbert, Larimore and Ng 2004): an order of columns for which A^T A has little fill, which
/// bounds that of L U whatever rows are exchanged. By SuiteSparse, which is opened where it is
/// found: libcolamd, or what the variable ASTERISM_COLAMD names ("none": nowhere). An error with a hint where there is none.
std::vector<std::int32_t> column_minimum_degree(Csr const& a);

/// rcm, amd, nd or colamd.
std::vector<std::int32_t> ordering_by_name(std::string const& name, Csr const& a);

/// " by METIS", and so on; empty: by this library.
std::string library_of_ordering(std::string const& name);

}  // namespace asterism::la
