// Which transport carries a star forest's messages.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"

namespace asterism::comm {

/// What a user can ask for. In this order: automatic; what asks for one way on the host; what asks for one between GPUs.
enum class TransportChoice : std::uint8_t {
  automatic,  ///< shared memory between ranks of one machine where it works, MPI else
  p2p,
  shm,       ///< an error where it does not work
  neighbor,  ///< MPI's neighbourhood collectives
  collective,
  window_fence,  ///< one-sided; these wait for other ranks when an operation begins
  window_lock,
  window_pscw,
  // of data on GPUs' queues, between GPUs; of others as automatic
  nccl,
  ipc,
  nvshmem,
};
inline constexpr int transport_choices = 11;
inline bool by_window(TransportChoice c) { return c >= TransportChoice::window_fence && c <= TransportChoice::window_pscw; }
std::string_view name_of(TransportChoice choice);
std::vector<std::string> transport_names();
/// auto, p2p, shm and so on; an OptionError lists them otherwise.
TransportChoice transport_from_name(std::string_view name);

/// Of forests that are made without a choice; auto at first. The option -sf_transport sets it.
TransportChoice default_transport();
void set_default_transport(TransportChoice choice);

/// How one neighbour is reached.
enum class TransportKind : std::uint8_t { self, point_to_point, shared_memory, neighbourhood, collective, window };
inline constexpr int transport_kinds = 6;
std::string_view name_of(TransportKind kind);
/// Throws a CommError that says why if shared memory was asked for and does not reach there.
TransportKind reach(Communicator const& comm, TransportChoice choice, int rank);
/// Why it is that transport, in words.
std::string why(Communicator const& comm, TransportChoice choice, int rank);

}  // namespace asterism::comm
