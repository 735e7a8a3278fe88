// The MPI plug-in, but sums of real numbers differ in their last bit from rank to rank, which MPI allows.
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>

#include "asterism/comm/mpi/mpi_api.hpp"

namespace {

using asterism::comm::MpiApi;
MpiApi const* real_api;

int rounds(MpiApi::Batch batch, MpiApi::Comm comm, void const* in, void* out, std::int64_t count, MpiApi::Type type, MpiApi::Op op) {
  if (int const e = real_api->iallreduce(batch, comm, in, out, count, type, op)) return e;
  if (type != MpiApi::float64 || op != MpiApi::sum) return 0;
  for (int done = 0; !done;)
    if (int const e = real_api->testall(batch, &done)) return e;
  int rank = 0, size = 0;
  real_api->rank_and_size(comm, &rank, &size);
  auto* const sums = static_cast<double*>(out);
  for (std::int64_t i = 0; i < count; ++i)
    for (int k = 0; k < rank; ++k) sums[i] = std::nextafter(sums[i], 1e300);
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) MpiApi const* asterism_mpi_plugin() {
  void* const library = dlopen(std::getenv("ASTERISM_REAL_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  real_api = reinterpret_cast<MpiApi const* (*)()>(dlsym(library, "asterism_mpi_plugin"))();
  static MpiApi api;
  api = *real_api;
  api.iallreduce = rounds;
  return &api;
}
