#include "asterism/device/named_kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "../../gpu_emulation/cuda_runtime.h"
#include "asterism/base/error.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "harness/gpu.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::device;

namespace {

using i64 = std::int64_t;

/// y[i + shift] += a x[i] where that is inside of y.
template <class T>
void shifted(i64 begin, i64 end, void* const* arrays, i64 const* integers, double const* reals) {
  auto const* const x = static_cast<T const*>(arrays[0]);
  auto* const y = static_cast<T*>(arrays[1]);
  for (auto i = begin; i < end; ++i)
    if (i + integers[0] >= 0 && i + integers[0] < integers[1]) y[i + integers[0]] += real_t<T>(reals[0]) * x[i];
}

template <class T>
KernelSignature signature() {
  return {{{Access::read, dtype_v<T>}, {Access::update, dtype_v<T>}}, 2, 1};
}

void nothing(i64, i64, void* const*, i64 const*, double const*) {}

template <class T>
class NamedKernels : public ::testing::Test {};
using Types = ::testing::Types<float, double, Complex<float>, Complex<double>>;
TYPED_TEST_SUITE(NamedKernels, Types);

std::vector<Queue> queues() {
  std::vector<Queue> out{Queue::host(), Queue::thread(), Queue::strict(), Queue::shuffle(3)};
  std::string text;
  if (gpu::available("auto", text)) out.push_back(Queue::gpu());
  return out;
}

}  // namespace

// A kernel between others on every queue, in order by its intents alone; values as the plain loop's.
TYPED_TEST(NamedKernels, RunInTheirTurnOnEveryQueue) {
  using T = TypeParam;
  auto const kernel = register_kernel("shifted " + std::string(name_of(dtype_v<T>)), signature<T>(), &shifted<T>);
  EXPECT_EQ(named_kernel(kernel->name()), kernel);
  for (i64 const n : {i64(0), i64(1), i64(7), i64(10'000)})
    for (auto const& queue : queues()) {
      auto const x = Array::fresh(queue, std::size_t(n) * sizeof(T)), y = Array::fresh(queue, std::size_t(n) * sizeof(T));
      auto const fill = [n](Executor&, T* v, double start) {
        for (i64 i = 0; i < n; ++i) v[i] = T(real_t<T>(start + double(i % 100)));
      };
      submit_without_form(queue, fill, write<T>(x), 1.0);
      submit_without_form(queue, fill, write<T>(y), 0.0);
      std::vector<T> want(static_cast<std::size_t>(n)), from(want);
      for (i64 i = 0; i < n; ++i) want[std::size_t(i)] = T(real_t<T>(i % 100)), from[std::size_t(i)] = T(real_t<T>(1 + i % 100));
      for (i64 const shift : {i64(0), i64(-2), i64(3)}) {
        Array const arrays[] = {x, y};
        i64 const integers[] = {shift, n};
        double const reals[] = {0.5};
        submit_kernel(queue, kernel, n, arrays, integers, reals);
        for (i64 i = 0; i < n; ++i)
          if (i + shift >= 0 && i + shift < n) want[std::size_t(i + shift)] += real_t<T>(0.5) * from[std::size_t(i)];
      }
      y.settle(Access::read, "the test");
      for (i64 i = 0; i < n; ++i) ASSERT_EQ(y.as<T>()[i], want[std::size_t(i)]) << queue.kind() << " entry " << i << " of " << n;
    }
}

TEST(KernelNames, AreOneKernelsOnly) {
  auto const signature = ::signature<double>();
  auto const first = register_kernel("once", signature, &shifted<double>);
  EXPECT_FALSE(first->has_gpu_form());
  auto const again = register_kernel("once", signature, &nothing);  // other forms
  EXPECT_EQ(named_kernel("once"), again);
  EXPECT_THROW(register_kernel("once", ::signature<float>(), &nothing), Error);
  EXPECT_EQ(named_kernel("once"), again);
  EXPECT_THROW(register_kernel("", signature, &nothing), Error);
  EXPECT_THROW(register_kernel("no form", signature, nullptr), Error);
  EXPECT_THROW(register_kernel("no array", {{}, 1, 1}, &nothing), Error);
  auto const names = kernel_names();
  EXPECT_TRUE(std::find(names.begin(), names.end(), "once") != names.end());
  EXPECT_TRUE(std::find(names.begin(), names.end(), "no form") == names.end());
  try {
    named_kernel("onze");
    ADD_FAILURE();
  } catch (Error const& e) {
    EXPECT_NE(std::string(e.what()).find("Did you mean 'once'?"), std::string::npos) << e.what();
  }
  Array const one[] = {Array(8)}, two[] = {Array(8), Array(8)};
  EXPECT_THROW(submit_kernel(Queue::host(), again, 1, one, std::array<i64, 2>{}, std::array{0.0}), Error);
  EXPECT_THROW(submit_kernel(Queue::host(), again, 1, two, {}, std::array{0.0}), Error);
  EXPECT_THROW(submit_kernel(Queue::host(), again, -1, two, std::array<i64, 2>{}, std::array{0.0}), Error);
}

// What its code lies in is kept by tasks too: a name that gets other forms leaves those that were submitted alone.
TEST(KernelNames, TheLibraryLivesAsLongAsItsTasks) {
  auto library = std::make_shared<int>(1);
  std::weak_ptr<int> const alive = library;
  auto const queue = Queue::shuffle(1);  // runs when somebody waits
  double x[] = {1}, y[] = {2};
  Array const arrays[] = {Array::wrap(x, sizeof x, nullptr), Array::wrap(y, sizeof y, nullptr)};
  submit_kernel(queue, register_kernel("kept", signature<double>(), &shifted<double>, nullptr, std::move(library)), 1, arrays,
                std::array<i64, 2>{0, 1}, std::array{3.0});
  register_kernel("kept", signature<double>(), &nothing);
  EXPECT_FALSE(alive.expired());
  arrays[1].settle(Access::read, "the test");
  EXPECT_EQ(y[0], 5);
  queue.wait("the test");
  submit_without_form(queue, [](Executor&, double*) {}, update<double>(arrays[0]));  // what is done is freed by the next
  queue.wait("the test");
  EXPECT_TRUE(alive.expired());
}

namespace {

/// The kernel itself, as it is on the emulated device: the index space is done by one thread.
void scale_entries(double* x, i64 n, double factor) {
  for (i64 i = 0; i < n; ++i) x[i] *= factor;
}

int scale_on_gpu(i64 n, void* const* arrays, i64 const*, double const* reals, void* stream) {
  auto* x = static_cast<double*>(arrays[0]);
  double factor = reals[0];
  void* pointers[] = {&x, &n, &factor};
  return int(cudaLaunchKernel(emulated::entry(&scale_entries), dim3(1), dim3(1), pointers, 0, static_cast<cudaStream_t>(stream)));
}

int refuse(i64, void* const*, i64 const*, double const*, void*) { return 1; }

std::int64_t run_without_form() {
  std::int64_t n = 0;
  for (auto const& w : gpu::without_form()) n += w.count;
  return n;
}

KernelSignature scaling() { return {{{Access::update, Dtype::float64}}, 0, 1}; }

}  // namespace

TEST(KernelsOfGpus, LaunchIntoTheStreamAndCopyNothing) {
  if (!on_the_emulated_gpu()) GTEST_SKIP() << "on the emulated GPU alone";
  auto const kernel = register_kernel("scale on a GPU", scaling(), &nothing, &scale_on_gpu);  // its host form would do nothing
  EXPECT_TRUE(kernel->has_gpu_form());
  auto const queue = Queue::gpu();
  double values[] = {1, 2, 3};
  auto const x = Array::of(std::span<double const>(values));
  auto const before = run_without_form();
  submit_kernel(queue, kernel, 3, std::span(&x, 1), {}, std::array{2.0});
  submit_kernel(queue, kernel, 2, std::span(&x, 1), {}, std::array{5.0});
  x.settle(Access::read, "the test");
  EXPECT_EQ(x.as<double>()[0], 10);
  EXPECT_EQ(x.as<double>()[1], 20);
  EXPECT_EQ(x.as<double>()[2], 6);
  EXPECT_EQ(run_without_form(), before);
  submit_kernel(queue, register_kernel("without a GPU's form", scaling(), &nothing), 3, std::span(&x, 1), {}, std::array{2.0});
  queue.wait("the test");
  EXPECT_EQ(run_without_form(), before + 1);
}

TEST(KernelsOfGpus, SayWhatTheyCannot) {
  if (!on_the_emulated_gpu()) GTEST_SKIP() << "on the emulated GPU alone";
  auto const queue = Queue::gpu();
  double values[] = {1};
  auto const x = Array::of(std::span<double const>(values));
  EXPECT_THROW(
      {
        submit_kernel(queue, register_kernel("refuses", scaling(), &nothing, &refuse), 1, std::span(&x, 1), {}, std::array{2.0});
        queue.wait("the test");
      },
      Error);
}
