#include "bindings.hpp"

#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/roll_call.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/comm/communicator/shared_array.hpp"
#include "asterism/comm/layout/layout.hpp"
#include "asterism/comm/node/node.hpp"

namespace asterism::python {

comm::TransportChoice transport_of(std::optional<std::string> const& name) {
  return name ? comm::transport_from_name(*name) : comm::default_transport();
}

namespace {
/// A collective call of a Python function; what it calls here is part of it.
struct PythonCall {
  comm::Communicator comm;
  std::unique_ptr<comm::CollectiveCall> call;
};

ErrorKind kind_named(std::string const& name) {
  auto kind = ErrorKind{};
  while (kind != ErrorKind::internal && name_of(kind) != name) kind = ErrorKind(std::uint8_t(kind) + 1);
  return kind;
}
}  // namespace

void bind_comm(nb::module_& m) {
  using comm::Communicator;
  nb::class_<PythonCall>(m, "CollectiveCall")
      .def("failed",
           [](PythonCall const& c, std::string const& text, std::string const& kind) {
             GilRelease const gil;
             c.call->failed(kind_named(kind), text);
           })
      .def("end", [](PythonCall& c) { c.call.reset(); }, nb::call_guard<GilRelease>());
  m.def("load_mpi", &comm::load_mpi_plugin);
  m.def("set_stack", [](nb::object const& f) {
    comm::roll_call::set_stack([held = keep(f)] {
      GilAcquire const gil;
      return nb::cast<std::string>(nb::handle(static_cast<PyObject*>(held.get()))());
    });
  });
  m.def("mpi_abi", []() -> std::optional<std::string> {
    if (!comm::mpi()) return std::nullopt;
    return comm::mpi()->abi;
  });
  m.def("collective_calls_begun", &comm::CollectiveCall::begun);
  nb::class_<Communicator>(m, "Communicator")
      .def(nb::init<>())
      .def_static("from_handle", &Communicator::from_handle, nb::call_guard<GilRelease>())
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def_prop_ro("is_broken", [](Communicator const& c) { return c.size() > 1 && c.failures().broken; })
      .def(
          "begin_call",
          [](Communicator const& c, std::string const& name) {
            auto call = std::make_unique<PythonCall>(PythonCall{c, nullptr});
            call->call = std::make_unique<comm::CollectiveCall>(call->comm, name.c_str());
            return call;
          },
          nb::call_guard<GilRelease>())
      .def("barrier", &Communicator::barrier, nb::call_guard<GilRelease>())
      .def("sum", nb::overload_cast<std::int64_t>(&Communicator::sum, nb::const_), nb::call_guard<GilRelease>())
      .def("max", nb::overload_cast<double>(&Communicator::max, nb::const_), nb::call_guard<GilRelease>())
      .def("bcast", nb::overload_cast<std::string, int>(&Communicator::bcast, nb::const_), nb::call_guard<GilRelease>())
      .def("all_gather_text",
           [](Communicator const& c, std::string const& mine) {
             std::vector<std::int64_t> lengths;
             std::vector<std::byte> all;
             {
               GilRelease gil;
               all = c.all_gather_bytes(std::as_bytes(std::span(mine)), &lengths);
             }
             std::vector<std::string> out;
             auto const* at = reinterpret_cast<char const*>(all.data());
             for (auto const n : lengths) out.emplace_back(at, std::size_t(n)), at += n;
             return out;
           })
      .def("require_same",
           [](Communicator const& c, std::string const& call, std::vector<std::pair<std::string, std::string>> const& given) {
             std::vector<comm::Fact> facts;
             for (auto const& [name, value] : given) facts.push_back({name, value});
             GilRelease const gil;
             comm::collective(c, call.c_str(), [&] { comm::require_same(c, call.c_str(), facts); });
           })
      .def(
          "agree",
          [](Communicator const& c, std::optional<std::string> const& text, std::string const& kind) {
            auto const number = kind_named(kind);
            GilRelease const gil;
            comm::agree_on(c, text ? std::optional<Error>(Error(number, *text)) : std::nullopt);
          },
          nb::arg("error").none(), nb::arg("kind") = "InputError");
  // bytes that the ranks of this machine can read; None if the system has no such memory
  m.def("shared_bytes", [](std::int64_t bytes) -> nb::object {
    auto* const arena = comm::node::Arena::mine();
    if (!arena) return nb::none();
    struct Block {
      std::uint64_t offset;
      std::int64_t bytes;
    };
    auto* const block = new Block{arena->allocate(std::max<std::int64_t>(bytes, 1)), std::max<std::int64_t>(bytes, 1)};
    nb::capsule const owner(block, [](void* p) noexcept {
      auto* const b = static_cast<Block*>(p);
      comm::node::Arena::mine()->release(b->offset, b->bytes);
      delete b;
    });
    std::size_t const shape[] = {std::size_t(bytes)};
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(arena->at(block->offset), 1, shape, owner));
  });
  m.def("set_shared_vectors", [](std::string const& name) { comm::set_shared_vectors(comm::shared_vectors_from_name(name)); });
  m.def("node_shares_memory", [](Communicator const& c) { return c.node() && c.node()->shares_memory(); });
  nb::class_<comm::Layout>(m, "Layout")
      .def(nb::init<Communicator const&, std::int64_t>(), nb::call_guard<GilRelease>())
      .def_static("even", &comm::Layout::even, nb::arg("comm"), nb::arg("global_size"), nb::arg("block") = 1)
      .def_prop_ro("comm", [](comm::Layout const& l) { return l.comm(); })
      .def_prop_ro("local_size", &comm::Layout::local_size)
      .def_prop_ro("global_size", &comm::Layout::global_size)
      .def_prop_ro("begin", &comm::Layout::begin)
      .def_prop_ro("end", &comm::Layout::end)
      .def("fits", &comm::Layout::fits);

  bind_star_forest(m);
  bind_channels(m);
}

}  // namespace asterism::python
