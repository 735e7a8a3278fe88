#include "asterism/comm/transport/traffic_record.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <set>

namespace asterism::comm {
namespace {

struct Records {
  std::mutex mutex;
  std::set<TrafficSource*> living;
  std::map<std::pair<std::uint64_t, std::string>, TrafficSums> ended;  // by communicator and name
};

Records& records() {
  static auto* const r = new Records;  // forests in static storage may end after it would
  return *r;
}

}  // namespace

TrafficSource::TrafficSource(Communicator const& comm) : comm_(comm) {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  r.living.insert(this);
}

TrafficSource::~TrafficSource() {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  r.living.erase(this);
}

void TrafficSource::retire() {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  r.living.erase(this);
  TrafficSums mine;
  add_to(mine);
  if (mine.operations == 0) return;
  auto& sums = r.ended[{comm_.handle(), name}];
  sums.name = name;
  add_to(sums);
}

void TrafficSums::Peer::add(std::int64_t count, std::int64_t bytes_each) {
  messages += count;
  bytes += bytes_each * count;
  auto const width = std::size_t(std::bit_width(std::uint64_t(std::max<std::int64_t>(bytes_each, 1))));
  sizes[std::min(sizes.size(), width) - 1] += count;
}

TrafficSums::Peer& TrafficSums::to(int rank, TransportKind kind) {
  auto const at = std::find_if(sent.begin(), sent.end(), [&](Peer const& p) { return p.rank == rank && p.transport == kind; });
  return at != sent.end() ? *at : *sent.insert(sent.end(), {rank, kind, 0, 0, {}, {}});
}

TrafficRecord::TrafficRecord(Communicator const& comm, std::vector<Side> const& roots, std::vector<Side> const& leaves)
    : TrafficSource(comm), roots_(roots), leaves_(leaves) {}

void TrafficRecord::add_to(TrafficSums& sums) const {
  ++sums.members;
  sums.under_way += under_way;
  for (auto const& u : uses_) {
    sums.operations += u.count;
    for (auto const& s : u.down ? roots_ : leaves_) {
      if (s.transport == TransportKind::self) continue;
      auto& peer = sums.to(s.rank, s.transport);
      peer.add(u.count, s.at.count() * u.unit);
      peer.pattern = s.at.describe();
    }
  }
}

void MessageRecord::add_to(TrafficSums& sums) const {
  ++sums.members;
  sums.kind = "channels";
  for (auto const& s : sent_) {
    if (s.messages == 0) continue;
    sums.operations += s.messages;
    auto& peer = sums.to(s.rank, s.transport);
    peer.messages += s.messages;
    peer.bytes += s.bytes;
    for (std::size_t i = 0; i < s.sizes.size(); ++i) peer.sizes[i] += s.sizes[i];
  }
}

void MessageRecord::reset() {
  for (auto& s : sent_) s = {s.rank, s.transport, 0, 0, {}, {}};
}

std::vector<TrafficSums> traffic(Communicator const& comm) {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  std::map<std::string, TrafficSums> all;
  for (auto const& [key, sums] : r.ended)
    if (key.first == comm.handle()) all[key.second] = sums;
  for (auto const* record : r.living) {
    if (!(record->comm_ == comm)) continue;
    auto& sums = all[record->name];
    sums.name = record->name;
    ++sums.living;
    record->add_to(sums);
  }
  std::vector<TrafficSums> out;
  for (auto& [name, sums] : all) {
    std::sort(sums.sent.begin(), sums.sent.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    out.push_back(std::move(sums));
  }
  return out;
}

void reset_traffic() {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  r.ended.clear();
  for (auto* record : r.living) record->reset();
}

std::vector<std::string> operations_under_way() {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  std::vector<std::string> out;
  for (auto const* record : r.living) out.insert(out.end(), std::size_t(record->under_way), record->name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace asterism::comm
