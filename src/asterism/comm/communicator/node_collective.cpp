#include "asterism/comm/communicator/node_collective.hpp"

#include "asterism/base/limits.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/node/node.hpp"

namespace asterism::comm {

bool NodeCollective::serves(Communicator const& comm) {
  return comm.size() <= limits().gather_ranks && comm.node()->size() == comm.size() && comm.node()->shares_memory();
}

NodeCollective::NodeCollective(Communicator const& comm, int only) : comm_(comm) {
  auto& node = *comm.node();
  for (int r = 0; r < comm.size(); ++r)
    if (r != comm.rank() && (only < 0 || r == only)) expected_.push_back({r, node.from(node.index_of(r)).expect()});
}

void NodeCollective::send(int rank, std::span<std::byte const> head, std::span<std::byte const> data) {
  auto& node = *comm_.node();
  auto& box = node.to(node.index_of(rank));
  auto const before = std::int64_t(head.size()), bytes = before + std::int64_t(data.size());
  auto const sent = box.reserve();
  auto* const room = box.room(sent, bytes);
  box.write(room, head.data(), before);
  box.write(room + before, data.data(), bytes - before);
  box.publish(sent, bytes);
}

void NodeCollective::send_to_all(std::span<std::byte const> data) {
  for (int r = 0; r < comm_.size(); ++r)
    if (r != comm_.rank()) send(r, data);
}

std::span<std::byte const> NodeCollective::arrived(Expected const& e) {
  auto& node = *comm_.node();
  auto& box = node.from(node.index_of(e.rank));
  Wait wait(comm_, Wait::For::memory);
  node::Message* m;
  while (!(m = box.find(e.number))) wait();
  return {box.data(*m), m->bytes};
}

void NodeCollective::take(Expected const& e) {
  auto& node = *comm_.node();
  node.from(node.index_of(e.rank)).take(e.number);
}

}  // namespace asterism::comm
