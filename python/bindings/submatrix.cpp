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
             nb::gil_scoped_release gil;
             new (self) Submatrix(A, {rows.data(), rows.size()}, {columns.data(), columns.size()});
           })
      .def_prop_ro("matrix", &Submatrix::matrix)
      .def("update", &Submatrix::update, nb::call_guard<nb::gil_scoped_release>());
  nb::class_<Redistribution>(m, "Redistribution")
      .def("__init__",
           [](Redistribution* self, comm::Layout const& from, I64 const& owners) {
             nb::gil_scoped_release gil;
             new (self) Redistribution(from, {owners.data(), owners.size()});
           })
      .def_prop_ro("order", &Redistribution::order)
      .def_prop_ro("forest", &Redistribution::forest)
      .def("matrix", nb::overload_cast<la::Matrix const&>(&Redistribution::matrix, nb::const_), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace asterism::python
