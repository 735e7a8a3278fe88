#include "asterism/precond/amg/coarsening/aggregation.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>

#include "asterism/base/profile.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/precond/amg/coarsening/grid_boxes.hpp"
#include "asterism/precond/amg/coarsening/independent_set.hpp"
#include "asterism/precond/amg/coarsening/keep_where.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr i32 member = 1;  // of independent_set()

/// Of the numbers of at most `few` nodes the most frequent one, of several the least; -1: none has one. Which are equal is a coin toss, so
/// all pairs are compared.
constexpr i64 few = 8;
i64 most_frequent(i64 const* number, i32 const* nodes, i64 n) {
  i64 numbers[few], counts[few];
  for (i64 k = 0; k < few; ++k) {
    numbers[k] = k < n ? number[nodes[k]] : -1;
    counts[k] = 0;
  }
  for (i64 l = 0; l < few; ++l) {
    i64 const other = numbers[l];
#pragma omp simd
    for (i64 k = 0; k < few; ++k) counts[k] += numbers[k] == other;
  }
  i64 best = -1, votes = 0;
  for (i64 k = 0; k < few; ++k) {
    bool const wins = numbers[k] >= 0 && (counts[k] > votes || (counts[k] == votes && numbers[k] < best));
    best = wins ? numbers[k] : best;
    votes = wins ? counts[k] : votes;
  }
  return best;
}

/// Around a maximal independent set of distance two, and a second one among what is left. root: the first of an aggregate's nodes.
void aggregates_around_roots(NodeGraph const& g, Buffer<i64>& root, comm::Cancellation& cancel) {
  i32 const below = g.map.below, n = g.count, all = g.map.size();
  bool const in_order = g.symmetric && neighbours_are_mutual(g);
  Buffer<std::uint8_t> active(all, std::uint8_t(0));
  Buffer<i32> T(all);

  for (i32 v = 0; v < n; ++v) active[v + below] = g.neighbours(v) > 0;
  auto const share_active = [&] {
    if (g.layout.comm().size() == 1) return;
    Buffer<i32> wide(all);
    for (i32 l = 0; l < all; ++l) wide[l] = active[l];
    g.halo.update(wide.data());
    for (i32 l = 0; l < all; ++l) active[l] = std::uint8_t(wide[l]);
  };
  share_active();

  // a root of the set and its active neighbours, become an aggregate
  auto const join_roots = [&] {
    cancellable_for(
        cancel, n,
        [below, t = T.data(), is_active = active.data(), ptr = g.ptr.data(), col = g.col.data(), map = &g.map, of = root.data()](i64 v) {
          if (!is_active[v + below]) return;
          i32 first = t[v + below] == member ? i32(v) + below : -1;
          for (auto p = ptr[v + 1] - 1; p >= ptr[v]; --p) first = t[col[p]] == member ? col[p] : first;
          if (first >= 0) of[v + below] = map->global(t[v + below] == member ? i32(v) + below : first);
        });
    g.halo.update(root.data());
  };

  // first set
  independent_set(g, in_order, active, T, 0, cancel);
  join_roots();

  // second set, among the nodes two steps from a root: alone they would make the aggregates too large
  for (i32 v = 0; v < n; ++v) active[v + below] = active[v + below] && root[v + below] < 0;
  share_active();
  independent_set(g, in_order, active, T, 32, cancel);
  for (i32 v = 0; v < n; ++v)
    if (T[v + below] == member) {
      i64 free = g.with_self ? -1 : 0;  // v itself is free
      for (auto p = g.ptr[v]; p < g.ptr[v + 1]; ++p) free += active[g.col[p]];
      // a root with few free neighbours would found a small aggregate: the level below gets dense
      if (free < 2 || 5 * (free + 1) < 3 * (g.neighbours(v) + 1)) T[v + below] = 0;
    }
  g.halo.update(T.data());
  join_roots();
}

}  // namespace

FarNodes::FarNodes(Layout const& layout, Buffer<i64> const& nodes)
    : layout_(layout), begin_(layout.begin()), end_(begin_ + layout.local_size()) {
  auto const end = layout.global_size();
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(nodes_), [&](i64 r) { return r >= 0 && r < end && !is_mine(r); });
  std::sort(nodes_.begin(), nodes_.end());
  nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
}

std::size_t FarNodes::at(i64 node) const { return std::size_t(std::lower_bound(nodes_.begin(), nodes_.end(), node) - nodes_.begin()); }

NodeGraph nodes_of(Layout const& rows, ColumnMap const& columns, i64 bs) {
  NodeGraph g;
  auto offsets = rows.offsets();
  for (auto& o : offsets) o /= bs;
  g.layout = Layout::from_offsets(rows.comm(), std::move(offsets));
  g.count = i32(g.layout.local_size());
  auto ghosts = columns.ghosts;
  for (auto& x : ghosts) x /= bs;
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  g.map = ColumnMap::make(g.layout, std::move(ghosts));
  g.halo = Halo(g.layout, g.map);
  return g;
}

template <class T>
NodeGraph strong_couplings(Rows<T> const& A, Layout const& layout, i64 bs, double threshold, comm::Cancellation& cancel, bool or_by_row) {
  static int const event = profile::event("AMGStrength");
  profile::Scope const scope(event, double(A.nnz()) * (12 + 4));
  auto g = nodes_of(layout, A.map, bs);
  i32 const below = g.map.below;
  device::Executor executor;

  // nodes of the scalar columns
  Buffer<i32> node_of;
  if (bs > 1) {
    node_of = Buffer<i32>(A.map.size());
    for (i32 l = 0; l < A.map.size(); ++l) node_of[l] = g.map.local(A.map.global(l) / bs);
  }
  auto const node = [&](i32 l) { return bs == 1 ? l : node_of[l]; };

  // sizes of the diagonal blocks
  Buffer<double> diagonal(g.map.size(), 0.0);
  if (bs == 1)
    device::parallel_for(executor, g.count,
                         [ptr = A.ptr.data(), col = A.col.data(), val = A.val.data(), d = diagonal.data(), below](i64 v) {
                           for (auto p = ptr[v]; p < ptr[v + 1]; ++p)
                             if (col[p] == v + below) d[v + below] = double(magnitude(val[p]));
                         });
  else
    cancellable_for(cancel, g.count, [&](i64 v) {
      double s = 0;
      for (i64 r = v * bs; r < (v + 1) * bs; ++r)
        for (auto p = A.ptr[r]; p < A.ptr[r + 1]; ++p)
          if (node(A.col[p]) == v + below) s += double(abs2(A.val[p]));
      diagonal[v + below] = std::sqrt(s);
    });
  g.halo.update(diagonal.data());

  g.ptr = Buffer<i64>(g.count + 1);
  g.ptr[0] = 0;
  double const t2 = threshold * threshold * (1 - 1e-12);  // a coupling that equals the limit is strong, however its row was rounded
  auto const of_other = [or_by_row](double other, double mine) { return or_by_row && mine < other ? mine : other; };
  if (bs == 1) {
    auto const* const ap = A.ptr.data();
    auto const* const ac = A.col.data();
    auto const* const av = A.val.data();
    auto const* const dg = diagonal.data();
    auto* const gp = g.ptr.data();
    Buffer<i32> room(A.nnz());
    struct Share {
      i32 first, last;
      i64 count;
    };
    std::vector<Share> shares;
    std::mutex mutex;
    la::in_shares(g.count, ap, [&, out = room.data()](i32 first, i32 last) {
      i64 at = ap[first];
      for (i32 i = first; i < last; ++i) {
        if (is_look(i) && cancel.requested()) return;
        for (auto p = ap[i]; p < ap[i + 1]; ++p) {
          i32 const c = ac[p];
          out[at] = c;
          // branch-free: the entry is kept by moving on. The diagonals first, as the other row multiplies them too
          at += c != i + below && double(abs2(av[p])) > t2 * (dg[i + below] * of_other(dg[c], dg[i + below]));
        }
        gp[i + 1] = at - ap[first];
      }
      std::lock_guard const lock(mutex);
      shares.push_back({first, last, at - ap[first]});
    });
    cancel.throw_if_requested();
    if (shares.size() == 1) {
      g.col = room;
    } else {  // those of each share behind those of the share before
      std::sort(shares.begin(), shares.end(), [](Share const& x, Share const& y) { return x.first < y.first; });
      std::vector<i64> begin(shares.size() + 1, 0);
      for (std::size_t s = 0; s < shares.size(); ++s) begin[s + 1] = begin[s] + shares[s].count;
      g.col = Buffer<i32>(begin.back());
      device::parallel_ranges(
          executor, i64(shares.size()),
          [&, to = g.col.data()](i64 first, i64 last) {
            for (auto s = std::size_t(first); s < std::size_t(last); ++s) {
              std::copy_n(room.data() + ap[shares[s].first], shares[s].count, to + begin[s]);
              for (i32 i = shares[s].first; i < shares[s].last; ++i) gp[i + 1] += begin[s];
            }
          },
          1);
    }
    auto const diagonals = g.count - std::count(dg + below, dg + below + g.count, 0.0);
    g.complete = layout.comm().sum(A.nnz() - diagonals - gp[g.count]) == 0;
    return g;
  }
  Rows<float> out;
  out.count = g.count;
  out.ptr = g.ptr;
  Buffer<i64> work(g.count + 1);
  for (i32 v = 0; v <= g.count; ++v) work[v] = A.ptr[v * bs];
  std::atomic<i64> weak{0};
  append_in_shares<float>(g.count, work.data(), out, cancel, [&](i32 first, i32 last, Piece<float>& piece) {
    Buffer<double> size(g.map.size(), 0.0);
    std::vector<i32> seen;
    i64 left_out = 0;
    for (i32 v = first; v < last; ++v) {
      if (is_look(v) && cancel.requested()) return;
      seen.clear();
      for (auto p = work[v]; p < work[v + 1]; ++p) {
        i32 const w = node_of[A.col[p]];
        if (size[w] == 0) seen.push_back(w);
        size[w] += double(abs2(A.val[p])) + 1e-300;
      }
      std::sort(seen.begin(), seen.end());
      piece.make_room(i64(seen.size()));
      auto const before = piece.size;
      for (auto const w : seen) {
        bool const other = w != v + below;
        bool const strong = size[w] > t2 * (diagonal[v + below] * of_other(diagonal[w], diagonal[v + below])) + 1e-299;
        piece.col[piece.size] = w;
        piece.val[piece.size] = 1;
        piece.size += other && strong;
        left_out += other && !strong;
        size[w] = 0;
      }
      out.ptr[v + 1] = piece.size - before;
    }
    weak += left_out;
  });
  g.ptr = out.ptr;
  g.col = out.col;
  g.complete = layout.comm().sum(weak.load()) == 0;
  return g;
}

template <class T>
NodeGraph pattern_graph(Rows<T> const& A, Layout const& layout) {
  auto g = nodes_of(layout, A.map, 1);
  g.ptr = A.ptr;
  g.col = A.col;
  g.with_self = true;
  return g;
}

template NodeGraph pattern_graph(Rows<double> const&, Layout const&);
template NodeGraph pattern_graph(Rows<Complex<double>> const&, Layout const&);
template NodeGraph strong_couplings(Rows<double> const&, Layout const&, i64, double, comm::Cancellation&, bool);
template NodeGraph strong_couplings(Rows<Complex<double>> const&, Layout const&, i64, double, comm::Cancellation&, bool);

Aggregates aggregate(NodeGraph const& g, std::vector<i64> const& grid, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGAggregate");
  profile::Scope const scope(event);
  i32 const below = g.map.below, n = g.count, all = g.map.size();
  auto const& comm = g.layout.comm();
  Aggregates out;
  out.of_node = Buffer<i64>(all, i64(-1));
  auto& root = out.of_node;  // first the root's global index, at the end the aggregate's
  auto const found = grid.empty() ? GridBoxes::none : boxes_of_grid(g, grid, out, cancel);
  out.boxes = found != GridBoxes::none;
  if (found == GridBoxes::whole) return out;
  if (!out.boxes) aggregates_around_roots(g, root, cancel);
  for (auto const v : g.alone) root[v + below] = g.map.begin + v;

  // the rest joins the aggregate it has most couplings with; a node whose neighbours are all without
  // an aggregate (an unsymmetric pattern) becomes its own
  auto rest = nodes_where(n, [&, of = root.data()](i32 v) { return of[v + below] < 0 && g.neighbours(v) > 0; });
  for (;;) {
    std::vector<i64> joined(rest.size(), -1);
    device::Executor executor;
    device::parallel_ranges(executor, i64(rest.size()), [&](i64 begin, i64 end) {
      std::vector<i64> votes;
      for (i64 u = begin; u < end; ++u) {
        if (is_look(u) && cancel.requested()) return;
        i32 const v = rest[std::size_t(u)];
        if (auto const first = g.ptr[v], n = g.ptr[v + 1] - first; n <= few) {
          joined[std::size_t(u)] = most_frequent(root.data(), g.col.data() + first, n);
          continue;
        }
        votes.clear();
        for (auto p = g.ptr[v]; p < g.ptr[v + 1]; ++p)
          if (auto const r = root[g.col[p]]; r >= 0) votes.push_back(r);
        std::sort(votes.begin(), votes.end());
        i64 most = 0;  // of several the least
        for (auto first = votes.begin(); first != votes.end();) {
          auto const last = std::upper_bound(first, votes.end(), *first);
          if (last - first > most) joined[std::size_t(u)] = *first;
          most = std::max(most, i64(last - first));
          first = last;
        }
      }
    });
    cancel.throw_if_requested();
    for (std::size_t u = 0; u < rest.size(); ++u) root[rest[u] + below] = joined[u];
    g.halo.update(root.data());
    auto const before = i64(rest.size());
    keep_where(rest, [=, of = root.data()](i32 v) { return of[v + below] < 0; });
    std::int64_t counts[2] = {before - i64(rest.size()), i64(rest.size())};
    comm.sum(std::span<i64>(counts));
    if (counts[1] == 0) break;
    if (counts[0] == 0) {
      for (auto const v : rest) root[v + below] = g.map.begin + v;
      g.halo.update(root.data());
      break;
    }
  }

  // numbers in the order of the roots
  Buffer<i64> number(n + 1);
  i64 mine = 0;
  for (i32 v = 0; v < n; ++v) mine += (number[v] = root[v + below] == g.map.begin + v ? 1 : 0);
  out.coarse = Layout(comm, mine);
  i64 next = out.coarse.begin();
  for (i32 v = 0; v < n; ++v) number[v] = number[v] ? next++ : -1;
  FarNodes const far(g.layout, root);
  std::vector<i64> numbers(far.size());
  if (comm.size() > 1) far.forest().bcast(number.data(), numbers.data());
  cancellable_for(cancel, all, [&, of = root.data(), number_of = number.data(), begin = g.map.begin](i64 l) {
    auto const r = of[l];
    if (r < 0) return;
    of[l] = far.is_mine(r) ? number_of[r - begin] : numbers[far.at(r)];
  });
  return out;
}

}  // namespace asterism::precond::amg
