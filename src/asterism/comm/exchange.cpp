#include "asterism/comm/exchange.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <memory>

#include "asterism/base/profile.hpp"

namespace asterism::comm {

namespace {

/// Up to here auto takes MPI_Reduce_scatter_block: on 2-16 ranks it took 0.7-0.8 of the time of the consensus when this was chosen;
/// the flags are a kilobyte then.
constexpr int few_ranks = 128;

std::atomic<Discovery> chosen_discovery{Discovery::automatic};

using Sends = std::unique_ptr<void, void (*)(void*)>;

/// A parcel that waits, if there is one.
bool receive_one(Communicator const& comm, int tag, std::vector<Parcel>& incoming) {
  int found = 0, source = 0;
  std::int64_t bytes = 0;
  check_mpi(mpi()->iprobe(comm.handle(), tag, &found, &source, &bytes), "MPI_Iprobe");
  if (!found) return false;
  Parcel p{source, std::vector<std::byte>(static_cast<std::size_t>(bytes))};
  check_mpi(mpi()->recv(comm.handle(), p.data.data(), bytes, source, tag), "MPI_Recv");
  incoming.push_back(std::move(p));
  return true;
}

void by_consensus(Communicator const& comm, int tag, void* sends, std::vector<Parcel>& incoming) {
  auto const* api = mpi();
  Sends const barrier(api->batch_new(), api->batch_free);
  bool in_barrier = false;
  for (int done = 0; !done;) {
    receive_one(comm, tag, incoming);
    if (in_barrier) {
      check_mpi(api->testall(barrier.get(), &done), "MPI_Test");
    } else {
      int sent = 0;
      check_mpi(api->testall(sends, &sent), "MPI_Testall");
      if (sent) {
        check_mpi(api->ibarrier(barrier.get(), comm.handle()), "MPI_Ibarrier");
        in_barrier = true;
      }
    }
  }
}

/// How many parcels come here.
std::int64_t count_incoming(Communicator const& comm, std::vector<Parcel> const& outgoing, Discovery discovery) {
  std::vector<std::int64_t> flags(static_cast<std::size_t>(comm.size()), 0);
  for (auto const& p : outgoing) flags[std::size_t(p.rank)] = 1;
  if (discovery == Discovery::allreduce) {
    comm.sum(flags);
    return flags[std::size_t(comm.rank())];
  }
  std::int64_t mine = 0;
  check_mpi(mpi()->reduce_scatter_sum(comm.handle(), flags.data(), &mine), "MPI_Reduce_scatter_block");
  return mine;
}

}  // namespace

Discovery discovery_from_name(std::string_view name) {
  constexpr std::string_view names[] = {"auto", "nbx", "reduce_scatter", "allreduce"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name) return Discovery(i);
  fail(ErrorKind::option, "discovery '{}' is not one of auto, nbx, reduce_scatter, allreduce.", name);
}

void set_discovery(Discovery discovery) { chosen_discovery = discovery; }

std::vector<Parcel> exchange(Communicator const& comm, std::vector<Parcel> outgoing, std::function<void()> const& meanwhile) {
  static int const event = profile::event("SparseExchange");
  profile::Scope const scope(event);
  std::vector<Parcel> incoming;
  for (auto& p : outgoing)
    if (p.rank == comm.rank()) incoming.push_back(std::move(p)), p.rank = -1;
  std::erase_if(outgoing, [](Parcel const& p) { return p.rank < 0; });
  if (comm.size() == 1) {
    meanwhile();
    return incoming;
  }

  comm.end_queued();
  auto const* api = mpi();
  int const tag = comm.new_tag();
  auto discovery = chosen_discovery.load();
  if (discovery == Discovery::automatic) discovery = comm.size() <= few_ranks ? Discovery::reduce_scatter : Discovery::nbx;
  // for the consensus synchronous: complete means received, which is what its barrier has to prove
  auto const send = discovery == Discovery::nbx ? api->issend : api->isend;
  Sends const sends(api->batch_new(), api->batch_free);
  for (auto const& p : outgoing) {
    check_mpi(send(sends.get(), comm.handle(), p.data.data(), std::int64_t(p.data.size()), p.rank, tag), "MPI_Isend");
    profile::count_message(1, double(p.data.size()));
  }
  std::exception_ptr error;  // of this rank alone: what is on its way arrives all the same
  auto const do_meanwhile = [&] {
    try {
      meanwhile();
    } catch (...) {
      error = std::current_exception();
    }
  };
  if (discovery == Discovery::nbx) {
    do_meanwhile();
    by_consensus(comm, tag, sends.get(), incoming);
  } else {
    auto const all = std::ssize(incoming) + count_incoming(comm, outgoing, discovery);
    do_meanwhile();
    while (std::ssize(incoming) < all) receive_one(comm, tag, incoming);
    check_mpi(api->waitall(sends.get()), "MPI_Waitall");
  }
  if (error) std::rethrow_exception(error);
  std::sort(incoming.begin(), incoming.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
  return incoming;
}

}  // namespace asterism::comm
