#include "asterism/comm/transport/choice.hpp"

#include <array>
#include <atomic>
#include <string>

#include "asterism/comm/node/node.hpp"

namespace asterism::comm {
namespace {
std::atomic<TransportChoice> chosen_default{TransportChoice::automatic};

#define NAME(name, text) #name,
constexpr std::array<std::string_view, transport_choices> names = {"auto", "p2p",    "shm", ASTERISM_FOREST_TRANSPORTS(NAME) "nccl",
                                                                   "ipc",  "nvshmem"};
#undef NAME
}  // namespace

TransportKind forest_transport(TransportChoice choice) {
  switch (choice) {
#define KIND(name, text) \
  case TransportChoice::name: return TransportKind::name;
    ASTERISM_FOREST_TRANSPORTS(KIND)
#undef KIND
    default: return TransportKind::self;
  }
}

std::string_view name_of(TransportChoice choice) { return names[std::size_t(choice)]; }

std::vector<std::string> transport_names() { return {names.begin(), names.end()}; }

TransportChoice transport_from_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return TransportChoice(i);
  std::string all;
  for (auto const n : names) all += (all.empty() ? "" : ", ") + std::string(n);
  fail(ErrorKind::option, "transport '{}' is not one of {}.", name, all);
}

TransportChoice default_transport() { return chosen_default; }
void set_default_transport(TransportChoice choice) { chosen_default = choice; }

std::string_view name_of(TransportKind kind) {
#define TEXT(name, text) text,
  constexpr std::array<std::string_view, transport_kinds> texts = {"self", "MPI", "shared memory", ASTERISM_FOREST_TRANSPORTS(TEXT)};
#undef TEXT
  return texts[std::size_t(kind)];
}

TransportKind reach(Communicator const& comm, TransportChoice choice, int rank) {
  if (rank == comm.rank()) return TransportKind::self;
  if (choice == TransportChoice::p2p) return TransportKind::point_to_point;
  if (auto const kind = forest_transport(choice); kind != TransportKind::self) return kind;
  auto const& node = *comm.node();
  if (node.index_of(rank) >= 0) return TransportKind::shared_memory;
  ASTERISM_REQUIRE(choice != TransportChoice::shm, comm, "transport 'shm' cannot reach rank {}: {}. Use 'auto' or 'p2p'.", rank,
                   node.shares_memory() ? "it runs on another machine" : node.why_not());
  return TransportKind::point_to_point;
}

std::string why(Communicator const& comm, TransportChoice choice, int rank) {
  if (rank == comm.rank()) return "this rank itself";
  auto const& node = *comm.node();
  auto const here = node.index_of(rank) >= 0 ? node.describe(node.index_of(rank)) : std::string();
  auto const measured = here.empty() ? here : "; " + here;
  if (choice == TransportChoice::shm) return "shm was asked for" + measured;
  if (choice == TransportChoice::p2p || forest_transport(choice) != TransportKind::self) return format("{} was asked for", name_of(choice));
  if (node.index_of(rank) >= 0) return "on this machine" + measured;
  return node.shares_memory() || node.size() == 1 ? "on another machine" : node.why_not();
}

}  // namespace asterism::comm
