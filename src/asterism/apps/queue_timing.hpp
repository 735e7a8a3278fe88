// Timing loops over queues, for `asterism bench launch`.
#pragma once
#include <array>
#include <cstdint>

#include "asterism/device/queue.hpp"

namespace asterism::apps {

/// Seconds of an empty task: of submitting it, of one among many (nothing waited for until the end), and submitted and waited for.
struct LaunchTimes {
  double submit = 0, streamed = 0, waited = 0;
};
LaunchTimes time_launch(device::Queue const& queue, int tasks);

/// Seconds until three tasks that take `work` seconds are done, where the host needs `launch` seconds to submit each: one after the
/// other, or with a wait after the first (Zhang et al. 2021, PetscSF, fig. 5).
double time_pipeline(device::Queue const& queue, std::array<double, 3> const& work, double launch, bool waits_after_first);

/// Seconds of an operation of float64 vectors of n values on the inline queue with profiling events, and of a vectorised loop that
/// does the same.
struct Overhead {
  double operation = 0, loop = 0;
};
Overhead time_axpy(std::int64_t n, int repeats);
Overhead time_dot(std::int64_t n, int repeats);

}  // namespace asterism::apps
