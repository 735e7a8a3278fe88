#include "asterism/device/named_kernel.hpp"

#include <map>
#include <mutex>

#include "asterism/base/error.hpp"
#include "asterism/base/options.hpp"

namespace asterism::device {
namespace {

struct Register {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<NamedKernel const>, std::less<>> kernels;
};

Register& all() {
  static auto* const r = new Register;  // tasks may outlive static objects
  return *r;
}

}  // namespace

NamedKernel::NamedKernel(std::string name, KernelSignature signature, HostForm host, GpuForm gpu, std::shared_ptr<void const> library)
    : name_(std::move(name)), signature_(std::move(signature)), host_(host), gpu_(gpu), library_(std::move(library)) {}

std::shared_ptr<NamedKernel const> register_kernel(std::string name, KernelSignature signature, NamedKernel::HostForm host,
                                                   NamedKernel::GpuForm gpu, std::shared_ptr<void const> library) {
  ASTERISM_REQUIRE(!name.empty(), value, "a kernel needs a name.");
  ASTERISM_REQUIRE(host, value, "the kernel '{}' needs a form for the host's memory.", name);
  ASTERISM_REQUIRE(!signature.arrays.empty(), value, "the kernel '{}' has no array, so it could do nothing.", name);
  auto& r = all();
  std::lock_guard const lock(r.mutex);
  auto& place = r.kernels[name];
  ASTERISM_REQUIRE(
      !place || place->signature() == signature, value,
      "there is a kernel '{}' with another signature already ({} arrays, {} integers, {} reals, or other dtypes or intents; now "
      "{}, {}, {}). Choose another name.",
      name, place->signature().arrays.size(), place->signature().integers, place->signature().reals, signature.arrays.size(),
      signature.integers, signature.reals);
  place = std::make_shared<NamedKernel const>(std::move(name), std::move(signature), host, gpu, std::move(library));
  return place;
}

std::vector<std::string> kernel_names() {
  auto& r = all();
  std::lock_guard const lock(r.mutex);
  std::vector<std::string> out;
  for (auto const& [name, kernel] : r.kernels) out.push_back(name);
  return out;
}

std::shared_ptr<NamedKernel const> named_kernel(std::string_view name) {
  {
    auto& r = all();
    std::lock_guard const lock(r.mutex);
    if (auto const at = r.kernels.find(name); at != r.kernels.end()) return at->second;
  }
  auto const near = nearest(name, kernel_names());
  throw Error(ErrorKind::value, format("there is no kernel '{}'.{}", name, near.empty() ? "" : format(" Did you mean '{}'?", near)));
}

void submit_kernel(Queue const& queue, std::shared_ptr<NamedKernel const> const& kernel, std::int64_t n, std::span<Array const> arrays,
                   std::span<std::int64_t const> integers, std::span<double const> reals) {
  auto const& s = kernel->signature();
  auto const& name = kernel->name();
  ASTERISM_REQUIRE(n >= 0, value, "the kernel '{}' over {} indices.", name, n);
  ASTERISM_REQUIRE(arrays.size() == s.arrays.size() && std::int64_t(integers.size()) == s.integers && std::int64_t(reals.size()) == s.reals,
                   value, "the kernel '{}' takes {} arrays, {} integers and {} reals, not {}, {} and {}.", name, s.arrays.size(),
                   s.integers, s.reals, arrays.size(), integers.size(), reals.size());
  std::vector<Intent> intents;
  if (!queue.runs_inline())
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].intend(s.arrays[i].access, intents);
  bool const on_gpu = queue.memory() == Memory::gpu && kernel->has_gpu_form(), copied = queue.memory() == Memory::gpu && !on_gpu;
  if (copied) gpu::count_without_form();
  auto const memory = copied ? Memory::host : queue.memory();
  auto run = [kernel, n, memory, on_gpu, held = std::vector<Array>(arrays.begin(), arrays.end()),
              integers = std::vector<std::int64_t>(integers.begin(), integers.end()),
              reals = std::vector<double>(reals.begin(), reals.end())](Executor& executor) {
    std::vector<void*> pointers;
    for (auto const& a : held) pointers.push_back(a.raw(memory));
    if (on_gpu) {
      ASTERISM_REQUIRE(
          executor.guard_count == 0, unsupported,
          "the kernel '{}' was submitted under a condition on a GPU, whose value a kernel made at run time does not read. Submit "
          "it outside of the condition.",
          kernel->name());
      gpu::check(kernel->gpu_(n, pointers.data(), integers.data(), reals.data(), executor.stream()), kernel->name().c_str());
      return;
    }
    parallel_ranges(executor, n, [&](std::int64_t begin, std::int64_t end) {
      kernel->host_(begin, end, pointers.data(), integers.data(), reals.data());
    });
  };
  if (queue.runs_inline()) {
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].settle(s.arrays[i].access, "work at once on what a queue uses");
    Executor executor;
    return run(executor);
  }
  queue.enqueue(std::move(intents), std::move(run), copied ? Queue::Form::host : Queue::Form::any);
}

}  // namespace asterism::device
