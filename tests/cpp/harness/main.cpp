// Runs the tests; with ASTERISM_TEST_MPI=1 under mpiexec they get the world communicator.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "harness/world.hpp"

namespace {
asterism::comm::Communicator world_communicator;
}

asterism::comm::Communicator const& world() { return world_communicator; }

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  void* mpi = nullptr;
  if (std::getenv("ASTERISM_TEST_MPI")) {
    // as a host program would: libmpi with global symbols first, then our plug-in
    mpi = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
    if (!mpi)
      mpi = dlopen((std::string(std::getenv("VIRTUAL_ENV") ? std::getenv("VIRTUAL_ENV") : ".venv") + "/lib/libmpi.so.40").c_str(),
                   RTLD_NOW | RTLD_GLOBAL);
    if (!mpi) {
      std::fprintf(stderr, "no libmpi: %s\n", dlerror());
      return 1;
    }
    auto const init = reinterpret_cast<int (*)(int*, char***, int, int*)>(dlsym(mpi, "MPI_Init_thread"));
    int provided = 0;
    init(&argc, &argv, 3, &provided);  // MPI_THREAD_MULTIPLE, in Open MPI and in MPICH: queues' threads communicate
    asterism::comm::load_mpi_plugin(ASTERISM_PLUGIN_DIR "/libasterism_mpi_openmpi.so");
    world_communicator = asterism::comm::Communicator::from_handle(reinterpret_cast<std::uint64_t>(dlsym(mpi, "ompi_mpi_comm_world")));
  }
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (world_communicator.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  int const result = RUN_ALL_TESTS();
  if (mpi) reinterpret_cast<int (*)()>(dlsym(mpi, "MPI_Finalize"))();
  return result;
}
