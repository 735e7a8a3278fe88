// Matrices and vectors in files.
#include "asterism/la/io/archive.hpp"
#include "asterism/la/io/harwell_boeing.hpp"
#include "asterism/la/io/matrix_market.hpp"
#include "asterism/la/io/petsc_binary.hpp"
#include "bindings.hpp"

namespace asterism::python {
namespace {

using comm::Communicator;
using comm::Layout;
using la::Matrix;
using la::Vector;

nb::object to_numpy(Vector const& v) {
  auto const n = std::size_t(v.local_size()), k = std::size_t(v.columns());
  auto out = new_array(v.dtype(), k == 1 ? std::vector<std::size_t>{n} : std::vector<std::size_t>{n, k});
  auto target = as_vector(v.layout(), nb::cast<AnyArray>(out), "read_vector");
  copy(v, target);
  return out;
}

template <auto Read>
nb::object read_vector(std::string const& path, Layout const& layout) {
  Vector v;
  {
    GilRelease const gil;
    v = Read(path, layout);
  }
  return to_numpy(v);
}

template <class Write>
auto vector_writer(Write write) {
  return [write](std::string const& path, Layout const& layout, ReadArray const& x) {
    auto const v = as_vector(layout, x, "write_vector");
    GilRelease const gil;
    write(path, v);
  };
}

}  // namespace

void bind_files(nb::module_& m) {
  using Release = nb::call_guard<GilRelease>;
  m.def("read_matrix_market", &la::io::read_matrix_market, nb::arg("path"), nb::arg("comm"), nb::arg("block_size"), Release());
  m.def("matrix_market_header", [](std::string const& path) {
    auto const h = la::io::read_matrix_market_header(path);
    return nb::make_tuple(h.rows, h.cols, h.entries, h.coordinate, std::string(name_of(h.dtype())));
  });
  m.def("read_matrix_market_vector", &read_vector<&la::io::read_matrix_market_vector>);
  m.def("write_matrix_market_vector",
        vector_writer([](std::string const& path, Vector const& x) { la::io::write_matrix_market(path, x); }));
  m.def("write_matrix_market", [](std::string const& path, Matrix const& a) { la::io::write_matrix_market(path, a); }, Release());

  m.def("is_petsc_binary", &la::io::is_petsc_binary);
  m.def("petsc_vector_size", &la::io::petsc_vector_size);
  m.def("read_petsc_matrix", &la::io::read_petsc_matrix, nb::arg("path"), nb::arg("comm"), nb::arg("block_size"), Release());
  m.def("read_petsc_vector", &read_vector<&la::io::read_petsc_vector>);
  m.def("write_petsc_vector", vector_writer([](std::string const& path, Vector const& x) { la::io::write_petsc_binary(path, x); }));
  m.def("write_petsc_matrix", [](std::string const& path, Matrix const& a) { la::io::write_petsc_binary(path, a); }, Release());

  m.def("read_harwell_boeing", &la::io::read_harwell_boeing, nb::arg("path"), nb::arg("comm"), nb::arg("block_size"), Release());
  m.def("harwell_boeing_rows", &la::io::harwell_boeing_rows);
  m.def("read_harwell_boeing_rhs", &read_vector<&la::io::read_harwell_boeing_rhs>);

  m.def("write_archive", [](std::string const& path, Communicator const& comm, std::map<std::string, Matrix> matrices,
                            std::map<std::string, std::pair<Layout, ReadArray>> const& vectors, std::map<std::string, std::string> texts) {
    la::io::Archive things{std::move(matrices), {}, std::move(texts)};
    for (auto const& [name, v] : vectors) things.vectors.emplace(name, as_vector(v.first, v.second, name.c_str()));
    GilRelease const gil;
    la::io::write_archive(path, comm, things);
  });
  m.def("archive_names", [](std::string const& path) {
    auto names = la::io::archive_names(path);
    return nb::make_tuple(std::move(names.matrices), std::move(names.vectors));
  });
  m.def("read_archive_matrix", &la::io::read_archive_matrix, Release());
  m.def("read_archive_vector", [](std::string const& path, std::string const& name, Layout const& layout) {
    Vector v;
    {
      GilRelease const gil;
      v = la::io::read_archive_vector(path, name, layout);
    }
    return to_numpy(v);
  });
  m.def("read_archive", [](std::string const& path, Communicator const& comm) {
    la::io::Archive things;
    {
      GilRelease const gil;
      things = la::io::read_archive(path, comm);
    }
    nb::dict matrices, vectors, texts;
    for (auto const& [name, a] : things.matrices) matrices[name.c_str()] = a;
    for (auto const& [name, v] : things.vectors) vectors[name.c_str()] = to_numpy(v);
    for (auto const& [name, t] : things.texts) texts[name.c_str()] = nb::str(t.data(), t.size());
    return nb::make_tuple(matrices, vectors, texts);
  });
}

}  // namespace asterism::python
