// Why long work is to end early: Ctrl-C, and time limits. Long loops ask where they synchronise anyway.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace asterism {

/// In ascending order: where ranks differ, the largest holds.
enum class Interrupt : std::int64_t { none, time_limit, user };

/// poll() is true once the user asked to stop. The Python layer installs PyErr_CheckSignals. Long work asks it every `seconds` or so.
void set_interrupt_poll(std::function<bool()> poll, double seconds = 0.05);
double interrupt_interval();
/// Work of this thread that is under way so many seconds from now ends then, as after Ctrl-C: set-ups by an error of kind time_limit,
/// solves as DIVERGED_TIME_LIMIT. Infinity: no limit any more.
void set_time_limit(double seconds);
/// That of this thread, in seconds of a clock, and whether it is over, which any thread may ask.
double time_limit();
bool is_over(double time_limit);
Interrupt interrupt_requested();
/// Before work of this thread that cannot be ended: an error of kind time_limit if so many seconds are not left.
void require_time(double seconds, std::string const& what);

}  // namespace asterism
