#include "asterism/direct/symbolic/symbolic.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

std::size_t at(std::int32_t i) { return std::size_t(i); }

/// parent[k] of the k-th column, -1: a root. Paths are compressed.
Ints elimination_tree(la::Graph const& graph, std::span<std::int32_t const> order, Ints const& place) {
  Ints parent(order.size(), -1), ancestor(order.size(), -1);
  for (std::int32_t k = 0; k < std::int32_t(order.size()); ++k)
    for (auto const neighbour : graph.of(order[at(k)]))
      for (auto i = place[at(neighbour)]; i >= 0 && i < k;) {
        auto const next = std::exchange(ancestor[at(i)], k);
        if (next < 0) parent[at(i)] = k;
        i = next;
      }
  return parent;
}

/// Children one after the other, each with its subtree before it, in the order of `children` of each node.
Ints postorder(Ints const& parent) {
  auto const n = std::int32_t(parent.size());
  Ints first(at(n), -1), next(at(n), -1), out, stack;
  out.reserve(at(n));
  for (auto k = n - 1; k >= 0; --k)
    if (auto const p = parent[at(k)]; p >= 0) next[at(k)] = std::exchange(first[at(p)], k);
  for (std::int32_t root = 0; root < n; ++root) {
    if (parent[at(root)] >= 0) continue;
    stack.push_back(root);
    while (!stack.empty()) {
      auto const k = stack.back();
      if (auto const child = first[at(k)]; child >= 0) {
        first[at(k)] = next[at(child)];
        stack.push_back(child);
      } else {
        out.push_back(k);
        stack.pop_back();
      }
    }
  }
  return out;
}

/// A postordered elimination tree, and how many entries each column of the factor has, its diagonal included.
struct Columns {
  Ints order, place, parent, count;
};

/// Gilbert, Ng and Peyton (1994), fig. 3.
Ints column_counts(la::Graph const& graph, Columns const& c) {
  auto const n = std::int32_t(c.order.size());
  Ints first(at(n)), largest_first(at(n), -1), last_leaf(at(n), -1), ancestor(at(n)), count(at(n), 0);
  std::iota(first.begin(), first.end(), 0);
  std::iota(ancestor.begin(), ancestor.end(), 0);
  for (std::int32_t k = 0; k < n; ++k) {
    count[at(k)] += first[at(k)] == k;  // a leaf
    if (auto const p = c.parent[at(k)]; p >= 0) first[at(p)] = std::min(first[at(p)], first[at(k)]);
  }
  auto const find = [&](std::int32_t i) {
    auto root = i;
    while (ancestor[at(root)] != root) root = ancestor[at(root)];
    while (i != root) i = std::exchange(ancestor[at(i)], root);
    return root;
  };
  for (std::int32_t k = 0; k < n; ++k) {
    auto const p = c.parent[at(k)];
    if (p >= 0) --count[at(p)];
    for (auto const neighbour : graph.of(c.order[at(k)])) {
      auto const i = c.place[at(neighbour)];
      if (i <= k || first[at(k)] <= largest_first[at(i)]) continue;
      largest_first[at(i)] = first[at(k)];
      ++count[at(k)];
      if (auto const leaf = std::exchange(last_leaf[at(i)], k); leaf >= 0) --count[at(find(leaf))];
    }
    if (p >= 0) ancestor[at(k)] = p;
  }
  for (std::int32_t k = 0; k < n; ++k)
    if (auto const p = c.parent[at(k)]; p >= 0) count[at(p)] += count[at(k)];
  return count;
}

Columns columns_of(la::Graph const& graph, std::span<std::int32_t const> given) {
  Columns out;
  out.order.assign(given.begin(), given.end());
  out.place.resize(given.size());
  auto const number = [&] {
    for (std::size_t k = 0; k < out.order.size(); ++k) out.place[at(out.order[k])] = std::int32_t(k);
  };
  number();
  auto const parent = elimination_tree(graph, out.order, out.place);
  auto const post = postorder(parent);
  Ints new_number(post.size());
  for (std::size_t k = 0; k < post.size(); ++k) new_number[at(post[k])] = std::int32_t(k);
  out.parent.resize(post.size());
  Ints order(post.size());
  for (std::size_t k = 0; k < post.size(); ++k) {
    auto const p = parent[at(post[k])];
    out.parent[k] = p < 0 ? -1 : new_number[at(p)];
    order[k] = out.order[at(post[k])];
  }
  out.order = std::move(order);
  number();
  out.count = column_counts(graph, out);
  return out;
}

/// Supernodes as they are merged: columns of a node are those of its children that were merged, then its own.
struct Merging {
  Ints parent, width, below, first, own;  // own columns: [first, first + own)
  std::vector<std::int64_t> zeros;        // that merging brought into the panel
  std::vector<Ints> merged;               // children, in order
};

/// Whether a child of few columns, or one that brings few zeros, becomes a part of its parent. Large fronts have fast products; small ones
/// cost what they have of overhead. (Ashcraft and Grimes 1989: relaxed supernodes.) symmetry: the share of the entries of A + A^T that A
/// has; where it is less than one, the factors of LU have more zeros than those that are counted.
bool worth_merging(std::int32_t width, std::int64_t zeros, std::int64_t size, double symmetry) {
  double const share = size > 0 ? double(zeros) / double(size) : 0, all = 1 - symmetry * (1 - share);
  return (width <= 4 && all < 0.8) || (width <= 16 && all < 0.6) || (width <= 48 && share < 0.1) || share < 0.05;
}

Merging supernodes_of(Columns const& c, double symmetry) {
  auto const n = std::int32_t(c.order.size());
  Ints children(at(n), 0), node_of(at(n));
  for (auto const p : c.parent)
    if (p >= 0) ++children[at(p)];
  Merging m;
  for (std::int32_t k = 0; k < n; ++k) {
    bool const joins = k > 0 && c.parent[at(k - 1)] == k && c.count[at(k - 1)] == c.count[at(k)] + 1 && children[at(k)] == 1;
    if (!joins) m.first.push_back(k), m.own.push_back(0);
    node_of[at(k)] = std::int32_t(m.first.size()) - 1;
    ++m.own.back();
  }
  auto const count = std::int32_t(m.first.size());
  m.width = m.own;
  m.zeros.assign(at(count), 0);
  m.merged.resize(at(count));
  for (std::int32_t s = 0; s < count; ++s) {
    auto const last = m.first[at(s)] + m.own[at(s)] - 1;
    m.below.push_back(c.count[at(last)] - 1);
    m.parent.push_back(c.parent[at(last)] < 0 ? -1 : node_of[at(c.parent[at(last)])]);
  }
  // children with most rows first: they bring the fewest zeros
  std::vector<Ints> of(at(count));
  for (std::int32_t s = 0; s < count; ++s)
    if (m.parent[at(s)] >= 0) of[at(m.parent[at(s)])].push_back(s);
  auto const panel = [](std::int64_t w, std::int64_t b) { return w * (w + 1) / 2 + w * b; };
  for (std::int32_t s = 0; s < count; ++s) {
    auto todo = std::move(of[at(s)]);
    std::stable_sort(todo.begin(), todo.end(), [&](auto a, auto b) { return m.below[at(a)] > m.below[at(b)]; });
    for (auto const child : todo) {
      auto const width = m.width[at(s)] + m.width[at(child)];
      auto const size = panel(width, m.below[at(s)]);
      auto const zeros = m.zeros[at(s)] + m.zeros[at(child)] + size - panel(m.width[at(s)], m.below[at(s)]) -
                         panel(m.width[at(child)], m.below[at(child)]);
      if (!worth_merging(width, zeros, size, symmetry)) continue;
      m.width[at(s)] = width;
      m.zeros[at(s)] = zeros;
      m.merged[at(s)].push_back(child);
      m.parent[at(child)] = -2;  // no node any more
    }
  }
  return m;
}

/// Rows below each supernode: those of its columns in the matrix and those of its children, beyond its own.
void find_rows(la::Graph const& graph, Symbolic& out) {
  auto& nodes = out.nodes;
  auto const n = std::int32_t(out.order.size());
  auto const count = nodes.count();
  Ints place(at(n)), mark(at(n), -1), first_child(at(count), -1), sibling(at(count), -1);
  for (std::int32_t k = 0; k < n; ++k) place[at(out.order[at(k)])] = k;
  nodes.row_offsets = {0};
  for (std::int32_t s = 0; s < count; ++s) {
    auto const end = nodes.starts[at(s) + 1];
    auto const begin = nodes.row_indices.size();
    auto const add = [&](std::int32_t i) {
      if (i >= end && std::exchange(mark[at(i)], s) != s) nodes.row_indices.push_back(i);
    };
    for (auto k = nodes.starts[at(s)]; k < end; ++k)
      for (auto const j : graph.of(out.order[at(k)])) add(place[at(j)]);
    for (auto child = first_child[at(s)]; child >= 0; child = sibling[at(child)]) {
      auto const from = std::size_t(nodes.row_offsets[at(child)]), to = std::size_t(nodes.row_offsets[at(child) + 1]);
      for (auto p = from; p < to; ++p) add(nodes.row_indices[p]);
    }
    std::sort(nodes.row_indices.begin() + std::ptrdiff_t(begin), nodes.row_indices.end());
    nodes.row_offsets.push_back(std::int64_t(nodes.row_indices.size()));
    if (auto const p = nodes.parent[at(s)]; p >= 0) sibling[at(s)] = std::exchange(first_child[at(p)], s);
  }
}

void count_costs(Symbolic& out) {
  auto const& nodes = out.nodes;
  std::int64_t held = 0;
  std::vector<std::int64_t> updates(at(nodes.count()), 0);  // of the children of each
  for (std::int32_t s = 0; s < nodes.count(); ++s) {
    double const w = nodes.width(s), b = nodes.below(s);
    auto const width = std::int64_t(nodes.width(s)), below = std::int64_t(nodes.below(s));
    out.entries += width * (width + 1) / 2 + width * below;
    out.work.push_back(w * w * w / 3 + w * w * b + w * b * b);
    out.flops += out.work.back();
    auto const update = below * (below + 1) / 2;
    held += update;
    out.peak = std::max(out.peak, out.entries + held);
    held -= updates[at(s)];
    if (auto const p = nodes.parent[at(s)]; p >= 0) updates[at(p)] += update;
    else held -= update;
  }
}

}  // namespace

double flops_of_order(la::Graph const& graph, std::span<std::int32_t const> order) {
  double sum = 0;
  for (auto const c : columns_of(graph, order).count) sum += double(c) * c;
  return sum;
}

Symbolic analyse(la::Graph const& graph, std::span<std::int32_t const> order, double symmetry) {
  auto const c = columns_of(graph, order);
  auto const m = supernodes_of(c, symmetry);
  Symbolic out;
  auto const given = std::int32_t(m.first.size());
  // columns of the nodes that are left: a node's merged children first
  Ints kept, number(at(given), -1), stack;
  for (std::int32_t s = 0; s < given; ++s)
    if (m.parent[at(s)] != -2) number[at(s)] = std::int32_t(kept.size()), kept.push_back(s);
  Ints into = number;  // the node that a merged one is a part of
  for (auto s = given - 1; s >= 0; --s)
    for (auto const child : m.merged[at(s)]) into[at(child)] = into[at(s)];
  Ints parent;
  for (auto const s : kept) parent.push_back(m.parent[at(s)] < 0 ? -1 : into[at(m.parent[at(s)])]);
  auto const post = postorder(parent);
  Ints place(post.size());
  for (std::size_t k = 0; k < post.size(); ++k) place[at(post[k])] = std::int32_t(k);
  out.nodes.starts = {0};
  for (auto const k : post) {
    std::vector<std::pair<std::int32_t, bool>> todo{{kept[at(k)], false}};
    while (!todo.empty()) {
      auto const [s, children_done] = todo.back();
      todo.pop_back();
      if (!children_done) {
        todo.emplace_back(s, true);
        for (auto const child : m.merged[at(s)]) todo.emplace_back(child, false);
        continue;
      }
      for (std::int32_t j = 0; j < m.own[at(s)]; ++j) out.order.push_back(c.order[at(m.first[at(s)] + j)]);
    }
    out.nodes.starts.push_back(std::int32_t(out.order.size()));
    out.nodes.parent.push_back(parent[at(k)] < 0 ? -1 : place[at(parent[at(k)])]);
  }
  find_rows(graph, out);
  count_costs(out);
  return out;
}

}  // namespace asterism::direct
