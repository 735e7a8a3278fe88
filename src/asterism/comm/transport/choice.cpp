#include "asterism/comm/transport/choice.hpp"

#include <atomic>

#include "asterism/base/error.hpp"

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

}  // namespace asterism::comm
