#include "asterism/comm/channels/channels.hpp"

#include "bindings.hpp"

namespace asterism::python {

namespace {
using comm::Channel;
using comm::Channels;
using Listed = std::vector<std::tuple<int, std::int64_t, int>>;

Listed listed(std::span<Channel const> all) {
  Listed out;
  for (auto const& c : all) out.emplace_back(c.rank, c.max_bytes, c.label);
  return out;
}

/// (rank, label, data, bytes, key). What lies in an array stays there until its release, and data is None. Anything else is copied, so
/// that its place goes back at once.
nb::object message(Channels& c, Channels::Arrival const& a) {
  nb::object const data = a.landed ? nb::none() : nb::object(nb::bytes(a.data.data(), a.data.size()));
  if (!a.landed) c.release(a);
  return nb::make_tuple(a.rank, a.label, data, a.data.size(), a.key);
}

std::span<std::byte const> bytes_of(ReadArray const& a) { return {static_cast<std::byte const*>(a.data()), a.nbytes()}; }
}  // namespace

void bind_channels(nb::module_& m) {
  nb::class_<Channels>(m, "Channels")
      .def(
          "__init__",
          [](Channels* self, comm::Communicator const& c, Listed const& out, std::optional<std::string> const& transport) {
            auto const t = transport_of(transport);
            ASTERISM_REQUIRE(!transport || t <= comm::TransportChoice::shm, option, "channels go by auto, p2p or shm, not by '{}'.",
                             *transport);
            std::vector<Channel> channels;
            for (auto const& [rank, max_bytes, label] : out) channels.push_back({rank, max_bytes, label});
            GilRelease gil;
            new (self) Channels(c, channels, t);
          },
          nb::arg("comm"), nb::arg("out"), nb::arg("transport").none())
      .def_prop_rw("name", &Channels::name, &Channels::set_name)
      .def_prop_ro("out", [](Channels const& c) { return listed(c.out()); })
      .def_prop_ro("in_", [](Channels const& c) { return listed(c.in()); })
      .def("put", [](Channels& c, int rank, nb::bytes const& data,
                     int label) { c.put(rank, {static_cast<std::byte const*>(data.data()), data.size()}, label); })
      .def("lend", [](Channels& c, int rank, ReadArray const& data, int label) { return c.lend(rank, bytes_of(data), label); })
      .def("returned", &Channels::returned)
      .def("all_returned", &Channels::all_returned)
      .def("under_way", &Channels::under_way)
      .def(
          "land_in",
          [](Channels& c, int rank, std::optional<AnyArray> const& array, int label) {
            std::span<std::byte> to;
            if (array) to = {static_cast<std::byte*>(array->data()), array->nbytes()};
            GilRelease gil;
            c.land_in(rank, to, label);
          },
          nb::arg("rank"), nb::arg("array").none(), nb::arg("label"))
      .def("poll",
           [](Channels& c) -> nb::object {
             auto const a = c.poll();
             return a ? message(c, *a) : nb::none();
           })
      .def("wait",
           [](Channels& c) {
             Channels::Arrival a;
             {
               GilRelease gil;
               a = c.wait();
             }
             return message(c, a);
           })
      .def("release", [](Channels& c, int rank, std::uint64_t key) { c.release({rank, 0, {}, key, true}); });
}

}  // namespace asterism::python
