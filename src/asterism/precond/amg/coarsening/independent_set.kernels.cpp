#include "asterism/precond/amg/coarsening/independent_set.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <utility>

#include "asterism/base/mixed_bits.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/precond/amg/coarsening/keep_where.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u64 = std::uint64_t;

constexpr int index_bits = 40;
constexpr u64 nobody = ~u64(0);

i64 node_at(u64 place) { return i64(place & ((u64(1) << index_bits) - 1)); }

/// Own nodes of one block of indices.
struct Block {
  i32 first, last;
  std::vector<i32> left;  // undecided ones, in order
};

/// The set in the order of places. What this rank cannot decide waits for others' nodes that come first.
class OrderedSet {
 public:
  OrderedSet(NodeGraph const& g, Buffer<u8> const& active, Buffer<i32>& T, i64 block, comm::Cancellation& cancel)
      : g_(g), size_(block), cancel_(cancel), active_(active.data()), state_(T.data()), beside_(g.map.size() + 1, u8(0)) {
    bool const alone = g.layout.comm().size() == 1;
    for (i32 l = 0; l < g.map.size(); ++l) state_[l] = active_[l] ? is_open : is_out;
    make_blocks();
    schedule();
    if (alone) {
      sweep<false>();
      return;
    }
    waits_ = Buffer<u8>(g.map.size() + 1, u8(0));
    earliest_ = Buffer<u64>(g.map.size() + 1, nobody);
    first_ = Buffer<u64>(2 * i64(g.map.size()) + 2, nobody);
    for (i32 v = 0; v < g.count; ++v)
      if (std::any_of(g.col.data() + g.ptr[v], g.col.data() + g.ptr[v + 1], [&](i32 c) { return !g.map.is_own(c); })) border_.push_back(v);
    for (;;) {
      exchange();
      i64 left = 0;
      for (auto const& block : blocks_) left += i64(block.left.size());
      if (g.layout.comm().sum(left) == 0) return;
      sweep<true>();
    }
  }

  static constexpr i32 is_out = 0, is_in = 1, is_open = 2;

 private:
  void make_blocks() {
    for (i32 first = 0; first < g_.count;) {
      auto const next = (g_.map.begin + first) / size_ * size_ + size_;
      auto const last = i32(std::min<i64>(g_.count, next - g_.map.begin));
      blocks_.push_back({first, last, {}});
      first = last;
    }
    std::sort(blocks_.begin(), blocks_.end(), [this](Block const& x, Block const& y) { return place(x.first) < place(y.first); });
    for (auto& block : blocks_)
      for (i32 v = block.first; v < block.last; ++v)
        if (active_[v + g_.map.below]) block.left.push_back(v);
  }

  /// Which blocks may be taken at once: none is within two steps of another one. All in their order, if one thread takes them.
  void schedule() {
    auto const count = blocks_.size();
    if (device::host::team_size() == 1 || count < 3) {
      for (std::size_t b = 0; b < count; ++b) levels_.push_back({b});
      return;
    }
    // also over nodes of other ranks: those are told by their blocks, whichever rank has them
    std::vector<i64> names;
    for (auto const& block : blocks_) names.push_back((g_.map.begin + block.first) / size_);
    for (auto const ghost : g_.map.ghosts) names.push_back(ghost / size_);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    auto const number = [&](i32 l) {
      return std::size_t(std::lower_bound(names.begin(), names.end(), g_.map.global(l) / size_) - names.begin());
    };
    std::vector<std::vector<std::size_t>> beside(names.size());
    device::Executor executor;
    std::vector<std::vector<std::size_t>> found(count);
    device::parallel_ranges(
        executor, i64(count),
        [&](i64 begin, i64 end) {
          for (auto b = begin; b < end; ++b) {
            auto const& block = blocks_[std::size_t(b)];
            auto& others = found[std::size_t(b)];
            i64 from = g_.map.below + block.first, to = g_.map.below + block.last;  // of the block that was found last
            for (auto p = g_.ptr[block.first]; p < g_.ptr[block.last]; ++p) {
              i32 const c = g_.col[p];
              if (c >= from && c < to) continue;
              auto const other = number(c);
              if (std::find(others.begin(), others.end(), other) == others.end()) others.push_back(other);
              if (!g_.map.is_own(c)) continue;
              from = std::max<i64>(names[other] * size_ - g_.map.begin, 0) + g_.map.below;
              to = std::min<i64>(names[other] * size_ + size_ - g_.map.begin, g_.count) + g_.map.below;
            }
          }
        },
        1);
    std::vector<std::size_t> number_of(count);
    for (std::size_t b = 0; b < count; ++b) {
      number_of[b] = number(blocks_[b].first + g_.map.below);
      for (auto const other : found[b]) {
        beside[number_of[b]].push_back(other);
        beside[other].push_back(number_of[b]);
      }
    }
    std::vector<std::size_t> level(names.size(), 0);  // 0: not taken yet
    for (std::size_t b = 0; b < count; ++b) {
      auto const me = number_of[b];
      std::size_t after = 0;
      for (auto const near : beside[me]) {
        after = std::max(after, level[near]);
        for (auto const other : beside[near]) after = std::max(after, level[other]);
      }
      level[me] = after + 1;
      if (levels_.size() < level[me]) levels_.resize(level[me]);
      levels_[after].push_back(b);
    }
  }

  template <bool others>
  void sweep() {
    device::Executor executor;
    for (auto const& level : levels_) {
      device::parallel_ranges(
          executor, i64(level.size()),
          [&](i64 begin, i64 end) {
            for (auto l = begin; l < end; ++l) decide<others>(blocks_[level[std::size_t(l)]]);
          },
          1);
      cancel_.throw_if_requested();
    }
    if constexpr (others)
      for (auto const& block : blocks_)
        for (auto const v : block.left) each(v, [this](i32 c) { waits_[c] = 0; });
  }

  /// others: there are nodes of other ranks.
  template <bool others>
  void decide(Block& block) {
    auto const* const ptr = g_.ptr.data();
    auto const* const col = g_.col.data();
    auto* const beside = beside_.data();
    i32 const below = g_.map.below;
    std::size_t stay = 0;
    for (auto const v : block.left) {
      if (is_look(v) && cancel_.requested()) return;
      bool taken = beside[v + below] != 0, later = false;
      for (auto p = ptr[v], end = ptr[v + 1]; !taken && p < end; ++p) taken = beside[col[p]] != 0;
      if constexpr (others)
        if (auto const mine = place(v); !taken) each(v, [&](i32 c) { later = later || waits_[c] != 0 || earliest_[c] < mine; });
      if (taken) {
        state_[v + below] = is_out;
      } else if (later) {
        each(v, [this](i32 c) { waits_[c] = active_[c]; });
        block.left[stay++] = v;
      } else {
        state_[v + below] = is_in;
        each(v, [=, this](i32 c) { beside[c] |= active_[c]; });
      }
    }
    block.left.resize(stay);
  }

  /// What the others decided, and which of their nodes come first, at each node that is beside them.
  void exchange() {
    auto const& map = g_.map;
    g_.halo.update(state_);
    for (auto const c : border_) each(c, [&](i32 d) { beside_[c + map.below] |= u8(state_[d] == is_in && active_[c + map.below]); });
    g_.halo.update(beside_.data());
    auto const owner = [&](u64 place) { return g_.layout.owner(node_at(place)); };
    for (auto const c : border_) {
      u64 one = nobody, two = nobody, other_rank = nobody;
      int rank = -1;
      auto const look = [&](auto const& f) {
        each(c, [&](i32 d) {
          if (state_[d] == is_open) f(place_in_order(map.global(d), size_), d);
        });
      };
      if (active_[c + map.below]) {
        look([&](u64 at, i32) { one = std::min(one, at); });
        if (one != nobody) rank = owner(one);
        look([&](u64 at, i32 d) {
          if (!map.is_own(d)) other_rank = std::min(other_rank, at);
          if (at < two && owner(at) != rank) two = at;
        });
      }
      first_[2 * i64(c + map.below)] = one;
      first_[2 * i64(c + map.below) + 1] = two;
      earliest_[c + map.below] = other_rank;
    }
    g_.halo.update(first_.data(), 2);
    auto const me = g_.layout.comm().rank();
    for (i32 l = 0; l < map.size(); l = l + 1 == map.below ? map.below + map.own : l + 1) {
      auto const one = first_[2 * i64(l)];
      if (!map.is_own(l)) earliest_[l] = one != nobody && owner(one) == me ? first_[2 * i64(l) + 1] : one;
    }
  }

  u64 place(i32 v) const { return place_in_order(g_.map.begin + v, size_); }

  /// f(c) for node v and its neighbours.
  template <class F>
  void each(i32 v, F const& f) const {
    f(v + g_.map.below);
    for (auto p = g_.ptr[v], end = g_.ptr[v + 1]; p < end; ++p) f(g_.col[p]);
  }

  NodeGraph const& g_;
  i64 const size_;  // of a block
  comm::Cancellation& cancel_;
  u8 const* active_;
  i32* state_;
  Buffer<u8> beside_;        // active, and in the set or beside one that is
  Buffer<u8> waits_;         // beside an own node that waits
  Buffer<u64> earliest_;     // place of the first undecided node of another rank among it and its neighbours
  Buffer<u64> first_;        // the same of all ranks, and of all ranks but that one's: who asks may have that one
  std::vector<i32> border_;  // own nodes with neighbours of other ranks
  std::vector<Block> blocks_;
  std::vector<std::vector<std::size_t>> levels_;
};

constexpr i32 in_set = 0x7fffffff, out_of_set = 0;

/// State "undecided" with a priority of 30 bits that changes every round. Two equal ones within two steps of
/// each other (one in a hundred million) found two roots side by side: smaller aggregates, no harm.
i32 priority(i64 global, u64 round) { return i32(1 + (mixed_bits(u64(global) * 0x9e3779b97f4a7c15u + round * 0xd1342543de82ef95u) >> 34)); }

/// By value: a reference would make a branch of it, which is a coin toss here.
i32 larger(i32 a, i32 b) { return a > b ? a : b; }

/// Of nodes in a list: those that are left stand far apart.
void ask_for_neighbours(i64 const* ptr, i32 const* col, i32 const* nodes, i64 u, i64 count) {
  if (u + 32 >= count) return;
  __builtin_prefetch(ptr + nodes[u + 32]);
  __builtin_prefetch(col + ptr[nodes[u + 16]]);
}

/// The set of any graph.
void hashed_set(NodeGraph const& g, u8 const* active, Buffer<i32>& T, u64 seed, comm::Cancellation& cancel) {
  i32 const below = g.map.below;
  auto const& comm = g.layout.comm();
  Buffer<i32> M(g.map.size(), out_of_set);  // largest within one step, of the active nodes alone
  std::fill(T.begin(), T.end(), out_of_set);
  auto undecided = nodes_where(g.count, [=](i32 v) { return active[v + below] != 0; });
  auto relays = undecided;
  auto const* const ptr = g.ptr.data();
  auto const* const col = g.col.data();
  auto* const t = T.data();
  auto* const m_of = M.data();
  for (u64 round = 0; comm.sum(i64(undecided.size())) > 0; ++round) {
    cancellable_for(cancel, i64(undecided.size()), [=, begin = g.map.begin, nodes = undecided.data()](i64 u) {
      i32 const v = nodes[u];
      t[v + below] = priority(begin + v, round * 64 + seed);
    });
    g.halo.update(t);
    cancellable_for(cancel, i64(relays.size()), [=, nodes = relays.data(), count = i64(relays.size())](i64 u) {
      ask_for_neighbours(ptr, col, nodes, u, count);
      i32 const v = nodes[u];
      i32 m = t[v + below];
      for (auto p = ptr[v], end = ptr[v + 1]; p < end; ++p) m = larger(m, t[col[p]]);
      m_of[v + below] = m;
    });
    g.halo.update(m_of);
    cancellable_for(cancel, i64(undecided.size()), [=, nodes = undecided.data(), count = i64(undecided.size())](i64 u) {
      ask_for_neighbours(ptr, col, nodes, u, count);
      i32 const v = nodes[u], mine = t[v + below];
      i32 m = m_of[v + below];
      if (round == 0 && m != mine) return;  // none is in the set yet
      for (auto p = ptr[v], end = ptr[v + 1]; p < end; ++p) m = larger(m, m_of[col[p]]);
      t[v + below] = m == in_set ? out_of_set : m == mine ? in_set : mine;
    });
    keep_where(undecided, [=](i32 v) { return t[v + below] != in_set && t[v + below] != out_of_set; });
    // those beside a root are done, and those beside nothing undecided
    keep_where(relays, [=](i32 v) { return m_of[v + below] != in_set && m_of[v + below] != out_of_set; });
  }
  g.halo.update(t);
  for (i32 l = 0; l < g.map.size(); ++l) t[l] = t[l] == in_set;
}

}  // namespace

u64 place_in_order(i64 node, i64 block) { return mixed_bits(u64(node / block) + 1) >> index_bits << index_bits | u64(node); }

bool neighbours_are_mutual(NodeGraph const& g) {
  // of a pair in both orders the terms cancel; all others' do so by chance alone
  constexpr u64 of_first = 0x9e3779b97f4a7c15u, of_second = 0xd1342543de82ef95u, mixes = 0xbf58476d1ce4e5b9u;
  std::atomic<u64> sum{0};
  device::Executor executor;
  device::parallel_ranges(executor, g.count, [&, map = &g.map, ptr = g.ptr.data(), col = g.col.data()](i64 begin, i64 end) {
    u64 mine = 0;
    auto const hash = [=](u64 i, u64 j) {
      u64 const x = (i + 1) * of_first + (j + 1) * of_second;
      return (x ^ (x >> 32)) * mixes;
    };
    for (auto v = begin; v < end; ++v) {
      auto const i = u64(map->begin + v);
      for (auto p = ptr[v]; p < ptr[v + 1]; ++p) {
        auto const j = u64(map->global(col[p]));
        mine += hash(i, j) - hash(j, i);
      }
    }
    sum += mine;
  });
  auto const mine = sum.load();
  std::array<i64, 2> halves{i64(mine & 0xffffffffu), i64(mine >> 32)};  // sums of ranks have room in 64 bits
  g.layout.comm().sum(std::span<i64>(halves));
  return u64(halves[0]) + (u64(halves[1]) << 32) == 0;
}

void independent_set(NodeGraph const& g, bool in_order, Buffer<u8> const& active, Buffer<i32>& T, u64 seed, comm::Cancellation& cancel,
                     i64 block) {
  if (in_order) OrderedSet(g, active, T, block, cancel);
  else hashed_set(g, active.data(), T, seed, cancel);
}

}  // namespace asterism::precond::amg
