#include "bindings.hpp"

#include "asterism/comm/star_forest.hpp"

namespace asterism::python {

void bind_comm(nb::module_& m) {
  using comm::Communicator;
  m.def("load_mpi", &comm::load_mpi_plugin);
  m.def("mpi_abi", []() -> std::optional<std::string> {
    if (!comm::mpi()) return std::nullopt;
    return comm::mpi()->abi;
  });
  nb::class_<Communicator>(m, "Communicator")
      .def(nb::init<>())
      .def_static("from_handle", &Communicator::from_handle)
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def("barrier", &Communicator::barrier, nb::call_guard<nb::gil_scoped_release>())
      .def("sum", nb::overload_cast<std::int64_t>(&Communicator::sum, nb::const_), nb::call_guard<nb::gil_scoped_release>())
      .def("max", nb::overload_cast<double>(&Communicator::max, nb::const_), nb::call_guard<nb::gil_scoped_release>())
      .def("bcast", nb::overload_cast<std::string, int>(&Communicator::bcast, nb::const_), nb::call_guard<nb::gil_scoped_release>())
      .def(
          "agree",
          [](Communicator const& c, std::optional<std::string> const& text) {
            nb::gil_scoped_release gil;
            comm::agree_on(c, text ? std::optional<Error>(Error(ErrorKind::value, *text)) : std::nullopt);
          },
          nb::arg("error").none());
  nb::class_<comm::Layout>(m, "Layout")
      .def(nb::init<Communicator const&, std::int64_t>(), nb::call_guard<nb::gil_scoped_release>())
      .def_static("even", &comm::Layout::even)
      .def_prop_ro("local_size", &comm::Layout::local_size)
      .def_prop_ro("global_size", &comm::Layout::global_size)
      .def_prop_ro("begin", &comm::Layout::begin)
      .def_prop_ro("end", &comm::Layout::end)
      .def("fits", &comm::Layout::fits);

  using I64 = nb::ndarray<std::int64_t, nb::device::cpu, nb::c_contig>;
  nb::class_<comm::StarForest>(m, "StarForest")
      .def(
          "__init__",
          [](comm::StarForest* self, Communicator const& c, std::int64_t roots, std::optional<I64> const& local, I64 const& remote,
             std::int64_t leaf_space) {
            std::optional<std::vector<std::int64_t>> leaves;
            if (local) leaves.emplace(local->data(), local->data() + local->size());
            std::vector<comm::RemoteRoot> roots_of(remote.size() / 2);
            for (std::size_t e = 0; e < roots_of.size(); ++e) roots_of[e] = {remote.data()[2 * e], remote.data()[2 * e + 1]};
            nb::gil_scoped_release gil;
            new (self) comm::StarForest(c, roots, std::move(leaves), roots_of, leaf_space);
          },
          nb::arg("comm"), nb::arg("nroots"), nb::arg("local").none(), nb::arg("remote"), nb::arg("leaf_space"))
      .def_prop_ro("nroots", &comm::StarForest::roots)
      .def_prop_ro("nleaves", &comm::StarForest::leaves)
      .def_prop_ro("leaf_space", &comm::StarForest::leaf_space)
      .def("root_ranks", &comm::StarForest::root_ranks)
      .def("leaf_ranks", &comm::StarForest::leaf_ranks)
      .def("degree", &comm::StarForest::degree, nb::call_guard<nb::gil_scoped_release>())
      .def("bcast",
           [](comm::StarForest const& sf, AnyArray const& root, AnyArray const& leaf, std::int64_t k) {
             auto const* from = static_cast<std::byte const*>(root.data());
             auto* to = static_cast<std::byte*>(leaf.data());
             auto const unit = std::int64_t(root.itemsize()) * k;
             nb::gil_scoped_release gil;
             sf.bcast(from, to, unit);
           })
      .def("reduce", [](comm::StarForest const& sf, AnyArray const& leaf, AnyArray const& root, std::int64_t k, std::string const& op) {
        auto const o = op == "sum"   ? comm::ReduceOp::sum
                       : op == "max" ? comm::ReduceOp::max
                       : op == "min" ? comm::ReduceOp::min
                                     : comm::ReduceOp::replace;
        auto const go = [&]<class T>(Tag<T>) {
          auto const* from = static_cast<T const*>(leaf.data());
          auto* to = static_cast<T*>(root.data());
          nb::gil_scoped_release gil;
          sf.reduce(from, to, o, k);
        };
        if (leaf.dtype() == nb::dtype<std::int64_t>()) go(Tag<std::int64_t>{});
        else if (leaf.dtype() == nb::dtype<std::int32_t>()) go(Tag<std::int32_t>{});
        else with_dtype(dtype_of_array(leaf), go);
      });
}

}  // namespace asterism::python
