#include "asterism/precond/amg/block_size.hpp"

#include <algorithm>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/exchange.hpp"

namespace asterism::precond::amg {
namespace {

using i64 = std::int64_t;
using la::Layout;
using la::Matrix;

/// Where nodes of so many rows begin, if the first does at `shift`; what is left over at both ends belongs to none.
struct Nodes {
  i64 rows, block, shift;
  i64 count() const { return (rows - shift) / block; }
  i64 begin(i64 node) const { return node * block + shift; }
  i64 of(i64 row) const { return (row - shift + block) / block - 1; }  // -1: before the first
  bool straddle(Layout const& layout) const {
    return std::any_of(layout.offsets().begin(), layout.offsets().end(),
                       [&](i64 o) { return o > shift && o < begin(count()) && (o - shift) % block != 0; });
  }
};

/// Appends the column nodes of my rows among [begin, end), some several times; the number of entries there.
i64 append_column_nodes(Matrix const& A, Nodes const& nodes, i64 begin, i64 end, std::vector<i64>& out) {
  auto const &D = A.diagonal_block(), &O = A.coupling_block();
  auto const *dp = D.offsets.as<i64>(), *op = O.offsets.as<i64>();
  auto const *dc = D.columns.as<std::int32_t>(), *oc = O.columns.as<std::int32_t>();
  auto const first_row = A.range().begin(), first_column = A.domain().begin();
  auto const from = std::max(begin, first_row) - first_row, to = std::min(end, A.range().end()) - first_row;
  if (from >= to) return 0;
  i64 next = 0;  // columns of a row ascend: those below are of the node that was added last
  auto const add = [&](i64 column) {
    if (column < next) return;
    out.push_back(nodes.of(column));
    next = nodes.begin(out.back() + 1);
  };
  for (auto r = from; r < to; ++r) {
    next = 0;
    for (auto p = dp[r]; p < dp[r + 1]; ++p) add(first_column + dc[p]);
    next = 0;
    for (auto p = op[r]; p < op[r + 1]; ++p) add(A.ghosts()[std::size_t(oc[p])]);
  }
  return dp[to] - dp[from] + op[to] - op[from];
}

/// Entries of the nodes looked at, divided by the places in the blocks that have any.
double fullness(Matrix const& A, Nodes const& nodes) {
  auto const& layout = A.range();
  auto const count = nodes.count();
  // some 200 of them at most; primes, since a distance that divides the size of a grid meets the same places again and again
  constexpr i64 strides[] = {1, 3, 11, 31, 101, 307, 1009, 3001, 10'007, 30'011, 100'003};
  auto const* const enough = std::find_if(std::begin(strides), std::end(strides) - 1, [&](i64 s) { return count / s <= 200; });
  i64 const stride = *enough;
  auto const looked_at = [&](i64 node) { return node >= 0 && node < count && node % stride == 0; };
  // the rank that has a node's first row counts; what others have of it they send, once at most
  std::vector<std::vector<i64>> of_others;
  if (nodes.straddle(layout)) {
    std::vector<comm::Parcel> parcels;
    if (auto const cut = nodes.of(layout.begin()); layout.local_size() > 0 && looked_at(cut) && nodes.begin(cut) < layout.begin()) {
      std::vector<i64> mine;
      mine.push_back(append_column_nodes(A, nodes, nodes.begin(cut), nodes.begin(cut + 1), mine));
      parcels.push_back({layout.owner(nodes.begin(cut)), {}});
      comm::append<i64>(parcels[0].data, mine);
    }
    for (auto const& p : comm::exchange(A.comm(), std::move(parcels))) of_others.push_back(comm::items_of<i64>(p.data));
  }
  i64 sums[2] = {0, 0};  // blocks, entries
  std::vector<i64> seen;
  auto node = std::max<i64>(nodes.of(layout.begin() + nodes.block - 1), 0);  // the first that begins here
  node = (node + stride - 1) / stride * stride;
  for (; node < count && nodes.begin(node) < layout.end(); node += stride) {
    seen.clear();
    sums[1] += append_column_nodes(A, nodes, nodes.begin(node), nodes.begin(node + 1), seen);
    if (nodes.begin(node + 1) > layout.end())
      for (auto const& rest : of_others) {
        seen.insert(seen.end(), rest.begin(), rest.end() - 1);
        sums[1] += rest.back();
      }
    std::sort(seen.begin(), seen.end());
    sums[0] += std::unique(seen.begin(), seen.end()) - seen.begin();
  }
  A.comm().sum(std::span<i64>(sums));
  return sums[0] > 0 ? double(sums[1]) / double(sums[0] * nodes.block * nodes.block) : 0;
}

}  // namespace

i64 detected_block_size(Matrix const& A) {
  static int const event = profile::event("AMGBlockSize");
  profile::Scope const scope(event);
  auto const n = A.global_rows();
  for (i64 const block : {6, 5, 4, 3, 2}) {
    if (n % block != 0 || n < 8 * block) continue;  // of a few nodes nothing can be said
    double const full = fullness(A, {n, block, 0});
    if (full < 0.6) continue;
    bool stands_out = true;
    for (i64 shift = 1; shift < block && stands_out; ++shift) stands_out = full >= 1.3 * fullness(A, {n, block, shift});
    if (stands_out) return block;
  }
  return 1;
}

bool WholeNodes::needed(Layout const& layout, i64 block_size) {
  return block_size > 1 && Nodes{layout.global_size(), block_size, 0}.straddle(layout);
}

namespace {
std::vector<i64> owners_of_first_rows(Layout const& layout, i64 block_size) {
  std::vector<i64> out;
  out.reserve(std::size_t(layout.local_size()));
  for (auto i = layout.begin(); i < layout.end(); ++i) out.push_back(layout.owner(i / block_size * block_size));
  return out;
}
}  // namespace

WholeNodes::WholeNodes(Layout const& layout, i64 block_size)
    : move_(layout, owners_of_first_rows(layout, block_size)), forest_(move_.forest()) {}

WholeNodes::Work WholeNodes::new_work(la::Vector const& like) const {
  auto const make = [&] { return la::Vector(move_.to(), like.dtype(), like.columns(), like.queue()); };
  return {make(), make()};
}

}  // namespace asterism::precond::amg
