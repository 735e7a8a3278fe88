#include "asterism/la/assembly/assembly.hpp"

#include "asterism/la/assembly/builder.hpp"
#include "asterism/la/assembly/vector_assembly.hpp"
#include "bindings.hpp"
#include "queue_vector.hpp"

namespace asterism::python {

using la::Assembly;
using la::Builder;
using la::Matrix;
using la::VectorAssembly;
using Indices = nb::ndarray<std::int64_t const, nb::device::cpu, nb::c_contig>;

namespace {
/// As a vector of this process alone: that it fits is looked at on all ranks together.
la::Vector given_values(ReadArray const& values) {
  auto const dtype = dtype_of_array(values);
  auto const size = std::int64_t(values.size()), rows = values.ndim() > 0 ? std::int64_t(values.shape(0)) : 1;
  return la::Vector::wrap(comm::Layout(comm::Communicator(), rows), dtype, rows > 0 ? size / rows : 1,
                          la::Array::wrap(const_cast<void*>(values.data()), size_of(dtype) * values.size(), nullptr));
}
}  // namespace

void bind_assembly(nb::module_& m) {
  nb::class_<Assembly>(m, "Assembly")
      .def("__init__",
           [](Assembly* self, comm::Layout const& rows, comm::Layout const& columns, Indices const& i, Indices const& j) {
             GilRelease const gil;
             new (self) Assembly(rows, columns, {i.data(), i.size()}, {j.data(), j.size()});
           })
      .def_prop_ro("entries", &Assembly::entries)
      .def_prop_ro("nnz", &Assembly::nnz)
      .def(
          "matrix",
          [](Assembly const& a, QueueVector const& values, std::optional<Matrix> const& base) {
            GilRelease const gil;
            return a.matrix(values.value, base ? &*base : nullptr);
          },
          nb::arg("values"), nb::arg("base").none())
      .def(
          "matrix_of_array",
          [](Assembly const& a, ReadArray const& values, std::optional<Matrix> const& base) {
            auto const given = given_values(values);
            GilRelease const gil;
            return a.matrix(given, base ? &*base : nullptr);
          },
          nb::arg("values"), nb::arg("base").none());

  nb::class_<VectorAssembly>(m, "VectorAssembly")
      .def("__init__",
           [](VectorAssembly* self, comm::Layout const& rows, Indices const& i, bool replace, std::string const& remote) {
             GilRelease const gil;
             new (self) VectorAssembly(rows, {i.data(), i.size()}, replace, la::remote_from_name(remote));
           })
      .def_prop_ro("entries", &VectorAssembly::entries)
      .def_prop_ro("rows", &VectorAssembly::rows)
      .def("vector",
           [](VectorAssembly const& a, QueueVector const& values) {
             GilRelease const gil;
             return QueueVector(a.vector(values.value));
           })
      .def("vector_of_array", [](VectorAssembly const& a, ReadArray const& values) {
        auto const given = given_values(values);
        auto const out = [&] {
          GilRelease const gil;
          return a.vector(given);
        }();
        auto array = new_array(out.dtype(), {std::size_t(out.local_size())});
        auto const bytes = std::size_t(out.local_size()) * size_of(out.dtype());
        if (bytes > 0) std::memcpy(nb::cast<AnyArray>(array).data(), out.data().raw(), bytes);
        return array;
      });

  using Give = void (Builder::*)(std::int64_t, std::span<std::int64_t const>, std::span<std::int64_t const>, void const*);
  auto const give = [](Give how) {
    return [how](Builder& b, std::int64_t count, Indices const& i, Indices const& j, ReadArray const& v) {
      ASTERISM_ASSERT(dtype_of_array(v) == b.dtype());
      GilRelease const gil;
      (b.*how)(count, {i.data(), i.size()}, {j.data(), j.size()}, v.data());
    };
  };
  nb::class_<Builder>(m, "Builder")
      .def("__init__",
           [](Builder* self, comm::Layout const& rows, comm::Layout const& columns, std::string const& dtype, std::string const& remote) {
             new (self) Builder(rows, columns, dtype_from_name(dtype), la::remote_from_name(remote));
           })
      .def("add", give(&Builder::add))
      .def("insert", give(&Builder::insert))
      .def("flush", &Builder::flush)
      .def("matrix", &Builder::matrix, nb::call_guard<GilRelease>())
      .def_prop_ro("rows", &Builder::rows)
      .def_prop_ro("entries", &Builder::entries);
}

}  // namespace asterism::python
