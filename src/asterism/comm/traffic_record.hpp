// What the star forests of this process have sent and to whom, for reports to people.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {

struct TrafficSums;

/// Kept by each forest. An operation costs one comparison; messages and bytes are worked out when somebody asks.
class TrafficRecord {
 public:
  /// The sides outlive the record.
  TrafficRecord(Communicator const& comm, std::vector<Side> const& roots, std::vector<Side> const& leaves);
  /// What it counted goes to the sums of its name.
  ~TrafficRecord();
  TrafficRecord(TrafficRecord const&) = delete;

  /// An operation with `unit` bytes an edge has sent from roots to leaves (down), or up.
  void count(std::int64_t unit, bool down) {
    for (auto& u : uses_)
      if (u.unit == unit && u.down == down) {
        ++u.count;
        return;
      }
    uses_.push_back({unit, down, 1});
  }
  std::string name = "unnamed";
  int under_way = 0;  ///< operations begun and not ended

 private:
  friend struct TrafficSums;
  friend std::vector<TrafficSums> traffic(Communicator const& comm);
  friend void reset_traffic();
  struct Use {
    std::int64_t unit;
    bool down;
    std::int64_t count;
  };
  Communicator comm_;
  std::vector<Side> const &roots_, &leaves_;
  std::vector<Use> uses_;
};

/// Of all forests of one name, living or not.
struct TrafficSums {
  struct Peer {
    int rank;
    Way way;
    std::int64_t messages = 0, bytes = 0;
    std::array<std::int64_t, 48> sizes{};  ///< messages of 2^i to 2^(i+1) - 1 bytes; empty ones are in the first
    std::string pattern;                   ///< of my positions, of the forest that lived last
  };
  std::string name;
  std::int64_t forests = 0, living = 0, operations = 0, under_way = 0;
  std::vector<Peer> sent;

  void add(TrafficRecord const& record);
};

/// What this rank sent on a communicator since the last reset. Not collective.
std::vector<TrafficSums> traffic(Communicator const& comm);
void reset_traffic();
/// Names of forests with operations that were begun and not ended, each as often as it has such.
std::vector<std::string> operations_under_way();

}  // namespace asterism::comm
