#include "asterism/comm/communicator/exchange.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/node_collective.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/mpi/batch.hpp"

namespace asterism::comm {

namespace {

/// Up to here auto takes MPI_Reduce_scatter_block: on 2-16 ranks it took 0.7-0.8 of the time of the consensus when this was chosen;
/// the flags are a kilobyte then.
constexpr int few_ranks = 128;

std::atomic<Discovery> chosen_discovery{Discovery::automatic};

/// A parcel that waits, if there is one.
bool receive_one(Communicator const& comm, int tag, std::vector<Parcel>& incoming) {
  int found = 0, source = 0;
  std::int64_t bytes = 0;
  check_mpi(mpi()->iprobe(comm.handle(), tag, &found, &source, &bytes), "MPI_Iprobe");
  if (!found) return false;
  struct Arriving {
    Parcel parcel;
    Batch receive;
  };
  auto const a = std::make_shared<Arriving>();
  a->parcel = {source, std::vector<std::byte>(static_cast<std::size_t>(bytes))};
  check_mpi(mpi()->irecv(a->receive.get(), comm.handle(), a->parcel.data.data(), bytes, source, tag), "MPI_Irecv");
  try {
    wait_for(comm, a->receive.get(), "MPI_Irecv");
  } catch (...) {
    comm.give_up(a);
    throw;
  }
  incoming.push_back(std::move(a->parcel));
  return true;
}

void by_consensus(Communicator const& comm, int tag, MpiApi::Batch sends, std::vector<Parcel>& incoming) {
  auto const* api = mpi();
  Batch const barrier;
  bool in_barrier = false;
  std::optional<Wait> wait;
  for (int done = 0; !done;) {
    if (receive_one(comm, tag, incoming)) wait.reset();
    else if (!wait) wait.emplace(comm, Wait::For::messages);
    else (*wait)();
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
  auto const memory = std::make_shared<std::pair<std::vector<std::int64_t>, std::int64_t>>(std::move(flags), 0);
  Batch const batch;
  check_mpi(mpi()->ireduce_scatter_sum(batch.get(), comm.handle(), memory->first.data(), &memory->second), "MPI_Ireduce_scatter_block");
  try {
    wait_for(comm, batch.get(), "MPI_Ireduce_scatter_block");
  } catch (...) {
    comm.give_up(memory);
    throw;
  }
  return memory->second;
}

/// A message to each other rank, empty where there is no parcel.
void on_node(Communicator const& comm, std::vector<Parcel> const& outgoing, std::vector<Parcel>& incoming,
             std::function<void()> const& meanwhile) {
  NodeCollective call(comm);
  std::vector<Parcel const*> to(static_cast<std::size_t>(comm.size()), nullptr);
  for (auto const& p : outgoing) to[std::size_t(p.rank)] = &p;
  for (int r = 0; r < comm.size(); ++r) {
    if (r == comm.rank()) continue;
    auto const* const p = to[std::size_t(r)];
    std::int64_t const is_there = p != nullptr;  // a parcel may be empty
    if (p) profile::count_message(1, double(p->data.size()));
    call.send(r, std::as_bytes(std::span(&is_there, 1)), p ? std::span<std::byte const>(p->data) : std::span<std::byte const>());
  }
  meanwhile();
  call.receive([&](int rank, std::span<std::byte const> data) {
    std::int64_t is_there = 0;
    ASTERISM_REQUIRE(data.size() >= sizeof is_there, comm,
                     "rank {} gives {} bytes to an exchange, which has 8 at least: the ranks are in different calls.", rank, data.size());
    std::memcpy(&is_there, data.data(), sizeof is_there);
    if (is_there) incoming.push_back({rank, {data.begin() + sizeof is_there, data.end()}});
  });
}

void by_mpi(Communicator const& comm, std::vector<Parcel> const& outgoing, std::vector<Parcel>& incoming, Discovery discovery,
            std::function<void()> const& meanwhile) {
  auto const* api = mpi();
  int const tag = comm.new_tag();
  if (discovery == Discovery::automatic) discovery = comm.size() <= few_ranks ? Discovery::reduce_scatter : Discovery::nbx;
  // for the consensus synchronous: complete means received, which is what its barrier has to prove
  auto const send = discovery == Discovery::nbx ? api->issend : api->isend;
  Batch const sends;
  for (auto const& p : outgoing) {
    check_mpi(send(sends.get(), comm.handle(), p.data.data(), std::int64_t(p.data.size()), p.rank, tag), "MPI_Isend");
    profile::count_message(1, double(p.data.size()));
  }
  if (discovery == Discovery::nbx) {
    meanwhile();
    return by_consensus(comm, tag, sends.get(), incoming);
  }
  auto const all = std::ssize(incoming) + count_incoming(comm, outgoing, discovery);
  meanwhile();
  Wait wait(comm, Wait::For::messages);
  while (std::ssize(incoming) < all)
    if (!receive_one(comm, tag, incoming)) wait();
  wait_for(comm, sends.get(), "MPI_Isend");
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
  std::exception_ptr error;  // of this rank alone: what is on its way arrives all the same
  auto const do_meanwhile = [&] {
    try {
      meanwhile();
    } catch (...) {
      error = std::current_exception();
    }
  };
  auto const discovery = chosen_discovery.load();
  if (discovery == Discovery::automatic && NodeCollective::serves(comm)) {
    on_node(comm, outgoing, incoming, do_meanwhile);
  } else {
    // MPI may read what is sent as long as a call that was given up is under way
    auto const sent = std::make_shared<std::vector<Parcel>>(std::move(outgoing));
    try {
      by_mpi(comm, *sent, incoming, discovery, do_meanwhile);
    } catch (...) {
      comm.give_up(sent);
      throw;
    }
  }
  if (error) std::rethrow_exception(error);
  std::sort(incoming.begin(), incoming.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
  return incoming;
}

}  // namespace asterism::comm
