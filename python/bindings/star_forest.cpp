#include "asterism/apps/forest_timing.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/communicator/progress.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/comm/forest/call_check.hpp"
#include "asterism/comm/forest/forest_algebra.hpp"
#include "asterism/comm/transport/traffic_record.hpp"
#include "bindings.hpp"

namespace asterism::python {
namespace {

using comm::Communicator;
using comm::Items;
using comm::Operation;
using comm::StarForest;
using I64 = nb::ndarray<std::int64_t, nb::device::cpu, nb::c_contig>;
using Address = std::uintptr_t;

std::span<std::int64_t const> span_of(I64 const& a) { return {a.data(), a.size()}; }

/// The number of a built-in operation, or f(in address, inout address, n). Python's function is called, and let go, with the lock held.
Operation operation(nb::object const& op) {
  if (nb::isinstance<nb::int_>(op)) return comm::ReduceOp(nb::cast<int>(op));
  std::shared_ptr<nb::object> const held(new nb::object(op), [](nb::object* o) {
    GilAcquire gil;
    delete o;
  });
  return Operation(comm::UserOp([held](void const* in, void* inout, std::int64_t n) {
    GilAcquire gil;
    (*held)(Address(in), Address(inout), n);
  }));
}

struct Edges {
  std::optional<std::vector<std::int64_t>> leaves;
  std::vector<comm::RemoteRoot> remote;
};

Edges edges(std::optional<I64> const& local, I64 const& remote) {
  Edges e;
  if (local) e.leaves.emplace(local->data(), local->data() + local->size());
  e.remote.reserve(remote.size() / 2);
  for (std::size_t i = 0; i + 1 < remote.size(); i += 2) e.remote.push_back({remote.data()[i], remote.data()[i + 1]});
  return e;
}

Items items(int type, std::int64_t bytes, std::int64_t k) { return {comm::ItemType(type), bytes, k}; }

template <class T>
T* at(Address a) {
  return reinterpret_cast<T*>(a);
}

/// NumPy's array interface, as its documentation lays it down.
struct ArrayInterface {
  int two, nd;
  char typekind;
  int itemsize, flags;
  Py_ssize_t *shape, *strides;
  void* data;
};

std::optional<comm::ItemType> item_type_of(ArrayInterface const& a) {
  using comm::ItemType;
  auto const pick = [&](std::initializer_list<std::pair<int, ItemType>> list) -> std::optional<ItemType> {
    for (auto const& [size, type] : list)
      if (size == a.itemsize) return type;
    return std::nullopt;
  };
  switch (a.typekind) {
    case 'b': return pick({{1, ItemType::boolean}});
    case 'i': return pick({{1, ItemType::int8}, {2, ItemType::int16}, {4, ItemType::int32}, {8, ItemType::int64}});
    case 'u': return pick({{1, ItemType::uint8}, {2, ItemType::uint16}, {4, ItemType::uint32}, {8, ItemType::uint64}});
    case 'f': return pick({{4, ItemType::float32}, {8, ItemType::float64}});
    case 'c': return pick({{8, ItemType::complex64}, {16, ItemType::complex128}});
    default: return std::nullopt;
  }
}

/// Addresses and items of arrays that are as they must be, given as (array, rows, written)...; None if anything needs a second look.
nb::object plain_arrays(nb::args const& arrays) {
  nb::list addresses;
  PyObject* dtype = nullptr;
  std::optional<Items> items;
  int nd = 0;
  for (nb::handle const entry : arrays) {
    auto const a = nb::borrow<nb::tuple>(entry);
    nb::object const capsule = nb::steal(PyObject_GetAttrString(a[0].ptr(), "__array_struct__"));
    if (!capsule.is_valid() || !PyCapsule_CheckExact(capsule.ptr())) {
      PyErr_Clear();
      return nb::none();
    }
    auto const& v = *static_cast<ArrayInterface const*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    constexpr int contiguous = 0x1, aligned = 0x100, native = 0x200, writeable = 0x400;
    int const needed = contiguous | aligned | native | (nb::cast<bool>(a[2]) ? writeable : 0);
    auto const type = item_type_of(v);
    if (v.two != 2 || (v.flags & needed) != needed || v.nd < 1 || v.nd > 2 || !type || v.shape[0] < nb::cast<Py_ssize_t>(a[1]))
      return nb::none();
    nb::object const d = nb::steal(PyObject_GetAttrString(a[0].ptr(), "dtype"));
    Items const mine{*type, v.itemsize, v.nd == 2 ? std::int64_t(v.shape[1]) : 1};
    if (!items) items = mine, dtype = d.ptr(), nd = v.nd;
    else if (d.ptr() != dtype || mine.k != items->k || nd != v.nd) return nb::none();
    addresses.append(reinterpret_cast<Address>(v.data));
  }
  return nb::make_tuple(nb::tuple(addresses), nb::make_tuple(int(items->type), items->bytes, items->k));
}

}  // namespace

void bind_star_forest(nb::module_& m) {
  nb::class_<StarForest::Flight>(m, "Flight").def("end", &StarForest::Flight::end, nb::call_guard<GilRelease>());
  nb::class_<StarForest>(m, "StarForest")
      .def(
          "__init__",
          [](StarForest* self, Communicator const& c, std::int64_t roots, std::optional<I64> const& local, I64 const& remote,
             std::int64_t leaf_space, std::optional<std::string> const& transport) {
            auto const t = transport_of(transport);
            auto e = edges(local, remote);
            comm::Fact const facts[] = {{"transport", std::string(comm::name_of(t))}};
            GilRelease gil;
            comm::require_same(c, "StarForest", facts);  // of ranks without an edge in between too
            new (self) StarForest(c, roots, std::move(e.leaves), e.remote, leaf_space, t);
          },
          nb::arg("comm"), nb::arg("nroots"), nb::arg("local").none(), nb::arg("remote"), nb::arg("leaf_space"),
          nb::arg("transport").none())
      .def_prop_ro("comm", [](comm::StarForest const& f) { return f.comm(); })
      .def_prop_ro("nroots", &StarForest::roots)
      .def_prop_ro("nleaves", &StarForest::leaves)
      .def_prop_ro("leaf_space", &StarForest::leaf_space)
      .def_prop_ro("transport", [](StarForest const& sf) { return std::string(comm::name_of(sf.transport())); })
      .def_prop_rw("name", &StarForest::name, &StarForest::set_name)
      .def("root_ranks", &StarForest::root_ranks)
      .def("leaf_ranks", &StarForest::leaf_ranks)
      .def("neighbours",
           [](StarForest const& sf) {
             nb::list out;
             for (auto const& n : sf.neighbours()) {
               nb::dict d;
               d["rank"] = n.rank;
               d["has_leaves"] = n.has_leaves;
               d["edges"] = n.edges;
               d["pattern"] = n.pattern;
               d["index_bytes"] = n.index_bytes;
               d["transport"] = n.transport;
               d["why"] = n.why;
               out.append(d);
             }
             return out;
           })
      .def("degree", &StarForest::degree)
      .def("graph",
           [](StarForest const& sf) {
             auto const g = sf.graph();
             std::vector<std::int64_t> remote;
             for (auto const& r : g.remote) remote.push_back(r.rank), remote.push_back(r.offset);
             return std::pair(g.leaves, remote);
           })
      .def("multi", &StarForest::multi, nb::call_guard<GilRelease>())
      .def("bcast_begin",
           [](StarForest const& sf, Address root, Address leaf, int type, std::int64_t bytes, std::int64_t k, nb::object const& op) {
             auto const o = operation(op);
             GilRelease gil;
             return sf.bcast_begin(at<void const>(root), at<void>(leaf), items(type, bytes, k), o);
           })
      .def("reduce_begin",
           [](StarForest const& sf, Address leaf, Address root, int type, std::int64_t bytes, std::int64_t k, nb::object const& op) {
             auto const o = operation(op);
             GilRelease gil;
             return sf.reduce_begin(at<void const>(leaf), at<void>(root), items(type, bytes, k), o);
           })
      .def("fetch_and_op_begin",
           [](StarForest const& sf, Address root, Address leaf, Address update, int type, std::int64_t bytes, std::int64_t k,
              nb::object const& op) {
             auto const o = operation(op);
             GilRelease gil;
             return sf.fetch_and_op_begin(at<void>(root), at<void const>(leaf), at<void>(update), items(type, bytes, k), o);
           })
      .def("bcast",
           [](StarForest const& sf, Address root, Address leaf, int type, std::int64_t bytes, std::int64_t k, nb::object const& op) {
             auto const o = operation(op);
             GilRelease gil;
             sf.bcast(at<void const>(root), at<void>(leaf), items(type, bytes, k), o);
           })
      .def("reduce",
           [](StarForest const& sf, Address leaf, Address root, int type, std::int64_t bytes, std::int64_t k, nb::object const& op) {
             auto const o = operation(op);
             GilRelease gil;
             sf.reduce(at<void const>(leaf), at<void>(root), items(type, bytes, k), o);
           })
      .def("fetch_and_op",
           [](StarForest const& sf, Address root, Address leaf, Address update, int type, std::int64_t bytes, std::int64_t k,
              nb::object const& op) {
             auto const o = operation(op);
             GilRelease gil;
             sf.fetch_and_op(at<void>(root), at<void const>(leaf), at<void>(update), items(type, bytes, k), o);
           })
      .def("compose", &comm::compose, nb::call_guard<GilRelease>())
      .def("compose_inverse", &comm::compose_inverse, nb::call_guard<GilRelease>())
      .def("inverse", &comm::inverse, nb::call_guard<GilRelease>())
      .def("strided", &comm::strided, nb::call_guard<GilRelease>())
      .def("embed_roots",
           [](StarForest const& sf, I64 const& selected) {
             GilRelease gil;
             return comm::embed_roots(sf, span_of(selected));
           })
      .def("embed_leaves",
           [](StarForest const& sf, I64 const& selected) {
             GilRelease gil;
             return comm::embed_leaves(sf, span_of(selected));
           })
      .def("section",
           [](StarForest const& sf, I64 const& dofs) {
             GilRelease gil;
             auto s = comm::section(sf, span_of(dofs));
             return std::pair(std::move(s.forest), std::move(s.leaf_dofs));
           })
      .def_static("concatenate",
                  [](std::vector<StarForest> const& forests, bool roots_shared, bool leaves_shared) {
                    GilRelease gil;
                    return comm::concatenate(forests, roots_shared ? comm::Spaces::shared : comm::Spaces::stacked,
                                             leaves_shared ? comm::Spaces::shared : comm::Spaces::stacked);
                  })
      .def_static("from_layout",
                  [](comm::Layout const& layout, I64 const& global) {
                    GilRelease gil;
                    return StarForest::from_layout(layout, span_of(global));
                  })
      .def_static("matching",
                  [](Communicator const& c, I64 const& roots, I64 const& leaves) {
                    GilRelease gil;
                    return comm::matching(c, span_of(roots), span_of(leaves));
                  })
      .def_static("all_gather", &comm::all_gather_pattern, nb::call_guard<GilRelease>())
      .def_static("all_to_all", &comm::all_to_all_pattern, nb::call_guard<GilRelease>());
  m.def("time_forest_pingpong", [](StarForest const& sf, std::int64_t k, int op, bool shared, int repeats) {
    GilRelease gil;
    return apps::forest_pingpong(sf, k, comm::ReduceOp(op), shared, repeats);
  });
  m.def("time_forest_exchange", [](StarForest const& sf, std::int64_t k, int op, bool renew, int repeats) {
    GilRelease gil;
    return apps::forest_exchange(sf, k, comm::ReduceOp(op), renew, repeats);
  });
  m.def("transport_names", &comm::transport_names);
  m.def("time_raw_pingpong", &apps::raw_pingpong, nb::call_guard<GilRelease>());
  m.def("time_forest_setup",
        [](Communicator const& c, std::int64_t roots, std::optional<I64> const& local, I64 const& remote, int repeats) {
          auto const e = edges(local, remote);
          GilRelease gil;
          return apps::forest_setup(c, roots, e.leaves, e.remote, repeats);
        });
  m.def("set_progress_thread", &comm::set_progress_thread, nb::call_guard<GilRelease>());
  m.def("plain_arrays", &plain_arrays);
  m.def("set_call_checks", &comm::set_call_checks);
  m.def("operations_under_way", &comm::operations_under_way);
  m.def("reset_traffic", &comm::reset_traffic);
  m.def("traffic", [](Communicator const& c) {
    nb::list out;
    for (auto const& t : comm::traffic(c)) {
      nb::list sent;
      for (auto const& p : t.sent) {
        nb::dict d;
        d["rank"] = p.rank;
        d["transport"] = comm::name_of(p.transport);
        d["messages"] = p.messages;
        d["bytes"] = p.bytes;
        d["sizes"] = std::vector<std::int64_t>(p.sizes.begin(), p.sizes.end());
        d["pattern"] = p.pattern;
        sent.append(d);
      }
      nb::dict d;
      d["name"] = t.name;
      d["kind"] = t.kind;
      d["members"] = t.members;
      d["living"] = t.living;
      d["operations"] = t.operations;
      d["under_way"] = t.under_way;
      d["sent"] = sent;
      out.append(d);
    }
    return out;
  });
  m.def("set_discovery", [](std::string const& name) { comm::set_discovery(comm::discovery_from_name(name)); });
  m.def("set_default_transport", [](std::string const& name) { comm::set_default_transport(comm::transport_from_name(name)); });
  m.def("reduce_op", [](std::string const& name) { return int(comm::reduce_op_from_name(name)); });
  m.def("item_type_names", [] {
    std::vector<std::string> names;
    for (int t = 0; t <= int(comm::ItemType::pair_float64_int32); ++t) names.emplace_back(comm::name_of(comm::ItemType(t)));
    return names;
  });
}

}  // namespace asterism::python
