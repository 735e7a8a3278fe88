#include "asterism/comm/node/node.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "asterism/comm/mpi/batch.hpp"
#include "asterism/device/host/team.hpp"

namespace asterism::comm::node {
namespace {

/// What each rank tells the others of its node.
struct Introduction {
  std::int64_t rank = 0;
  ArenaName arena;
  std::uint64_t heads = 0;  // 0: it has no arena
  std::uint64_t probe = 0;  // address of memory that is not shared and holds the arena's token
  cpu_set_t cores;          // that it may use
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
  static std::uint64_t probe;
  Introduction mine;
  mine.rank = rank;
  CPU_ZERO(&mine.cores);
  sched_getaffinity(0, sizeof mine.cores, &mine.cores);
  auto* const arena = size > 1 ? Arena::mine() : nullptr;
  if (arena) {
    n->heads_ = arena->allocate(size * std::int64_t(sizeof(std::uint64_t)));
    for (int i = 0; i < size; ++i) new (table(arena->at(n->heads_)) + i) std::atomic<std::uint64_t>(0);
    mine.arena = arena->name();
    mine.heads = n->heads_;
    probe = mine.arena.token;
    mine.probe = std::uint64_t(reinterpret_cast<std::uintptr_t>(&probe));
  }
  std::vector<Introduction> all(static_cast<std::size_t>(size));
  Batch const batch(api);
  check_mpi(api.iallgather(batch.get(), here, &mine, all.data(), sizeof mine), "MPI_Iallgather");
  batch.finish("MPI_Iallgather");
  n->share_ = {.ranks = size, .rank = n->me_, .sharing = 0};
  cpu_set_t of_any;
  CPU_ZERO(&of_any);
  for (auto const& i : all) {
    cpu_set_t of_both;
    CPU_AND(&of_both, &i.cores, &mine.cores);
    CPU_OR(&of_any, &of_any, &i.cores);
    n->share_.sharing += CPU_COUNT(&of_both) > 0;
  }
  n->share_.cores = CPU_COUNT(&of_any);
  n->share_.sharing = std::max(n->share_.sharing, 1);
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
  auto const neighbour = std::size_t((n->me_ + 1) % size);
  auto& next = n->peers_[neighbour];
  std::int64_t works[2] = {}, everywhere[2] = {};
  if (arena && next.heads) {
    next.mapping = Mapping::open(next.arena);
    works[0] = next.mapping != nullptr;
    std::uint64_t token = 0;
    auto const& theirs = *std::find_if(all.begin(), all.end(), [&](auto const& i) { return i.rank == n->ranks_[neighbour]; });
    works[1] = works[0] && next.mapping->read_private(theirs.probe, &token, sizeof token) && token == theirs.arena.token;
  }
  check_mpi(api.iallreduce(batch.get(), here, works, everywhere, 2, MpiApi::int64, MpiApi::min), "MPI_Iallreduce");
  batch.finish("MPI_Iallreduce");
  n->reads_private_ = everywhere[1];
  check_mpi(api.comm_free(here), "MPI_Comm_free");
  if (size == 1) n->why_not_ = "no other rank runs on this machine";
  else if (!everywhere[0])
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
    p.out = std::make_unique<Outbox>(arena, &mapping(index)->head().bell);
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

}  // namespace asterism::comm::node
