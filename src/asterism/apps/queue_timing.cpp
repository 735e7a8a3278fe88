#include "asterism/apps/queue_timing.hpp"

#include "asterism/apps/plain_loops.kernels.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/scalar.kernels.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::apps {
namespace {

void busy(double seconds) {
  auto const until = profile::now() + seconds;
  while (profile::now() < until) {
  }
}

}  // namespace

LaunchTimes time_launch(device::Queue const& queue, int tasks) {
  device::Array const a(8);
  auto const empty = [&] { submit(queue, device::kernel::nothing, device::update<double>(a)); };
  empty();
  queue.wait("bench");
  LaunchTimes out;
  auto start = profile::now();
  for (int i = 0; i < tasks; ++i) empty();
  out.submit = (profile::now() - start) / tasks;
  queue.wait("bench");
  out.streamed = (profile::now() - start) / tasks;
  start = profile::now();
  for (int i = 0; i < tasks; ++i) {
    empty();
    queue.wait("bench");
  }
  out.waited = (profile::now() - start) / tasks;
  return out;
}

double time_pipeline(device::Queue const& queue, std::array<double, 3> const& work, double launch, bool waits_after_first) {
  device::Array const a(8);
  queue.wait("bench");
  auto const start = profile::now();
  for (auto const seconds : work) {
    busy(launch);
    submit(queue, [seconds](device::Executor&, double*) { busy(seconds); }, device::update<double>(a));
    if (waits_after_first && seconds == work[0]) queue.wait("bench");
  }
  queue.wait("bench");
  return profile::now() - start;
}

namespace {

template <class Operation, class Loop>
Overhead compare(int repeats, Operation const& operation, Loop const& loop) {
  auto const time = [&](auto const& f) {
    f();
    auto const start = profile::now();
    for (int i = 0; i < repeats; ++i) f();
    return (profile::now() - start) / repeats;
  };
  Overhead best{1, 1};
  for (int round = 0; round < 5; ++round) {
    best.operation = std::min(best.operation, time(operation));
    best.loop = std::min(best.loop, time(loop));
  }
  return best;
}

}  // namespace

Overhead time_axpy(std::int64_t n, int repeats) {
  auto const layout = comm::Layout::from_offsets(comm::Communicator(), {0, n});
  la::Vector x(layout, Dtype::float64), y(layout, Dtype::float64);
  fill(x, 1e-3);
  fill(y, 1.0);
  return compare(repeats, [&] { axpy(1e-9, x, y); }, [&] { kernel::plain_axpy(n, 1e-9, x.data().as<double>(), y.data().as<double>()); });
}

Overhead time_dot(std::int64_t n, int repeats) {
  auto const layout = comm::Layout::from_offsets(comm::Communicator(), {0, n});
  la::Vector x(layout, Dtype::float64), y(layout, Dtype::float64);
  fill(x, 1e-3);
  fill(y, 1.0);
  double volatile sink = 0;
  return compare(
      repeats, [&] { sink = dot(x, y).real(); }, [&] { sink = kernel::plain_dot(n, x.data().as<double>(), y.data().as<double>()); });
}

}  // namespace asterism::apps
