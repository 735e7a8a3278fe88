#include "asterism/la/assembly.hpp"

#include "bindings.hpp"
#include "queue_vector.hpp"

namespace asterism::python {

using la::Assembly;
using la::Matrix;
using Indices = nb::ndarray<std::int64_t const, nb::device::cpu, nb::c_contig>;

void bind_assembly(nb::module_& m) {
  nb::class_<Assembly>(m, "Assembly")
      .def("__init__",
           [](Assembly* self, comm::Layout const& rows, comm::Layout const& columns, Indices const& i, Indices const& j) {
             nb::gil_scoped_release const gil;
             new (self) Assembly(rows, columns, {i.data(), i.size()}, {j.data(), j.size()});
           })
      .def_prop_ro("entries", &Assembly::entries)
      .def_prop_ro("nnz", &Assembly::nnz)
      .def(
          "matrix",
          [](Assembly const& a, QueueVector const& values, std::optional<Matrix> const& base) {
            nb::gil_scoped_release const gil;
            return a.matrix(values.value, base ? &*base : nullptr);
          },
          nb::arg("values"), nb::arg("base").none())
      .def(
          "matrix_of_array",
          [](Assembly const& a, ReadArray const& values, std::optional<Matrix> const& base) {
            auto const dtype = dtype_of_array(values);
            auto const size = std::int64_t(values.size()), rows = values.ndim() > 0 ? std::int64_t(values.shape(0)) : 1;
            nb::gil_scoped_release const gil;
            // of this process alone: that it fits is looked at on all ranks together
            auto const view = la::Vector::wrap(comm::Layout(comm::Communicator(), rows), dtype, rows > 0 ? size / rows : 1,
                                               la::Array::wrap(const_cast<void*>(values.data()), size_of(dtype) * values.size(), nullptr));
            return a.matrix(view, base ? &*base : nullptr);
          },
          nb::arg("values"), nb::arg("base").none());
}

}  // namespace asterism::python
