// Ctrl-C: the host program installs a poll; long loops ask it where they synchronise anyway.
#pragma once
#include <functional>

namespace asterism {

/// poll() is true once the user asked to stop. The Python layer installs PyErr_CheckSignals.
void set_interrupt_poll(std::function<bool()> poll);
bool interrupt_requested();

}  // namespace asterism
