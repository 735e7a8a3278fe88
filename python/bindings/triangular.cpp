#include "asterism/apps/sweep_timing.hpp"
#include "asterism/direct/triangular/factor_pattern.hpp"
#include "asterism/direct/triangular/model/critical_path.hpp"
#include "asterism/direct/triangular/model/sweep_simulation.hpp"
#include "bindings.hpp"

namespace asterism::python {
namespace {

using direct::FactorPattern;
using direct::ProcessGrid;
using direct::Sweep;
using direct::SweepMachine;
using Rates = std::vector<std::pair<std::int64_t, double>>;
using LinkOf = std::pair<double, Rates>;

Sweep sweep_of(bool backward) { return backward ? Sweep::backward : Sweep::forward; }

/// Predicted and simulated; see direct/triangular/model/critical_path.hpp.
nb::dict predicted(FactorPattern const& p, ProcessGrid const& grid, Sweep sweep, std::int64_t number, SweepMachine const& machine) {
  direct::CriticalPath path;
  direct::SweepTraffic traffic;
  std::optional<direct::SimulatedSweep> simulated;
  {
    GilRelease gil;
    path = direct::critical_path(*p.blocks, grid, sweep, number, machine);
    traffic = direct::sweep_traffic(*p.blocks, grid, sweep, number);
    if (machine.workers == 1) simulated = direct::simulate_sweep(*p.blocks, grid, sweep, number, machine);
  }
  nb::dict out;
  out["levels"] = path.levels;
  out["nodes"] = path.nodes;
  out["messages"] = path.messages;
  out["compute"] = path.compute;
  out["communication"] = path.communication;
  out["broadcasts"] = traffic.broadcasts;
  out["reductions"] = traffic.reductions;
  out["bytes"] = traffic.bytes;
  out["simulated"] = simulated ? nb::object(nb::float_(simulated->seconds)) : nb::none();
  return out;
}

}  // namespace

void bind_triangular(nb::module_& m) {
  nb::class_<SweepMachine>(m, "SweepMachine")
      .def("__init__", [](SweepMachine* self, double bandwidth, double task_seconds, LinkOf const& near, LinkOf const& far,
                          int ranks_per_node, int workers, double least, double most) {
        new (self)
            SweepMachine{bandwidth, task_seconds, {near.first, near.second}, {far.first, far.second}, ranks_per_node, workers, least, most};
      });
  nb::class_<FactorPattern>(m, "FactorPattern")
      .def("__init__",
           [](FactorPattern* self, la::Matrix const& A, std::string const& ordering, std::int32_t widest) {
             GilRelease gil;
             new (self) FactorPattern(direct::factor_pattern(A.diagonal_block(), ordering, widest));
           })
      .def_ro("ordering", &FactorPattern::ordering)
      .def_ro("entries", &FactorPattern::entries)
      .def_prop_ro("supernodes", [](FactorPattern const& p) { return p.blocks->count(); })
      .def_prop_ro("blocks", [](FactorPattern const& p) { return p.blocks->blocks(); })
      .def_prop_ro("widest", [](FactorPattern const& p) { return p.blocks->largest_width(); })
      .def_prop_ro("levels",
                   [](FactorPattern const& p) {
                     auto const levels = p.blocks->levels();
                     return levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end()) + 1;
                   })
      .def("predicted", [](FactorPattern const& p, int rows, int columns, bool backward, std::int64_t number, SweepMachine const& machine) {
        return predicted(p, {rows, columns}, sweep_of(backward), number, machine);
      });
  m.def("process_grid", [](std::string const& text, int ranks) {
    auto const grid = direct::process_grid(text, ranks);
    return std::pair(grid.rows, grid.columns);
  });
  using apps::TimedTriangle;
  nb::class_<TimedTriangle>(m, "TimedTriangle")
      .def("__init__",
           [](TimedTriangle* self, comm::Communicator const& c, FactorPattern const& p, int rows, int columns, std::string const& dtype,
              std::string const& gpu) {
             GilRelease gil;
             new (self) TimedTriangle(c, p.blocks, {rows, columns}, dtype_from_name(dtype), gpu);
           })
      .def("time",
           [](TimedTriangle& t, bool backward, std::int64_t columns, int repeats) {
             TimedTriangle::Times times;
             {
               GilRelease gil;
               times = t.time(sweep_of(backward), columns, repeats);
             }
             return nb::make_tuple(times.seconds, times.error, times.sent);
           })
      .def("time_cusparse", [](TimedTriangle const& t, bool backward, int repeats) {
        TimedTriangle::Times times;
        {
          GilRelease gil;
          times = t.time_cusparse(sweep_of(backward), repeats);
        }
        return nb::make_tuple(times.seconds, times.error);
      });
  m.def("sweep_rates", [](comm::Communicator const& c) {
    apps::SweepRates rates;
    {
      GilRelease gil;
      rates = apps::sweep_rates(c);
    }
    return std::pair(rates.task_seconds, rates.bandwidth);
  });
  m.def("channel_times", [](comm::Communicator const& c, std::int64_t bytes, int repeats, std::optional<std::string> const& transport) {
    auto const choice = transport_of(transport);
    apps::ChannelTimes times;
    {
      GilRelease gil;
      times = apps::channel_times(c, bytes, repeats, choice);
    }
    return std::pair(times.one_way, times.each);
  });
}

}  // namespace asterism::python
