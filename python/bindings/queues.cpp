#include "asterism/apps/queue_timing.hpp"
#include "bindings.hpp"

namespace asterism::python {

void bind_queues(nb::module_& m) {
  m.def(
      "time_launch",
      [](std::string const& queue, int tasks) {
        auto const t = apps::time_launch(device::Queue::from_name(queue), tasks);
        return std::tuple(t.submit, t.streamed, t.waited);
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "time_pipeline",
      [](std::string const& queue, std::array<double, 3> const& work, double launch, bool waits) {
        return apps::time_pipeline(device::Queue::from_name(queue), work, launch, waits);
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "time_vector_operations",
      [](std::int64_t n, int repeats) {
        auto const a = apps::time_axpy(n, repeats), d = apps::time_dot(n, repeats);
        return std::tuple(std::pair(a.operation, a.loop), std::pair(d.operation, d.loop));
      },
      nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace asterism::python
