// Which transport carries a star forest's messages.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

/// Transports that make something of a forest's pattern, which all its operations use: the name (NAME_transport() in its own file makes
/// it, see transport.hpp), and how it is told to people. Each is a choice of the user's and a kind of its own.
#define ASTERISM_FOREST_TRANSPORTS(X)                                                                \
  X(neighbor, "a neighbourhood collective")                                                          \
  X(collective, "a collective")                                                                      \
  X(window_fence, "a window") /* one-sided; windows wait for other ranks when an operation begins */ \
  X(window_lock, "a window")                                                                         \
  X(window_pscw, "a window")

#define NAME(name, text) name,
/// What a user can ask for.
enum class TransportChoice : std::uint8_t {
  automatic,  ///< shared memory between ranks of one machine where it works, MPI else
  p2p,
  shm,  ///< an error where it does not work
  ASTERISM_FOREST_TRANSPORTS(NAME)
  // of data on GPUs' queues, between GPUs; of others as automatic
  nccl,
  ipc,
  nvshmem,
};
/// How one neighbour is reached.
enum class TransportKind : std::uint8_t { self, point_to_point, shared_memory, ASTERISM_FOREST_TRANSPORTS(NAME) };
#undef NAME
#define ONE(name, text) +1
inline constexpr int forest_transports = 0 ASTERISM_FOREST_TRANSPORTS(ONE), transport_choices = 6 + forest_transports,
                     transport_kinds = 3 + forest_transports;
#undef ONE
/// The kind of a choice that is one of a forest's transports; else self.
TransportKind forest_transport(TransportChoice choice);
std::string_view name_of(TransportChoice choice);
std::vector<std::string> transport_names();
/// auto, p2p, shm and so on; an OptionError lists them otherwise.
TransportChoice transport_from_name(std::string_view name);

/// Of forests that are made without a choice; auto at first. The option -sf_transport sets it.
TransportChoice default_transport();
void set_default_transport(TransportChoice choice);

std::string_view name_of(TransportKind kind);
/// Throws a CommError that says why if shared memory was asked for and does not reach there.
TransportKind reach(Communicator const& comm, TransportChoice choice, int rank);
/// Why it is that transport, in words.
std::string why(Communicator const& comm, TransportChoice choice, int rank);

}  // namespace asterism::comm
