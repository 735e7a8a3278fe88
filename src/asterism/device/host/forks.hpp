// fork(): the child has the memory of its parent, but of its threads only the one that called.
#pragma once

namespace asterism::device::host {

/// How many forks this process is away from the first one that asked.
int forks();

}  // namespace asterism::device::host
