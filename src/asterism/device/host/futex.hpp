// Sleeping until a word in memory changes, also of memory that processes share.
#pragma once
#include <atomic>
#include <cstdint>

namespace asterism::device::host {

/// Returns when somebody wakes it, when the word is not `expected` any more, after so many nanoseconds, or for no reason.
void futex_wait(std::atomic<std::uint32_t> const& word, std::uint32_t expected, std::int64_t nanoseconds);
/// Wakes all who wait there.
void futex_wake(std::atomic<std::uint32_t> const& word);

}  // namespace asterism::device::host
