// A helper thread that lets MPI move messages while this process computes.
#pragma once

namespace asterism::comm {

/// Starts or stops it; the option -sf_progress. It only works while star-forest operations that need MPI are under way. Throws a
/// CommError if MPI was not initialised for calls from several threads. Worth it where a core is free.
void set_progress_thread(bool on);
bool progress_thread();

namespace detail {
/// Brackets an operation. Cheap if there is no thread.
void operation_begins(unsigned long long communicator);
void operation_ends();
}  // namespace detail

}  // namespace asterism::comm
