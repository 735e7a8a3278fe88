// The MPI plug-in, but for one call: on rank ASTERISM_FAULT_RANK the ASTERISM_FAULT_AT-th call that is looked at returns an error.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "asterism/comm/mpi/mpi_api.hpp"

namespace {

using asterism::comm::MpiApi;

MpiApi const* real_api;
MpiApi failing_api;
std::atomic<long> left{0};
int fault_rank = -1;

int my_rank(MpiApi::Comm comm) {
  int rank = 0, size = 0;
  real_api->rank_and_size(comm, &rank, &size);
  return rank;
}

template <auto Field>
struct Failing;
template <class... A, int (*MpiApi::*Field)(MpiApi::Comm, A...)>
struct Failing<Field> {
  static int call(MpiApi::Comm comm, A... a) {
    if (my_rank(comm) == fault_rank && --left == 0) return 16;  // MPI_ERR_OTHER
    return (real_api->*Field)(comm, a...);
  }
};
template <class... A, int (*MpiApi::*Field)(MpiApi::Batch, MpiApi::Comm, A...)>
struct Failing<Field> {
  static int call(MpiApi::Batch batch, MpiApi::Comm comm, A... a) {
    if (my_rank(comm) == fault_rank && --left == 0) return 16;
    return (real_api->*Field)(batch, comm, a...);
  }
};

template <auto Field>
void replace() {
  failing_api.*Field = &Failing<Field>::call;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) MpiApi const* asterism_mpi_plugin() {
  void* const library = dlopen(std::getenv("ASTERISM_REAL_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  real_api = reinterpret_cast<MpiApi const* (*)()>(dlsym(library, "asterism_mpi_plugin"))();
  failing_api = *real_api;
  fault_rank = std::atoi(std::getenv("ASTERISM_FAULT_RANK"));
  left = std::atol(std::getenv("ASTERISM_FAULT_AT"));
  replace<&MpiApi::ibarrier>();
  replace<&MpiApi::iallreduce>();
  replace<&MpiApi::iallgather>();
  replace<&MpiApi::iallgatherv>();
  replace<&MpiApi::ireduce_scatter_sum>();
  replace<&MpiApi::ibcast>();
  replace<&MpiApi::isend>();
  replace<&MpiApi::issend>();
  replace<&MpiApi::irecv>();
  return &failing_api;
}
