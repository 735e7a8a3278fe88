#include "asterism/comm/transport/choice.hpp"

#include <array>
#include <atomic>
#include <string>

#include "asterism/comm/node/node.hpp"

namespace asterism::comm {
namespace {
std::atomic<TransportChoice> chosen_default{TransportChoice::automatic};

constexpr std::array<std::string_view, transport_choices> names = {
    "auto", "p2p", "shm", "neighbor", "collective", "window_fence", "window_lock", "window_pscw", "nccl", "ipc", "nvshmem"};
}  // namespace

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
  constexpr std::string_view names[] = {"self", "MPI", "shared memory", "a neighbourhood collective", "a collective", "a window"};
  return names[std::size_t(kind)];
}

TransportKind reach(Communicator const& comm, TransportChoice choice, int rank) {
  if (rank == comm.rank()) return TransportKind::self;
  if (choice == TransportChoice::p2p) return TransportKind::point_to_point;
  if (choice == TransportChoice::neighbor) return TransportKind::neighbourhood;
  if (choice == TransportChoice::collective) return TransportKind::collective;
  if (by_window(choice)) return TransportKind::window;
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
  if (choice > TransportChoice::automatic && choice < TransportChoice::nccl) return format("{} was asked for", name_of(choice));
  if (node.index_of(rank) >= 0) return "on this machine" + measured;
  return node.shares_memory() || node.size() == 1 ? "on another machine" : node.why_not();
}

}  // namespace asterism::comm
