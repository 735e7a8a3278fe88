// Kernels made at run time, such as a stencil compiler makes: registered under a name, with a form for each memory.
//
// Built-in kernels are functions of the library, and a GPU's form is found by the symbol's name (gpu/gpu.hpp). A kernel made at run time
// has no symbol, so it is given by addresses, and called through one C signature for all.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/array.hpp"

namespace asterism::device {

/// What a named kernel does with one of its arrays.
struct KernelArray {
  Access access = Access::read;
  Dtype dtype = Dtype::float64;
  friend bool operator==(KernelArray const&, KernelArray const&) = default;
};

/// How a named kernel is called.
struct KernelSignature {
  std::vector<KernelArray> arrays;
  int integers = 0, reals = 0;
  friend bool operator==(KernelSignature const&, KernelSignature const&) = default;
};

/// A kernel over the indices 0 <= i < n.
class NamedKernel {
 public:
  /// The indices begin <= i < end: each thread of the team calls it with a piece of [0, n), so pieces must not write to the same places.
  using HostForm = void (*)(std::int64_t begin, std::int64_t end, void* const* arrays, std::int64_t const* integers, double const* reals);
  /// Launches all n into the stream and does not wait. Returns 0, or the error code of the GPU's runtime.
  using GpuForm = int (*)(std::int64_t n, void* const* arrays, std::int64_t const* integers, double const* reals, void* stream);

  NamedKernel(std::string name, KernelSignature signature, HostForm host, GpuForm gpu, std::shared_ptr<void const> library);
  std::string const& name() const { return name_; }
  KernelSignature const& signature() const { return signature_; }
  bool has_gpu_form() const { return gpu_ != nullptr; }

 private:
  friend void submit_kernel(Queue const&, std::shared_ptr<NamedKernel const> const&, std::int64_t, std::span<Array const>,
                            std::span<std::int64_t const>, std::span<double const>);
  std::string name_;
  KernelSignature signature_;
  HostForm host_;
  GpuForm gpu_;
  std::shared_ptr<void const> library_;  // that its code lies in
};

/// Makes it known to this process until the process ends. The same name may be given again with the same signature, which replaces the
/// forms: submitted tasks keep theirs. Throws where the name is another kernel's, with another signature. Thread-safe. `host`: must be
/// given. `gpu`: without it the kernel runs on the host with its data copied, which is counted (gpu::without_form()). `library`: kept as
/// long as the forms may be called.
std::shared_ptr<NamedKernel const> register_kernel(std::string name, KernelSignature signature, NamedKernel::HostForm host,
                                                   NamedKernel::GpuForm gpu = nullptr, std::shared_ptr<void const> library = nullptr);
/// The one of that name; an error that lists the nearest where there is none.
std::shared_ptr<NamedKernel const> named_kernel(std::string_view name);
/// All names, in order.
std::vector<std::string> kernel_names();

/// Runs or enqueues it. Throws where the numbers of arguments are not those of its signature. The lengths of arrays are the caller's care:
/// only the kernel knows which entries belong to an index. Cost: that of the work, and some allocations.
void submit_kernel(Queue const& queue, std::shared_ptr<NamedKernel const> const& kernel, std::int64_t n, std::span<Array const> arrays,
                   std::span<std::int64_t const> integers = {}, std::span<double const> reals = {});

}  // namespace asterism::device
