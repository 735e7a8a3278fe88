#include "asterism/apps/forest_timing.hpp"

#include "asterism/base/profile.hpp"

namespace asterism::apps {

double forest_pingpong(comm::StarForest const& forest, std::int64_t k, comm::ReduceOp op, int repeats) {
  std::vector<double> root(std::size_t(forest.roots() * k), 1.0), leaf(std::size_t(forest.leaf_space() * k), 0.0);
  comm::Operation const operation(op);
  forest.comm().barrier();
  double const start = profile::now();
  for (int i = 0; i < repeats; ++i) {
    forest.bcast(root.data(), leaf.data(), k);
    forest.reduce(leaf.data(), root.data(), operation, k);
  }
  return (profile::now() - start) / (2.0 * repeats);
}

double raw_pingpong(comm::Communicator const& comm, std::int64_t bytes, int repeats) {
  ASTERISM_REQUIRE(comm.size() >= 2, comm, "pingpong: {} rank(s); 2 are needed.", comm.size());
  std::vector<std::byte> data(static_cast<std::size_t>(bytes));
  comm.barrier();
  double const start = profile::now();
  comm::check_mpi(comm::mpi()->pingpong(comm.handle(), data.data(), bytes, repeats), "MPI_Send or MPI_Recv");
  return (profile::now() - start) / (2.0 * repeats);
}

double forest_setup(comm::Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> const& leaves,
                    std::vector<comm::RemoteRoot> const& remote, int repeats) {
  comm.barrier();
  double const start = profile::now();
  for (int i = 0; i < repeats; ++i) comm::StarForest const forest(comm, roots, leaves, remote);
  return (profile::now() - start) / repeats;
}

}  // namespace asterism::apps
