// The ranks of one communicator that run on this machine, and the mailboxes between them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "asterism/comm/mpi/mpi_api.hpp"
#include "asterism/comm/node/mailbox.hpp"
#include "asterism/device/host/team.hpp"

namespace asterism::comm::node {

class Node {
 public:
  /// Collective over the communicator.
  static std::shared_ptr<Node> join(MpiApi const& api, MpiApi::Comm comm, int rank);
  int size() const { return int(ranks_.size()); }
  /// Whether its ranks can open each other's memory; else why_not().
  bool shares_memory() const { return why_not_.empty(); }
  std::string const& why_not() const { return why_not_; }
  /// Whether they can also copy from each other's memory that is not shared.
  bool reads_private() const { return reads_private_; }
  /// Of all processes of this machine, also where a test groups them.
  device::host::NodeShare const& share() const { return share_; }
  int rank_of(int index) const { return ranks_[std::size_t(index)]; }
  /// Number of a rank among those here, -1 for one of another machine.
  int index_of(int rank) const;

  // made at first use, between two ranks only
  Outbox& to(int index);
  Inbox& from(int index);
  std::shared_ptr<Mapping const> const& mapping(int index);
  /// What was measured of the way to that rank, for people; empty before.
  std::string describe(int index) const {
    auto const& box = peers_[std::size_t(index)].out;
    return box ? box->writer().describe() : std::string();
  }

  std::size_t under_way = 0;  ///< operations that have begun and not ended

 private:
  Node() = default;
  struct Peer {
    ArenaName arena;
    std::uint64_t heads = 0;  ///< offset of its table: for each rank here the first message to it
    std::shared_ptr<Mapping const> mapping;
    std::unique_ptr<Outbox> out;
    std::unique_ptr<Inbox> in;
  };
  MpiApi const* api_ = nullptr;
  MpiApi::Comm comm_ = 0;
  std::string why_not_;
  bool reads_private_ = false;
  device::host::NodeShare share_;
  int me_ = 0;
  std::vector<int> ranks_;  // ascending
  std::vector<Peer> peers_;
  std::uint64_t heads_ = 0;
};

}  // namespace asterism::comm::node
