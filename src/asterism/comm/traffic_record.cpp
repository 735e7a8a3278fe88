#include "asterism/comm/traffic_record.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <set>

namespace asterism::comm {
namespace {

struct Records {
  std::mutex mutex;
  std::set<TrafficRecord*> living;
  std::map<std::pair<std::uint64_t, std::string>, TrafficSums> ended;  // by communicator and name
};

Records& records() {
  static auto* const r = new Records;  // forests in static storage may end after it would
  return *r;
}

}  // namespace

TrafficRecord::TrafficRecord(Communicator const& comm, std::vector<Side> const& roots, std::vector<Side> const& leaves)
    : comm_(comm), roots_(roots), leaves_(leaves) {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  r.living.insert(this);
}

TrafficRecord::~TrafficRecord() {
  auto& r = records();
  std::lock_guard const lock(r.mutex);
  r.living.erase(this);
  if (uses_.empty()) return;
  auto& sums = r.ended[{comm_.handle(), name}];
  sums.name = name;
  sums.add(*this);
}

void TrafficSums::add(TrafficRecord const& record) {
  ++forests;
  under_way += record.under_way;
  for (auto const& u : record.uses_) {
    operations += u.count;
    for (auto const& s : u.down ? record.roots_ : record.leaves_) {
      if (s.way == Way::self) continue;
      auto at = std::find_if(sent.begin(), sent.end(), [&](Peer const& p) { return p.rank == s.rank && p.way == s.way; });
      if (at == sent.end()) at = sent.insert(sent.end(), {s.rank, s.way, 0, 0, {}, {}});
      auto const bytes = s.at.count() * u.unit;
      at->messages += u.count;
      at->bytes += bytes * u.count;
      at->sizes[std::min<std::size_t>(at->sizes.size(), std::size_t(std::bit_width(std::uint64_t(std::max<std::int64_t>(bytes, 1))))) -
                1] += u.count;
      at->pattern = s.at.describe();
    }
  }
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
    sums.add(*record);
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
  for (auto* record : r.living) record->uses_.clear();
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
