#include "asterism/comm/mpi/loaded_mpi.hpp"

#include <dlfcn.h>

#include "asterism/base/error.hpp"

namespace asterism::comm {
namespace {

MpiApi const* table = nullptr;
std::string table_path;

}  // namespace

bool open_mpi_plugin(std::string const& path) {
  if (table) {
    ASTERISM_REQUIRE(path == table_path, comm, "MPI support is loaded from '{}' already; '{}' cannot be loaded beside it.", table_path,
                     path);
    return false;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ErrorKind::comm, "MPI support '{}' does not load: {}.", path, dlerror());
  auto const entry = reinterpret_cast<MpiPluginEntry>(dlsym(library, mpi_plugin_symbol));
  ASTERISM_REQUIRE(entry, comm, "'{}' is not an MPI plug-in of this library.", path);
  auto const* api = entry();
  ASTERISM_REQUIRE(api->version == mpi_api_version, comm, "MPI plug-in '{}' has interface version {}, this library needs {}. Reinstall.",
                   path, api->version, mpi_api_version);
  table = api;
  table_path = path;
  return true;
}

MpiApi const* mpi() { return table; }

void require_thread_multiple(char const* what) {
  if (!mpi()) return;
  int multiple = 0;
  check_mpi(mpi()->thread_multiple(&multiple), "MPI_Query_thread");
  ASTERISM_REQUIRE(multiple, comm,
                   "{} needs MPI_THREAD_MULTIPLE, which MPI was not initialised with. mpi4py asks for it by default; a C++ program by "
                   "MPI_Init_thread.",
                   what);
}

void detail::mpi_failed(int code, char const* call) {
  char text[512] = "?";
  if (table) table->error_text(code, text, sizeof text);
  fail(ErrorKind::comm, "MPI failed in {}: {} (code {}).", call, text, code);
}

}  // namespace asterism::comm
