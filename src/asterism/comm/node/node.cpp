#include "asterism/comm/node/node.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "asterism/comm/communicator.hpp"
#include "asterism/device/host/team.hpp"

namespace asterism::comm::node {
namespace {

/// What each rank tells the others of its node.
struct Introduction {
  std::int64_t rank = 0;
  ArenaName arena;
  std::uint64_t heads = 0;  // 0: it has no arena
};

std::atomic<std::uint64_t>* table(std::byte* at) { return reinterpret_cast<std::atomic<std::uint64_t>*>(at); }

}  // namespace

std::shared_ptr<Node> Node::join(MpiApi const& api, MpiApi::Comm comm, int rank) {
  std::shared_ptr<Node> n(new Node);
  n->api_ = &api;
  n->comm_ = comm;
  MpiApi::Comm here = 0;
  check_mpi(api.split_node(comm, &here), "MPI_Comm_split_type");
  int size = 1;
  check_mpi(api.rank_and_size(here, &n->me_, &size), "MPI_Comm_size");
  n->crowded_ = size > device::host::allowed_cores();
  Introduction mine;
  mine.rank = rank;
  auto* const arena = size > 1 ? Arena::mine() : nullptr;
  if (arena) {
    n->heads_ = arena->allocate(size * std::int64_t(sizeof(std::uint64_t)));
    for (int i = 0; i < size; ++i) new (table(arena->at(n->heads_)) + i) std::atomic<std::uint64_t>(0);
    mine.arena = arena->name();
    mine.heads = n->heads_;
  }
  std::vector<Introduction> all(static_cast<std::size_t>(size));
  check_mpi(api.allgather(here, &mine, all.data(), sizeof mine), "MPI_Allgather");
  // for tests on one machine: ranks are taken for neighbours in groups of this many
  auto const* const text = std::getenv("ASTERISM_RANKS_PER_NODE");
  int const group = text && std::atoi(text) > 0 ? std::atoi(text) : size;
  for (int i = n->me_ / group * group; i < std::min(size, (n->me_ / group + 1) * group); ++i) {
    n->ranks_.push_back(int(all[std::size_t(i)].rank));
    n->peers_.push_back({all[std::size_t(i)].arena, all[std::size_t(i)].heads, nullptr, nullptr, nullptr});
  }
  n->me_ %= group;
  size = n->size();
  // everybody tries one neighbour: what forbids it (a container's walls, ptrace rules) forbids it to all
  auto& next = n->peers_[std::size_t((n->me_ + 1) % size)];
  std::int64_t works = 0, everywhere = 0;
  if (arena && next.heads) {
    next.mapping = Mapping::open(next.arena);
    works = next.mapping != nullptr;
  }
  check_mpi(api.allreduce(here, &works, &everywhere, 1, MpiApi::int64, MpiApi::min), "MPI_Allreduce");
  check_mpi(api.comm_free(here), "MPI_Comm_free");
  if (size == 1) n->why_not_ = "no other rank runs on this machine";
  else if (!everywhere)
    n->why_not_ = arena ? "the ranks of this machine cannot open each other's memory files under /proc" : "memfd_create failed";
  return n;
}

int Node::index_of(int rank) const {
  if (!shares_memory()) return -1;
  auto const at = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  return at != ranks_.end() && *at == rank ? int(at - ranks_.begin()) : -1;
}

Outbox& Node::to(int index) {
  auto& p = peers_[std::size_t(index)];
  if (!p.out) {
    auto& arena = *Arena::mine();
    p.out = std::make_unique<Outbox>(arena);
    table(arena.at(heads_))[index].store(p.out->head(), std::memory_order_release);
  }
  return *p.out;
}

std::shared_ptr<Mapping const> const& Node::mapping(int index) {
  auto& p = peers_[std::size_t(index)];
  if (!p.mapping) p.mapping = Mapping::open(p.arena);
  ASTERISM_REQUIRE(p.mapping, comm,
                   "the shared memory of rank {} cannot be opened, though others' on this machine can. Use -sf_transport p2p.",
                   ranks_[std::size_t(index)]);
  return p.mapping;
}

Inbox& Node::from(int index) {
  auto& p = peers_[std::size_t(index)];
  if (!p.in) p.in = std::make_unique<Inbox>(mapping(index), table(mapping(index)->at(p.heads)) + me_);
  return *p.in;
}

Patience Node::patience() const { return {api_, comm_, crowded_}; }

}  // namespace asterism::comm::node
