// Which rank is in which call: told when something waits for too long.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace asterism::comm {

class Communicator;

namespace roll_call {

namespace detail {
extern std::atomic<double> most_seconds;
}

/// The collective call that this process is in, for others to see.
void enter(char const* name, std::uint64_t serial);
void leave();

/// A wait for other ranks of so many seconds prints the roll call and ends all processes; 0: it does not. -hang_timeout
void set_hang_timeout(double seconds);
inline double hang_timeout() { return detail::most_seconds.load(std::memory_order_relaxed); }
/// Gives the stack of the calling program, for people. The Python layer installs one.
void set_stack(std::function<std::string()> stack);

/// Prints who is in which call, since when, with the stacks of all processes of this machine, and ends the job.
[[noreturn]] void call_and_abort(Communicator const& comm, double waited);

}  // namespace roll_call
}  // namespace asterism::comm
