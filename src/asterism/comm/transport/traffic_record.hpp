// What the star forests and channels of this process have sent and to whom, for reports to people.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {

struct TrafficSums;

/// Listed from its construction; the end of what it counts for is told by retire().
class TrafficSource {
 public:
  explicit TrafficSource(Communicator const& comm);
  virtual ~TrafficSource();
  TrafficSource(TrafficSource const&) = delete;
  virtual void add_to(TrafficSums& sums) const = 0;
  virtual void reset() = 0;
  std::string name = "unnamed";
  int under_way = 0;  ///< operations begun and not ended

 protected:
  /// What was counted goes to the sums of its name. To be called by the destructors of those that count.
  void retire();

 private:
  friend std::vector<TrafficSums> traffic(Communicator const& comm);
  Communicator comm_;
};

/// Kept by each forest. An operation costs one comparison; messages and bytes are worked out when somebody asks.
class TrafficRecord final : public TrafficSource {
 public:
  /// The sides outlive the record.
  TrafficRecord(Communicator const& comm, std::vector<Side> const& roots, std::vector<Side> const& leaves);
  ~TrafficRecord() override { retire(); }
  void add_to(TrafficSums& sums) const override;
  void reset() override { uses_.clear(); }

  /// An operation with `unit` bytes an edge has sent from roots to leaves (down), or up.
  void count(std::int64_t unit, bool down) {
    for (auto& u : uses_)
      if (u.unit == unit && u.down == down) {
        ++u.count;
        return;
      }
    uses_.push_back({unit, down, 1});
  }

 private:
  struct Use {
    std::int64_t unit;
    bool down;
    std::int64_t count;
  };
  std::vector<Side> const &roots_, &leaves_;
  std::vector<Use> uses_;
};

/// Of all forests, or channels, of one name, living or not.
struct TrafficSums {
  struct Peer {
    int rank;
    TransportKind transport;
    std::int64_t messages = 0, bytes = 0;
    std::array<std::int64_t, 48> sizes{};  ///< messages of 2^i to 2^(i+1) - 1 bytes; empty ones are in the first
    std::string pattern;                   ///< of my positions, of the forest that lived last; of channels nothing

    void add(std::int64_t count, std::int64_t bytes_each);
  };
  std::string name;
  std::string_view kind = "forest";  ///< or "channels"
  std::int64_t members = 0, living = 0, operations = 0, under_way = 0;
  std::vector<Peer> sent;

  Peer& to(int rank, TransportKind kind);
};

/// Kept by channels, where each message has a length of its own.
class MessageRecord final : public TrafficSource {
 public:
  explicit MessageRecord(Communicator const& comm) : TrafficSource(comm) { name = "channels"; }
  ~MessageRecord() override { retire(); }
  void add_to(TrafficSums& sums) const override;
  void reset() override;
  /// In the order in which count() knows them.
  void add_target(int rank, TransportKind kind) { sent_.push_back({rank, kind, 0, 0, {}, {}}); }
  void count(std::size_t target, std::int64_t bytes) { sent_[target].add(1, bytes); }

 private:
  std::vector<TrafficSums::Peer> sent_;
};

/// What this rank sent on a communicator since the last reset. Not collective.
std::vector<TrafficSums> traffic(Communicator const& comm);
void reset_traffic();
/// Names of forests with operations that were begun and not ended, each as often as it has such.
std::vector<std::string> operations_under_way();

}  // namespace asterism::comm
