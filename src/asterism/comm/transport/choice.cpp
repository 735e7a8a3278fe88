#include "asterism/comm/transport/choice.hpp"

#include <atomic>

#include "asterism/comm/node/node.hpp"

namespace asterism::comm {
namespace {
std::atomic<TransportChoice> chosen_default{TransportChoice::automatic};
}

std::string_view name_of(TransportChoice choice) {
  constexpr std::string_view names[] = {"auto", "p2p", "shm"};
  return names[std::size_t(choice)];
}

TransportChoice transport_from_name(std::string_view name) {
  for (auto const c : {TransportChoice::automatic, TransportChoice::p2p, TransportChoice::shm})
    if (name_of(c) == name) return c;
  fail(ErrorKind::option, "transport '{}' is not one of auto, p2p, shm.", name);
}

TransportChoice default_transport() { return chosen_default; }
void set_default_transport(TransportChoice choice) { chosen_default = choice; }

std::string_view name_of(Way way) {
  constexpr std::string_view names[] = {"self", "MPI", "shared memory"};
  return names[std::size_t(way)];
}

Way reach(Communicator const& comm, TransportChoice choice, int rank) {
  if (rank == comm.rank()) return Way::self;
  if (choice == TransportChoice::p2p) return Way::point_to_point;
  auto const& node = *comm.node();
  if (node.index_of(rank) >= 0) return Way::shared_memory;
  ASTERISM_REQUIRE(choice != TransportChoice::shm, comm, "transport 'shm' cannot reach rank {}: {}. Use 'auto' or 'p2p'.", rank,
                   node.shares_memory() ? "it runs on another machine" : node.why_not());
  return Way::point_to_point;
}

}  // namespace asterism::comm
