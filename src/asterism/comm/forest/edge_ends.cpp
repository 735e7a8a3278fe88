#include "asterism/comm/forest/edge_ends.hpp"

#include <algorithm>

#include "asterism/comm/communicator/exchange.hpp"

namespace asterism::comm {
namespace {

using device::Array;

EdgeEnds ends_of(std::vector<StarForest::EdgesWith> const& with, int me) {
  EdgeEnds out;
  std::vector<std::int32_t> at;
  for (auto const& w : with) {
    auto const begin = std::int64_t(at.size());
    for (auto const p : w.at) at.push_back(checked_local_index(p, "values of one rank"));
    if (w.rank == me) out.own_first = begin, out.own_end = std::int64_t(at.size());
    else out.parts.push_back({w.rank, std::size_t(begin), w.at.size()});
  }
  out.count = checked_local_index(std::int64_t(at.size()), "edges of one rank");
  bool follow = true;
  for (std::size_t e = 1; e < at.size(); ++e) follow = follow && at[e] == at[e - 1] + 1;
  if (follow && !at.empty()) out.first = at[0];

  std::vector<std::int32_t> order(at.size()), place, offsets;
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = std::int32_t(e);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at[std::size_t(a)] < at[std::size_t(b)]; });
  for (std::size_t e = 0; e < order.size(); ++e)
    if (auto const p = at[std::size_t(order[e])]; place.empty() || place.back() != p)
      place.push_back(p), offsets.push_back(std::int32_t(e));
  offsets.push_back(std::int32_t(order.size()));
  out.places = std::int64_t(place.size());
  auto const array = [](std::vector<std::int32_t> const& v) { return Array::of(std::span<std::int32_t const>(v)); };
  out.at = array(at), out.place = array(place), out.offsets = array(offsets), out.sources = array(order);
  return out;
}

}  // namespace

EdgeEnds EdgeEnds::at_roots(StarForest const& forest) { return ends_of(forest.edges_at_roots(), forest.comm().rank()); }
EdgeEnds EdgeEnds::at_leaves(StarForest const& forest) { return ends_of(forest.edges_at_leaves(), forest.comm().rank()); }

StarForest forest_of_edges(StarForest const& forest, EdgeEnds const& at_roots, EdgeEnds const& at_leaves, TransportChoice transport) {
  // where each rank's edges begin with their owner
  std::vector<Parcel> begins;
  for (auto const& p : at_roots.parts) {
    Parcel parcel{p.rank, {}};
    auto const begin = std::int64_t(p.first);
    append<std::int64_t>(parcel.data, std::span(&begin, 1));
    begins.push_back(std::move(parcel));
  }
  begins = exchange(forest.comm(), std::move(begins));
  std::vector<std::int64_t> leaf;
  std::vector<RemoteRoot> root;
  for (std::size_t i = 0; i < begins.size(); ++i) {  // both by rank
    auto const& p = at_leaves.parts[i];
    auto const begin = items_of<std::int64_t>(begins[i].data).at(0);
    for (std::size_t e = 0; e < p.bytes; ++e) leaf.push_back(std::int64_t(p.first + e)), root.push_back({p.rank, begin + std::int64_t(e)});
  }
  StarForest out(forest.comm(), at_roots.count, leaf, root, at_leaves.count, transport);
  out.set_name(forest.name() + ", its edges packed");
  for (auto const& n : out.neighbours()) ASTERISM_ASSERT(n.index_bytes == 0);
  return out;
}

}  // namespace asterism::comm
