#include "asterism/precond/amg/coarsening/grid_boxes.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "asterism/device/parallel.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr i64 side = 3;               // nodes of a box in each dimension
constexpr i64 furthest = 2;           // nodes that a coupling reaches in a dimension
constexpr i64 most_neighbours = 124;  // of a node of a grid, at most; many more in one box would make the coarse matrix dense
constexpr i32 fewest_members = 3;     // of an aggregate
constexpr double evenness = 0.25;     // the weakest couplings of a node over the strongest, at least
constexpr i64 sample = 256;           // nodes that are looked at
constexpr i64 none = std::numeric_limits<i64>::max();

i64 rounded_quotient(i64 a, i64 b) { return (a + b / 2) / b; }

/// Of the fastest dimension; n: there is no other; 0: these are no couplings of a grid.
i64 first_length(std::span<i64 const> differences, i64 n) {
  i64 reach = 0;
  while (reach < i64(differences.size()) && differences[std::size_t(reach)] == reach + 1) ++reach;
  if (reach == i64(differences.size())) return reach > 0 && reach <= furthest ? n : 0;
  if (reach == 0 || reach > furthest) return 0;
  // those of one step in the next dimension are a run: n1 - 1, n1, n1 + 1, or a part of that
  auto const rest = differences.subspan(std::size_t(reach));
  std::size_t run = 1;
  while (run < rest.size() && rest[run] == rest[run - 1] + 1) ++run;
  std::vector<i64> candidates(rest.begin(), rest.begin() + std::ptrdiff_t(run));
  auto const middle = rest[0] + rest[run - 1];
  std::stable_sort(candidates.begin(), candidates.end(), [=](i64 a, i64 b) { return std::abs(2 * a - middle) < std::abs(2 * b - middle); });
  for (auto const length : candidates)
    if (length > 2 * reach + 1 && n % length == 0 && std::all_of(differences.begin(), differences.end(), [=](i64 d) {
          return std::abs(d - length * rounded_quotient(d, length)) <= reach;
        }))
      return length;
  return 0;
}

i64 of_sample(i64 s, i64 n) { return i64(double(n) * (double(s) + 0.5) / double(sample)); }

/// Differences of indices that a quarter of a sample of nodes has; none, where many couplings of these nodes have others. Collective.
std::vector<i64> usual_differences(NodeGraph const& g) {
  constexpr i64 most = 62;  // a node of a grid has at most 13 positive ones, of a coarse one 62
  auto const n = g.layout.global_size();
  std::vector<double> found(std::size_t(sample * most), 0.0);
  for (i64 s = 0; s < sample; ++s) {
    auto const global = of_sample(s, n);
    if (!g.layout.owns(global)) continue;
    auto const v = global - g.map.begin;
    auto* at = found.data() + s * most;
    for (auto p = g.ptr[v], end = g.ptr[v + 1]; p < end && at < found.data() + (s + 1) * most; ++p)
      if (auto const d = g.map.global(g.col[p]) - global; d > 0) *at++ = double(d);
  }
  g.layout.comm().max(std::span<double>(found));
  std::erase(found, 0.0);  // most of them
  std::sort(found.begin(), found.end());
  std::vector<i64> usual;
  i64 of_usual = 0, all = 0;
  for (auto first = found.begin(); first != found.end();) {
    auto const last = std::upper_bound(first, found.end(), *first);
    all += last - first;
    if (4 * (last - first) >= sample) {
      usual.push_back(i64(*first));
      of_usual += last - first;
    }
    first = last;
  }
  return 10 * of_usual >= 9 * all ? usual : std::vector<i64>{};
}

/// Boxes in each dimension: of three nodes, the last one or two of two. One of four would interpolate badly.
struct Boxes {
  i64 length[3] = {1, 1, 1}, count[3] = {1, 1, 1}, pairs_from[3] = {1, 1, 1};

  explicit Boxes(std::vector<i64> const& lengths) {
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      length[d] = lengths[d];
      count[d] = (lengths[d] + side - 1) / side;
      pairs_from[d] = lengths[d] % side == 1 && lengths[d] > 1 ? lengths[d] - 4 : lengths[d];
    }
  }
  i64 along(int d, i64 x) const { return x < pairs_from[d] ? x / side : pairs_from[d] / side + (x - pairs_from[d]) / 2; }
  bool is_inside(int d, i64 x) const { return x < pairs_from[d] ? x % side != 0 : (x - pairs_from[d]) % 2 != 0; }
  i64 of(i64 global) const {
    auto const x = global % length[0], yz = global / length[0];
    return along(0, x) + count[0] * (along(1, yz % length[1]) + count[1] * along(2, yz / length[1]));
  }
  /// Nodes of the smallest one.
  i64 fewest() const {
    i64 out = 1;
    for (int d = 0; d < 3; ++d) out *= length[d] % side == 0 ? side : std::min(length[d], i64(2));
    return out;
  }
};

/// f(node, its box, whether the one before it in each dimension is in the same box) of nodes [begin, end)
template <class F>
void walk(Boxes const& boxes, i64 begin, i64 end, F const& f) {
  auto const nx = boxes.length[0], ny = boxes.length[1];
  for (i64 i = begin; i < end;) {
    auto const row = i / nx, y = row % ny, z = row / ny;
    auto const of_row = boxes.count[0] * (boxes.along(1, y) + boxes.count[1] * boxes.along(2, z));
    bool const inside_y = boxes.is_inside(1, y), inside_z = boxes.is_inside(2, z);
    for (auto x = i - row * nx, last = std::min(nx, x + end - i); x < last; ++x, ++i)
      f(i, boxes.along(0, x) + of_row, boxes.is_inside(0, x), inside_y, inside_z);
  }
}

/// Where each node but the first one of its box is coupled to one before it in the box, all of a box hangs together.
bool are_whole(NodeGraph const& g, Boxes const& boxes, comm::Cancellation& cancel) {
  std::atomic<bool> whole{boxes.fewest() >= fewest_members};
  if (whole) {
    i64 const steps[3] = {1, boxes.length[0], boxes.length[0] * boxes.length[1]};
    auto const local = [&map = g.map](i64 global) {  // -1: not among the columns
      if (global >= map.begin) return i32(global - map.begin) + map.below;
      auto const at = std::lower_bound(map.ghosts.begin(), map.ghosts.end(), global);
      return at != map.ghosts.end() && *at == global ? i32(at - map.ghosts.begin()) : -1;
    };
    device::Executor executor;
    device::parallel_ranges(executor, g.count, [&, ptr = g.ptr.data(), col = g.col.data()](i64 first, i64 last) {
      bool all = true;
      for (auto from = first; from < last && all && whole; from += 4096) {
        if (cancel.requested()) return;
        walk(boxes, g.map.begin + from, g.map.begin + std::min(last, from + 4096), [&](i64 i, i64, bool x, bool y, bool z) {
          auto const v = i - g.map.begin;
          if (!(x || y || z)) {
            all = all && g.neighbours(i32(v)) > 0;
            return;
          }
          i32 const wanted[3] = {x ? local(i - steps[0]) : -1, y ? local(i - steps[1]) : -1, z ? local(i - steps[2]) : -1};
          bool found = false;
          for (auto p = ptr[v], end = ptr[v + 1]; p < end; ++p)
            found |= (col[p] == wanted[0]) | (col[p] == wanted[1]) | (col[p] == wanted[2]);
          all = all && found;
        });
      }
      if (!all) whole = false;
    });
    cancel.throw_if_requested();
  }
  return g.layout.comm().min(i64(whole.load())) > 0;
}

}  // namespace

std::vector<i64> lengths_of_grid(std::span<i64 const> differences, i64 n) {
  std::vector<i64> lengths, left(differences.begin(), differences.end());
  while (!left.empty() && lengths.size() < 3) {
    auto const length = first_length(left, n);
    if (length == 0) return {};
    lengths.push_back(length);
    n /= length;
    std::vector<i64> next;  // steps in the dimensions that follow
    for (auto const d : left)
      if (auto const steps = rounded_quotient(d, length); steps > 0 && n > 1 && (next.empty() || next.back() != steps))
        next.push_back(steps);
    left = std::move(next);
  }
  return left.empty() && n == 1 ? lengths : std::vector<i64>{};
}

std::vector<i64> lengths_of_grid(NodeGraph const& g) { return lengths_of_grid(usual_differences(g), g.layout.global_size()); }

template <class T>
bool couplings_are_even(Rows<T> const& A, NodeGraph const& g, std::vector<i64> const& lengths, i64 bs) {
  auto const n = g.layout.global_size();
  std::vector<double> ratios(std::size_t(sample), 0.0);
  for (i64 s = 0; s < sample; ++s) {
    auto const node = of_sample(s, n);
    if (!g.layout.owns(node)) continue;
    double least = std::numeric_limits<double>::infinity(), most = 0;
    i64 step = 1;
    for (auto const length : lengths) {
      double squares = 0;
      for (auto r = (node - g.map.begin) * bs; r < (node - g.map.begin + 1) * bs; ++r)
        for (auto p = A.ptr[r]; p < A.ptr[r + 1]; ++p)
          if (std::abs(A.map.global(A.col[p]) / bs - node) == step) squares += double(abs2(A.val[p]));
      least = std::min(least, squares);
      most = std::max(most, squares);
      step *= length;
    }
    if (most > 0) ratios[std::size_t(s)] = std::sqrt(least / most);
  }
  g.layout.comm().max(std::span<double>(ratios));
  auto const middle = ratios.begin() + sample / 2;
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle >= evenness;
}

template bool couplings_are_even(Rows<double> const&, NodeGraph const&, std::vector<i64> const&, i64);
template bool couplings_are_even(Rows<Complex<double>> const&, NodeGraph const&, std::vector<i64> const&, i64);

GridBoxes boxes_of_grid(NodeGraph const& g, std::vector<i64> const& lengths, Aggregates& out, comm::Cancellation& cancel) {
  auto const& comm = g.layout.comm();
  i32 const below = g.map.below, n = g.count, all = g.map.size();
  auto& root = out.of_node;
  i64 neighbours = 0;
  for (i32 v = 0; v < n; ++v) neighbours = std::max(neighbours, g.neighbours(v));
  if (comm.max(neighbours) > most_neighbours) return GridBoxes::none;
  Boxes const boxes(lengths);
  if (are_whole(g, boxes, cancel)) {
    std::atomic<i64> first_nodes{0};
    device::Executor executor;
    device::parallel_ranges(executor, n, [&, begin = g.map.begin, to = root.data() + below](i64 first, i64 last) {
      i64 found = 0;
      walk(boxes, begin + first, begin + last, [&](i64 i, i64 box, bool x, bool y, bool z) {
        to[i - begin] = box;
        found += !(x || y || z);
      });
      first_nodes += found;
    });
    for (i32 l = 0; l < below; ++l) root[l] = boxes.of(g.map.global(l));
    for (i32 l = below + n; l < all; ++l) root[l] = boxes.of(g.map.global(l));
    out.coarse = Layout(comm, first_nodes);
    return GridBoxes::whole;
  }
  Buffer<i32> box(all);  // modulo 2^32: those of neighbours differ
  Buffer<i64> label(all + 1, none);
  cancellable_for(cancel, all, [&, box = box.data()](i64 l) { box[l] = i32(boxes.of(g.map.global(i32(l)))); });

  // the least index of a part of a box spreads in it: in ascending order most are reached at once
  for (i32 v = 0; v < n; ++v)
    if (g.neighbours(v) > 0) label[v + below] = g.map.begin + v;
  g.halo.update(label.data());
  for (bool changed = true; changed; changed = comm.max(i64(changed)) > 0) {
    changed = false;
    for (bool again = true; again; changed = changed || again) {
      std::atomic<bool> moved{false};
      device::Executor executor;
      device::parallel_ranges(
          executor, n,
          [=, &moved, &cancel, ptr = g.ptr.data(), col = g.col.data(), box = box.data(), label = label.data()](i64 begin, i64 end) {
            bool any = false;
            for (auto v = begin; v < end; ++v) {
              if (is_look(v) && cancel.requested()) return;
              std::atomic_ref at(label[v + below]);
              i64 const before = at.load(std::memory_order_relaxed);
              if (before == none) continue;
              i64 least = before;
              for (auto p = ptr[v], last = ptr[v + 1]; p < last; ++p) {
                i64 const other = std::atomic_ref(label[col[p]]).load(std::memory_order_relaxed);
                least = box[col[p]] == box[v + below] && other < least ? other : least;
              }
              any = any || least != before;
              at.store(least, std::memory_order_relaxed);
            }
            if (any) moved = true;
          });
      cancel.throw_if_requested();
      again = moved;
    }
    g.halo.update(label.data());
  }

  // members of each part: its first node's rank counts them
  Buffer<i32> members(n + 1, i32(0));
  FarNodes const far(g.layout, label);
  std::vector<i32> far_members(far.size(), 0);
  i64 counts[3] = {0, 0, 0};  // nodes with couplings, aggregates, nodes in them
  for (i32 v = 0; v < n; ++v)
    if (auto const r = label[v + below]; r != none) {
      ++counts[0];
      ++(far.is_mine(r) ? members[r - g.map.begin] : far_members[far.at(r)]);
    }
  if (comm.size() > 1) {
    auto const forest = far.forest();
    forest.reduce(far_members.data(), members.data(), comm::ReduceOp::sum);
    forest.bcast(members.data(), far_members.data());
  }
  for (i32 v = 0; v < n; ++v)
    if (members[v] >= fewest_members) {
      ++counts[1];
      counts[2] += members[v];
    }
  comm.sum(std::span<i64>(counts));
  double const nodes_of_box = double(g.layout.global_size()) / double(boxes.count[0] * boxes.count[1] * boxes.count[2]);
  if (2 * double(counts[0]) < nodes_of_box * double(counts[1]) || 4 * counts[2] < 3 * counts[0]) return GridBoxes::none;
  for (i32 l = 0; l < all; ++l) {
    auto const r = label[l];
    bool const is_in = r != none && (far.is_mine(r) ? members[r - g.map.begin] : far_members[far.at(r)]) >= fewest_members;
    root[l] = is_in ? r : -1;
  }
  return GridBoxes::parts;
}

}  // namespace asterism::precond::amg
