#include "asterism/la/submatrix.hpp"

#include "bindings.hpp"

namespace asterism::python {

using I64 = nb::ndarray<std::int64_t, nb::device::cpu, nb::c_contig>;

void bind_submatrix(nb::module_& m) {
  using la::Redistribution;
  using la::Submatrix;
  nb::class_<Submatrix>(m, "Submatrix")
      .def("__init__",
           [](Submatrix* self, la::Matrix const& A, I64 const& rows, I64 const& columns) {
             GilRelease gil;
             new (self) Submatrix(A, {rows.data(), rows.size()}, {columns.data(), columns.size()});
           })
      .def_prop_ro("matrix", &Submatrix::matrix)
      .def("update", &Submatrix::update, nb::call_guard<GilRelease>());
  nb::class_<Redistribution>(m, "Redistribution")
      .def("__init__",
           [](Redistribution* self, comm::Layout const& from, I64 const& owners) {
             GilRelease gil;
             new (self) Redistribution(from, {owners.data(), owners.size()});
           })
      .def_prop_ro("order", &Redistribution::order)
      .def_prop_ro("forest", &Redistribution::forest)
      .def("matrix", nb::overload_cast<la::Matrix const&>(&Redistribution::matrix, nb::const_), nb::call_guard<GilRelease>());
}

}  // namespace asterism::python
