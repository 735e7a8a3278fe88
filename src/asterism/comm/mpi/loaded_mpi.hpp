// The MPI library of this process.
#pragma once
#include <string>

#include "asterism/comm/mpi/mpi_api.hpp"

namespace asterism::comm {

/// Opens the plug-in at path, unless it is open; returns whether it was not. The process has loaded its MPI with global symbols before.
/// Throws CommError if another one is open, or if it does not fit.
bool open_mpi_plugin(std::string const& path);
/// Its table, or nullptr when there is no MPI.
MpiApi const* mpi();
/// What several threads that communicate need of a loaded MPI: an error that names `what` where it was not initialised so.
void require_thread_multiple(char const* what);

namespace detail {
[[noreturn]] void mpi_failed(int code, char const* call);
}
/// Turns a non-zero code of the table into a CommError.
inline void check_mpi(int code, char const* call) {
  if (code != 0) [[unlikely]]
    detail::mpi_failed(code, call);
}

}  // namespace asterism::comm
