#include "asterism/grid/star_operator.hpp"

#include "asterism/apps/forest_timing.hpp"

#include "bindings.hpp"

namespace asterism::python {

void bind_grid(nb::module_& m) {
  using grid::Grid;
  auto const box = [](grid::Box const& b) { return std::pair(b.low, b.high); };
  nb::class_<Grid>(m, "Grid")
      .def(
          "__init__",
          [](Grid* self, comm::Communicator const& c, std::vector<std::int64_t> const& shape, std::int64_t width, bool whole_box,
             std::vector<bool> const& periodic, std::vector<int> const& ranks, std::optional<std::string> const& transport,
             std::vector<double> const& spacing) {
            auto const t = transport_of(transport);
            GilRelease gil;
            new (self) Grid(c, shape, width, whole_box ? grid::Stencil::box : grid::Stencil::star, periodic, ranks, t, {{}, spacing});
          },
          nb::arg("comm"), nb::arg("shape"), nb::arg("width"), nb::arg("whole_box"), nb::arg("periodic"), nb::arg("ranks"),
          nb::arg("transport").none(), nb::arg("spacing"))
      .def_prop_ro("spacing", [](Grid const& g) { return g.placement().spacing; })
      .def("coordinates", [](Grid const& g) { return coordinates_array(g.space()); })
      .def_prop_ro("ranks", &Grid::ranks)
      .def("owned", [box](Grid const& g, int rank) { return box(g.owned(rank)); })
      .def("ghosted", [box](Grid const& g, int rank) { return box(g.ghosted(rank)); })
      .def_prop_ro("layout", &Grid::layout)
      .def_prop_ro("ghosts", &Grid::ghosts)
      .def_prop_ro("global_to_local", &Grid::global_to_local)
      .def("numbers", &Grid::numbers);
  nb::class_<grid::StarOperator, la::Operator>(m, "StarOperator")
      .def(
          "__init__",
          [](grid::StarOperator* self, Grid const& g, double centre, std::array<double, 3> const& sides, std::string const& dtype) {
            new (self) grid::StarOperator(g, centre, sides, dtype_from_name(dtype));
          },
          nb::arg("grid"), nb::arg("centre"), nb::arg("sides"), nb::arg("dtype"));
  m.def("time_grid_halo", &apps::grid_halo, nb::call_guard<GilRelease>());
  m.def("time_grid_overlap", [](Grid const& g, int repeats) {
    apps::Overlap o;
    {
      GilRelease gil;
      o = apps::grid_overlap(g, repeats);
    }
    return nb::make_tuple(o.exchange, o.work, o.both);
  });
  m.def("time_raw_halo", &apps::raw_halo, nb::call_guard<GilRelease>());
}

}  // namespace asterism::python
