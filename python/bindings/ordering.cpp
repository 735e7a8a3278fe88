#include "bindings.hpp"

#include "asterism/la/matrix.hpp"
#include "asterism/la/ordering/matching.hpp"
#include "asterism/la/ordering/ordering.hpp"

namespace asterism::python {

/// Of this process's diagonal block.
void bind_ordering(nb::module_& m) {
  m.def(
      "matching",
      [](la::Matrix const& A) {
        auto f = la::maximum_product_matching(A.diagonal_block());
        return std::tuple(f.structural_rank, f.column_of_row, f.row_of_column, f.row_scale, f.column_scale, f.empty_row, f.empty_column);
      },
      nb::call_guard<GilRelease>());
  m.def(
      "ordering", [](la::Matrix const& A, std::string const& type) { return la::ordering_by_name(type, A.diagonal_block()); },
      nb::call_guard<GilRelease>());
  m.def("set_metis", &la::set_metis);
  m.def("metis_library", &la::metis_library);
}

}  // namespace asterism::python
