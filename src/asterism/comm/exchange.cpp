#include "asterism/comm/exchange.hpp"

#include <algorithm>
#include <memory>

#include "asterism/base/profile.hpp"

namespace asterism::comm {

std::vector<Parcel> exchange(Communicator const& comm, std::vector<Parcel> outgoing) {
  static int const event = profile::event("SparseExchange");
  profile::Scope const scope(event);
  std::vector<Parcel> incoming;
  for (auto& p : outgoing)
    if (p.rank == comm.rank()) incoming.push_back(std::move(p)), p.rank = -1;
  std::erase_if(outgoing, [](Parcel const& p) { return p.rank < 0; });
  if (comm.size() == 1) return incoming;

  auto const* api = mpi();
  int const tag = comm.new_tag();
  std::unique_ptr<void, void (*)(void*)> const sends(api->batch_new(), api->batch_free), barrier(api->batch_new(), api->batch_free);
  for (auto const& p : outgoing) {
    // synchronous: complete means received, which is what the barrier below has to prove
    check_mpi(api->issend(sends.get(), comm.handle(), p.data.data(), std::int64_t(p.data.size()), p.rank, tag), "MPI_Issend");
    profile::count_message(1, double(p.data.size()));
  }
  bool in_barrier = false;
  for (int done = 0; !done;) {
    int found = 0, source = 0;
    std::int64_t bytes = 0;
    check_mpi(api->iprobe(comm.handle(), tag, &found, &source, &bytes), "MPI_Iprobe");
    if (found) {
      Parcel p{source, std::vector<std::byte>(static_cast<std::size_t>(bytes))};
      check_mpi(api->recv(comm.handle(), p.data.data(), bytes, source, tag), "MPI_Recv");
      incoming.push_back(std::move(p));
    }
    if (in_barrier) {
      check_mpi(api->testall(barrier.get(), &done), "MPI_Test");
    } else {
      int sent = 0;
      check_mpi(api->testall(sends.get(), &sent), "MPI_Testall");
      if (sent) {
        check_mpi(api->ibarrier(barrier.get(), comm.handle()), "MPI_Ibarrier");
        in_barrier = true;
      }
    }
  }
  std::sort(incoming.begin(), incoming.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
  return incoming;
}

}  // namespace asterism::comm
