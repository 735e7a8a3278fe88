#include "asterism/precond/amg/pairwise.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/mixed_bits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/la/products/galerkin.hpp"
#include "asterism/la/products/sparse_product.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

/// Of an edge, from either end.
u64 edge_hash(i64 a, i64 b) {
  return mixed_bits(u64(std::min(a, b)) * 0x9e3779b97f4a7c15u + mixed_bits(u64(std::max(a, b)) + 0xd1342543de82ef95u));
}

/// Weights of the couplings between nodes, symmetric, and 1 on the diagonal of those that stay out.
template <class T>
Rows<double> node_weights(Rows<T> const& A, NodeGraph const& g, i64 bs, Buffer<std::uint8_t>& out, comm::Cancellation& cancel) {
  i32 const below = g.map.below;
  Rows<double> W;
  W.count = g.count;
  W.map = g.map;
  W.ptr = g.ptr;
  W.col = g.col;
  W.val = Buffer<double>(W.nnz());
  std::vector<i32> node_of;
  if (bs > 1)
    for (i32 l = 0; l < A.map.size(); ++l) node_of.push_back(g.map.local(A.map.global(l) / bs));
  cancellable_for(cancel, g.count, [&](i64 v) {
    double self = 0, others = 0;
    auto const first = g.ptr[v], last = g.ptr[v + 1];
    std::fill(W.val.begin() + first, W.val.begin() + last, 0.0);
    for (i64 r = v * bs; r < (v + 1) * bs; ++r) {
      T d(0);
      for (auto p = A.ptr[r]; p < A.ptr[r + 1]; ++p)
        if (A.map.global(A.col[p]) == A.map.begin + r) d = A.val[p];
      for (auto p = A.ptr[r]; p < A.ptr[r + 1]; ++p) {
        i32 const w = bs == 1 ? A.col[p] : node_of[std::size_t(A.col[p])];
        double const size = double(magnitude(A.val[p]));
        if (w == v + below) {
          self += bs == 1 ? size : size * size;
          continue;
        }
        if (bs == 1) others += size;
        auto const at = std::lower_bound(g.col.begin() + first, g.col.begin() + last, w) - g.col.begin();
        if (at == last || g.col[at] != w) continue;
        if (bs == 1) W.val[at] = d == T(0) ? size : -double(real(A.val[p] * conj(d))) / double(magnitude(d));
        else W.val[at] += size * size;
      }
    }
    if (bs > 1) {
      self = std::sqrt(self);
      for (auto p = first; p < last; ++p) others += W.val[p] = std::sqrt(W.val[p]);
    }
    out[v] = self >= 5 * others;
  });
  return la::sparse_sum(0.5, W, 0.5, la::transpose(W, g.layout, g.layout, false, cancel), g.layout, cancel);
}

/// The groups of one matching: rows of one entry 1, or none of a node that stays out.
struct Matching {
  Rows<double> P;
  Layout coarse;
};

Matching match(Rows<double> const& W, Layout const& layout, Buffer<std::uint8_t> const& out, double threshold, comm::Cancellation& cancel) {
  i32 const n = W.count, below = W.map.below, all = W.map.size();
  auto const& comm = layout.comm();
  Halo const halo(layout, W.map);
  Buffer<double> most(std::max(all, 1), 0.0);
  Buffer<i64> partner(std::max(all, 1), i64(-1));  // global; of those that stay out, or have none, themselves
  Buffer<i64> wanted(std::max(all, 1), i64(-1));
  std::vector<i32> waiting;
  for (i32 v = 0; v < n; ++v) {
    for (auto p = W.ptr[v]; p < W.ptr[v + 1]; ++p)
      if (W.col[p] != v + below) most[v + below] = std::max(most[v + below], W.val[p]);
    if (out.size() > 0 && out[v]) partner[v + below] = W.map.begin + v;
    else waiting.push_back(v);
  }
  halo.update(most.data());
  halo.update(partner.data());
  for (;;) {
    cancellable_for(cancel, i64(waiting.size()), [&](i64 u) {
      i32 const v = waiting[std::size_t(u)];
      i64 const self = W.map.begin + v;
      i64 best = -1;
      double weight = 0;
      u64 hash = 0;
      for (auto p = W.ptr[v]; p < W.ptr[v + 1]; ++p) {
        i32 const c = W.col[p];
        double const w = W.val[p];
        if (c == v + below || partner[c] >= 0 || !(w > 0) || w < weight || w < threshold * std::min(most[v + below], most[c])) continue;
        auto const h = edge_hash(self, W.map.global(c));
        if (w == weight && (h < hash || (h == hash && W.map.global(c) > best))) continue;
        best = W.map.global(c);
        weight = w;
        hash = h;
      }
      wanted[v + below] = best;
    });
    halo.update(wanted.data());
    std::vector<i32> left;
    for (auto const v : waiting) {
      auto const w = wanted[v + below];
      if (w < 0) partner[v + below] = W.map.begin + v;
      else if (wanted[W.map.local(w)] == W.map.begin + v) partner[v + below] = w;
      else left.push_back(v);
    }
    waiting = std::move(left);
    halo.update(partner.data());
    if (comm.sum(i64(waiting.size())) == 0) break;
  }
  Matching m;
  i64 mine = 0;
  auto const stays_out = [&](i32 v) { return out.size() > 0 && out[v]; };
  for (i32 v = 0; v < n; ++v) mine += !stays_out(v) && partner[v + below] >= W.map.begin + v;
  m.coarse = Layout(comm, mine);
  Buffer<i64> number(std::max(all, 1), i64(-1));  // of those with the smaller index of a pair
  i64 next = m.coarse.begin();
  for (i32 v = 0; v < n; ++v)
    if (!stays_out(v) && partner[v + below] >= W.map.begin + v) number[v + below] = next++;
  halo.update(number.data());
  std::vector<i64> of(std::size_t(n), -1), ghosts;
  for (i32 v = 0; v < n; ++v) {
    if (stays_out(v)) continue;
    auto& c = of[std::size_t(v)];
    c = number[W.map.local(std::min(partner[v + below], W.map.begin + v))];
    if (!m.coarse.owns(c)) ghosts.push_back(c);
  }
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  m.P.count = n;
  m.P.map = ColumnMap::make(m.coarse, std::move(ghosts));
  m.P.ptr = Buffer<i64>(n + 1);
  m.P.col = Buffer<i32>(n);
  m.P.val = Buffer<double>(n, 1.0);
  m.P.ptr[0] = 0;
  for (i32 v = 0; v < n; ++v) {
    auto const at = m.P.ptr[v];
    m.P.ptr[v + 1] = at + (of[std::size_t(v)] >= 0);
    if (of[std::size_t(v)] >= 0) m.P.col[at] = m.P.map.local(of[std::size_t(v)]);
  }
  return m;
}

}  // namespace

template <class T>
Aggregates pairwise_aggregates(Rows<T> const& A, NodeGraph const& g, i64 bs, double threshold, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGAggregate");
  profile::Scope const scope(event);
  Buffer<std::uint8_t> stays_out(g.count);
  auto const W = node_weights(A, g, bs, stays_out, cancel);
  auto const first = match(W, g.layout, stays_out, threshold, cancel);
  auto const R = la::transpose(first.P, g.layout, first.coarse, false, cancel);
  // not symmetric in its last bits, so that three pairs that tie could each prefer the next one for ever; half of both is
  auto const sums = la::triple_product(R, W, first.P, g.layout, g.layout, first.coarse, cancel);
  auto const pairs = la::sparse_sum(0.5, sums, 0.5, la::transpose(sums, first.coarse, first.coarse, false, cancel), first.coarse, cancel);
  auto const second = match(pairs, first.coarse, {}, threshold, cancel);
  // of my pairs, and of those that my nodes are in
  Buffer<i64> of_pair(std::max(first.P.map.size(), 1));
  for (i32 c = 0; c < second.P.count; ++c) of_pair[c + first.P.map.below] = second.P.map.global(second.P.col[c]);
  Halo(first.coarse, first.P.map).update(of_pair.data());
  Aggregates out;
  out.coarse = second.coarse;
  out.of_node = Buffer<i64>(g.map.size(), i64(-1));
  for (i32 v = 0; v < g.count; ++v)
    if (auto const p = first.P.ptr[v]; p < first.P.ptr[v + 1]) out.of_node[v + g.map.below] = of_pair[first.P.col[p]];
  g.halo.update(out.of_node.data());
  return out;
}

template <class T>
Rows<T> unsmoothed_prolongation(NodeGraph const& g, Aggregates const& a, Tentative<T> const& P0, i64 bs, Layout const& coarse,
                                comm::Cancellation& cancel) {
  static int const event = profile::event("AMGUnsmoothedP");
  profile::Scope const scope(event);
  i64 const m = P0.columns;
  i32 const below = g.map.below;
  std::vector<i64> ghosts;
  for (i32 v = 0; v < g.count; ++v)
    if (auto const c = a.of_node[v + below]; c >= 0 && !a.coarse.owns(c))
      for (i64 j = 0; j < m; ++j) ghosts.push_back(c * m + j);
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  Rows<T> P;
  P.count = i32(g.count * bs);
  P.map = ColumnMap::make(coarse, std::move(ghosts));
  P.ptr = Buffer<i64>(P.count + 1);
  P.ptr[0] = 0;
  for (i64 r = 0; r < P.count; ++r) P.ptr[r + 1] = P.ptr[r] + (a.of_node[r / bs + below] < 0 ? 0 : m);
  P.col = Buffer<i32>(P.nnz());
  P.val = Buffer<T>(P.nnz());
  cancellable_for(cancel, g.count, [&](i64 v) {
    auto const c = a.of_node[v + below];
    if (c < 0) return;
    i32 const column = P.map.local(c * m);
    for (i64 r = 0; r < bs; ++r)
      for (i64 j = 0; j < m; ++j) {
        auto const at = P.ptr[v * bs + r] + j;
        P.col[at] = column + i32(j);
        P.val[at] = P0.values[((v + below) * bs + r) * m + j];
      }
  });
  return P;
}

#define INSTANTIATE(T)                                                                                                   \
  template Aggregates pairwise_aggregates(Rows<T> const&, NodeGraph const&, i64, double, comm::Cancellation&);           \
  template Rows<T> unsmoothed_prolongation(NodeGraph const&, Aggregates const&, Tentative<T> const&, i64, Layout const&, \
                                           comm::Cancellation&);
INSTANTIATE(double)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::precond::amg
