#include "asterism/direct/distributed/distribution.hpp"

#include <algorithm>

#include "asterism/direct/distributed/tree_mapping.hpp"

namespace asterism::direct {
namespace {

/// The supernodes at the top, in blocks of nearly equal widths.
void divide_top(Symbolic const& symbolic, std::vector<int> const& ranks, std::int32_t width, Distribution& d) {
  auto const& all = symbolic.nodes;
  Supernodes nodes;
  nodes.starts = {0};
  nodes.row_offsets = {0};
  auto const each = [&](auto const& f) {
    for (std::int32_t s = 0; s < all.count(); ++s)
      if (ranks[std::size_t(s)] < 0) f(s);
  };
  each([&](std::int32_t s) {
    for (auto j = all.starts[std::size_t(s)]; j < all.starts[std::size_t(s) + 1]; ++j) {
      d.number[std::size_t(j)] = std::int32_t(d.top_columns.size());
      d.top_columns.push_back(j);
    }
    nodes.starts.push_back(std::int32_t(d.top_columns.size()));
    nodes.parent.push_back(-1);
    d.top_work += symbolic.work[std::size_t(s)];
  });
  each([&](std::int32_t s) {
    for (auto const r : all.rows(s)) nodes.row_indices.push_back(d.number[std::size_t(r)]);
    nodes.row_offsets.push_back(std::int64_t(nodes.row_indices.size()));
  });
  std::vector<char> joined;
  for (auto const j : d.top_columns)
    if (!symbolic.joined.empty()) joined.push_back(symbolic.joined[std::size_t(j)]);
  d.top = std::make_shared<BlockPattern const>(std::make_shared<Supernodes const>(cut_supernodes(nodes, width, joined)));
  for (std::int32_t k = 0; k < d.top->count(); ++k) d.node_of.insert(d.node_of.end(), std::size_t(d.top->nodes().width(k)), k);
}

/// This rank's subtrees, in its numbers.
void take_forest(Symbolic const& symbolic, std::vector<int> const& ranks, int rank, Distribution& d) {
  auto const& all = symbolic.nodes;
  auto& nodes = d.forest.nodes;
  nodes.starts = {0};
  nodes.row_offsets = {0};
  std::vector<std::int32_t> place(std::size_t(all.count()), -1);
  for (std::int32_t s = 0; s < all.count(); ++s) {
    if (ranks[std::size_t(s)] != rank) continue;
    place[std::size_t(s)] = nodes.count();
    nodes.parent.push_back(-1);
    nodes.starts.push_back(nodes.starts.back() + all.width(s));
    for (auto j = all.starts[std::size_t(s)]; j < all.starts[std::size_t(s) + 1]; ++j) d.own.push_back(j);
    d.forest.work.push_back(symbolic.work[std::size_t(s)]);
    d.forest.flops += symbolic.work[std::size_t(s)];
  }
  d.size = nodes.starts.back();
  d.place_of_touched.assign(std::size_t(d.top->count()), -1);
  for (std::int32_t k = 0; k < d.top->count(); ++k) {
    auto const& by = d.outside[std::size_t(k)];
    if (std::find(by.begin(), by.end(), rank) == by.end()) continue;
    d.touched.push_back(k);
    d.place_of_touched[std::size_t(k)] = d.size;
    d.size += d.top->nodes().width(k);
  }
  for (std::int32_t s = 0; s < all.count(); ++s) {
    if (ranks[std::size_t(s)] != rank) continue;
    if (auto const p = all.parent[std::size_t(s)]; p >= 0) nodes.parent[std::size_t(place[std::size_t(s)])] = place[std::size_t(p)];
    for (auto const r : all.rows(s)) {
      auto i = d.number[std::size_t(r)];
      if (d.rank_of[std::size_t(r)] < 0) {
        auto const k = d.node_of[std::size_t(i)];
        i += d.place_of_touched[std::size_t(k)] - d.top->nodes().starts[std::size_t(k)];
      }
      nodes.row_indices.push_back(i);
    }
    nodes.row_offsets.push_back(std::int64_t(nodes.row_indices.size()));
  }
}

}  // namespace

Distribution distribute(Symbolic const& symbolic, int ranks, int rank, DistributionOptions const& options) {
  auto const& all = symbolic.nodes;
  auto const n = all.starts.empty() ? 0 : all.starts.back();
  Distribution d;
  auto const of_nodes = options.subtrees ? map_tree(all, symbolic.work, ranks) : std::vector<int>(std::size_t(all.count()), -1);
  d.rank_of.assign(std::size_t(n), -1);
  d.number.assign(std::size_t(n), -1);
  std::vector<std::int32_t> columns(std::size_t(ranks), 0);
  std::vector<double> work(std::size_t(ranks), 0);
  for (std::int32_t s = 0; s < all.count(); ++s) {
    auto const r = of_nodes[std::size_t(s)];
    if (r < 0) continue;
    work[std::size_t(r)] += symbolic.work[std::size_t(s)];
    for (auto j = all.starts[std::size_t(s)]; j < all.starts[std::size_t(s) + 1]; ++j) {
      d.rank_of[std::size_t(j)] = r;
      d.number[std::size_t(j)] = columns[std::size_t(r)]++;
    }
  }
  for (double const w : work) d.most_work = std::max(d.most_work, w);
  divide_top(symbolic, of_nodes, options.block_width, d);
  d.outside.resize(std::size_t(d.top->count()));
  for (std::int32_t s = 0; s < all.count(); ++s) {
    auto const r = of_nodes[std::size_t(s)], p = all.parent[std::size_t(s)];
    if (r < 0 || (p >= 0 && of_nodes[std::size_t(p)] >= 0)) continue;
    for (auto const row : all.rows(s)) {
      auto& by = d.outside[std::size_t(d.node_of[std::size_t(d.number[std::size_t(row)])])];
      if (std::find(by.begin(), by.end(), r) == by.end()) by.push_back(r);
    }
  }
  for (auto& by : d.outside) std::sort(by.begin(), by.end());
  take_forest(symbolic, of_nodes, rank, d);
  return d;
}

}  // namespace asterism::direct
