#include "asterism/apps/queue_timing.hpp"
#include "asterism/device/named_kernel.hpp"
#include "queue_vector.hpp"

namespace asterism::python {
namespace {

struct Kernel {
  std::shared_ptr<device::NamedKernel const> value;
};

constexpr std::string_view intents[] = {"read", "update", "write"};  // as Access counts them

/// (arrays as (intent, dtype), number of integers, number of reals)
using Signature = std::tuple<std::vector<std::pair<std::string, std::string>>, int, int>;

Kernel register_kernel(std::string const& name, Signature const& given, std::uintptr_t host, std::uintptr_t gpu,
                       nb::object const& library) {
  device::KernelSignature signature{{}, std::get<1>(given), std::get<2>(given)};
  for (auto const& [intent, dtype] : std::get<0>(given))
    signature.arrays.push_back(
        {device::Access(std::find(std::begin(intents), std::end(intents), intent) - std::begin(intents)), dtype_from_name(dtype)});
  return {device::register_kernel(name, std::move(signature), reinterpret_cast<device::NamedKernel::HostForm>(host),
                                  reinterpret_cast<device::NamedKernel::GpuForm>(gpu), keep(library))};
}

Signature signature_of(Kernel const& kernel) {
  auto const& s = kernel.value->signature();
  Signature out{{}, s.integers, s.reals};
  for (auto const& a : s.arrays) std::get<0>(out).emplace_back(intents[std::size_t(a.access)], name_of(a.dtype));
  return out;
}

void bind_kernels(nb::module_& m) {
  nb::class_<Kernel>(m, "NamedKernel")
      .def_prop_ro("name", [](Kernel const& kernel) { return kernel.value->name(); })
      .def_prop_ro("has_gpu_form", [](Kernel const& kernel) { return kernel.value->has_gpu_form(); })
      .def_prop_ro("signature", &signature_of)
      .def("submit", [](Kernel const& kernel, Queue const& queue, std::int64_t n, std::vector<QueueVector> const& vectors,
                        std::vector<std::int64_t> const& integers, std::vector<double> const& reals) {
        std::vector<device::Array> arrays;
        for (auto const& v : vectors) arrays.push_back(v.value.data());
        GilRelease const gil;
        device::submit_kernel(queue.value, kernel.value, n, arrays, integers, reals);
      });
  m.def("register_kernel", &register_kernel);
  m.def("named_kernel", [](std::string const& name) { return Kernel{device::named_kernel(name)}; });
  m.def("kernel_names", &device::kernel_names);
}

}  // namespace

void bind_queues(nb::module_& m) {
  bind_kernels(m);
  m.def(
      "time_launch",
      [](std::string const& queue, int tasks) {
        auto const t = apps::time_launch(device::Queue::from_name(queue), tasks);
        return std::tuple(t.submit, t.streamed, t.waited);
      },
      nb::call_guard<GilRelease>());
  m.def(
      "time_pipeline",
      [](std::string const& queue, std::array<double, 3> const& work, double launch, bool waits) {
        return apps::time_pipeline(device::Queue::from_name(queue), work, launch, waits);
      },
      nb::call_guard<GilRelease>());
  m.def(
      "time_vector_operations",
      [](std::int64_t n, int repeats) {
        auto const a = apps::time_axpy(n, repeats), d = apps::time_dot(n, repeats);
        return std::tuple(std::pair(a.operation, a.loop), std::pair(d.operation, d.loop));
      },
      nb::call_guard<GilRelease>());
}

}  // namespace asterism::python
