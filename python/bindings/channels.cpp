#include "asterism/comm/channels.hpp"

#include "bindings.hpp"

namespace asterism::python {

void bind_channels(nb::module_& m) {
  using comm::Channels;
  // an arrival as (rank, bytes): copied, so that its place goes back at once
  auto const message = [](Channels& c, Channels::Arrival const& a) {
    auto out = nb::make_tuple(a.rank, nb::bytes(a.data.data(), a.data.size()));
    c.release(a);
    return out;
  };
  nb::class_<Channels>(m, "Channels")
      .def(
          "__init__",
          [](Channels* self, comm::Communicator const& c, std::vector<int> const& to, std::int64_t max_bytes,
             std::optional<std::string> const& transport) {
            auto const t = transport_of(transport);
            ASTERISM_REQUIRE(!transport || t <= comm::TransportChoice::shm, option, "channels go by auto, p2p or shm, not by '{}'.",
                             *transport);
            nb::gil_scoped_release gil;
            new (self) Channels(c, to, max_bytes, t);
          },
          nb::arg("comm"), nb::arg("to"), nb::arg("max_bytes"), nb::arg("transport").none())
      .def_prop_rw("name", &Channels::name, &Channels::set_name)
      .def_prop_ro("sources",
                   [](Channels const& c) {
                     auto const s = c.sources();
                     return std::vector<int>(s.begin(), s.end());
                   })
      .def("put",
           [](Channels& c, int rank, nb::bytes const& data) { c.put(rank, {static_cast<std::byte const*>(data.data()), data.size()}); })
      .def("poll",
           [message](Channels& c) -> nb::object {
             auto const a = c.poll();
             return a ? nb::object(message(c, *a)) : nb::none();
           })
      .def("wait", [message](Channels& c) {
        Channels::Arrival a;
        {
          nb::gil_scoped_release gil;
          a = c.wait();
        }
        return message(c, a);
      });
}

}  // namespace asterism::python
