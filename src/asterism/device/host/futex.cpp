#include "asterism/device/host/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace asterism::device::host {

void futex_wait(std::atomic<std::uint32_t> const& word, std::uint32_t expected, std::int64_t nanoseconds) {
  timespec const most{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &most, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t> const& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace asterism::device::host
