// Carries the messages of star-forest operations. One object serves one operation at a time and is used again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/layout/index_set.hpp"
#include "asterism/comm/transport/choice.hpp"

namespace asterism::comm {

/// Where one neighbour's data goes to or comes from.
struct Side {
  int rank = 0;
  IndexSet at;
  TransportKind transport = TransportKind::point_to_point;
  int node_index = -1;  ///< for shared memory: its number in the communicator's node
};

/// The messages of one operation. Its sides are lists of the forest, by ascending rank; a later operation of the same transport may go the
/// other way. Outlives the operation.
struct Traffic {
  Communicator const* comm = nullptr;
  std::vector<Side> const *out = nullptr, *in = nullptr;
  std::byte* target = nullptr;
  std::int64_t unit = 0;  ///< bytes of the items of one edge
  bool in_place = false;  ///< a contiguous side may be received where it belongs
  bool combines = false;  ///< values are combined with those that are there; the same on all ranks
  bool at_once = false;   ///< the operation ends in the call that begins it
  int tag = 0;            ///< for MPI; another one in each operation
  bool down = true;       ///< from roots to leaves
  /// For broadcasts: where the values of `in` lie with their senders, so that they can be read there.
  std::vector<Side> const* roots = nullptr;
};

/// Takes what has arrived from one side: its items first ... first + count - 1.
class Receiver {
 public:
  virtual void take(Side const& side, std::int64_t first, std::int64_t count, std::byte const* data) = 0;

 protected:
  ~Receiver() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Called on all ranks in the same order of operations. The sides of other transports are not its.
  virtual void open(Traffic const& traffic, TransportKind kind) = 0;
  /// Never waits for another rank, except for a window's; `source` may be changed after close().
  virtual void send(std::byte const* source) = 0;
  /// Waits for the data of one side and hands them on, in pieces and in order; nothing is handed on if they lie in place already.
  /// Called once for each side of `in` that is this transport's, in their order.
  virtual void receive(Side const& side, Receiver& receiver) = 0;
  /// Ends the operation. An object that is destroyed after open() without this call had one that an error ended.
  virtual void close() = 0;
};

std::unique_ptr<Transport> point_to_point();
std::unique_ptr<Transport> shared_memory();

/// What the transports of one forest share, where that is more than its communicator.
class SharedTransport {
 public:
  virtual ~SharedTransport() = default;
  virtual std::unique_ptr<Transport> transport() = 0;
  /// What it made of the pattern, for people.
  virtual std::string_view describe() const { return {}; }
};
/// The sides of a forest, which outlive the shared transport.
struct Pattern {
  Communicator comm;
  std::vector<Side> const *roots, *leaves;
};
// Of the table ASTERISM_FOREST_TRANSPORTS (choice.hpp). Collective.
#define DECLARE(name, text) std::shared_ptr<SharedTransport> name##_transport(Pattern const& pattern);
ASTERISM_FOREST_TRANSPORTS(DECLARE)
#undef DECLARE

}  // namespace asterism::comm
