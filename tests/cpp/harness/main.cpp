// Runs the tests; with ASTERISM_TEST_MPI=1 under mpiexec they get the world communicator. ASTERISM_TEST_ARCH is the instruction set of the
// kernels that are to be tested: another library than that is an error, a CPU without it a test that is skipped.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "asterism/base/machine.hpp"
#include "harness/world.hpp"

namespace {
asterism::comm::Communicator world_communicator;

constexpr int skipped = 77;

/// Of a rank whose results nobody prints.
class OnlyFailures final : public ::testing::EmptyTestEventListener {
  void OnTestStart(::testing::TestInfo const& test) override { test_ = test.name(); }
  void OnTestPartResult(::testing::TestPartResult const& r) override {
    if (r.failed())
      std::fprintf(stderr, "rank %d: %s: %s:%d: %s\n", world_communicator.rank(), test_.c_str(), r.file_name() ? r.file_name() : "",
                   r.line_number(), r.message());
  }
  std::string test_;
};

/// 0 where the kernels are those that are to be tested, and can run here.
int check_kernels(char const* wanted) {
  if (auto const loaded = asterism::build_info()["arch"]; loaded != wanted) {
    std::fprintf(stderr, "the kernels that were loaded are for %s, not for %s\n", loaded.c_str(), wanted);
    return 1;
  }
  try {
    asterism::check_cpu();
  } catch (asterism::Error const& e) {
    std::fprintf(stderr, "skipped: %s\n", e.what());
    return skipped;
  }
  return 0;
}
}  // namespace

asterism::comm::Communicator const& world() { return world_communicator; }

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (auto const* const arch = std::getenv("ASTERISM_TEST_ARCH"))
    if (int const result = check_kernels(arch)) return result;
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
  if (world_communicator.rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new OnlyFailures);
  }
  int const result = RUN_ALL_TESTS();
  if (mpi) reinterpret_cast<int (*)()>(dlsym(mpi, "MPI_Finalize"))();
  return result;
}
