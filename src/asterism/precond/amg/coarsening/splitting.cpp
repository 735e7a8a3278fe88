#include "asterism/precond/amg/coarsening/splitting.hpp"

#include <algorithm>
#include <limits>

#include "asterism/base/mixed_bits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/la/products/sparse_product.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u64 = std::uint64_t;

constexpr i64 is_coarse = std::numeric_limits<i64>::max(), is_fine = 0;

bool depends(float way) { return way != 2; }
bool is_needed(float way) { return way != 1; }

/// Of an undecided point, more than is_fine: the points that depend on it, and 31 bits of a hash.
i64 measure(i64 dependents, i64 global) {
  return dependents << 31 | i64(mixed_bits(u64(global) * 0x9e3779b97f4a7c15u + 0xd1342543de82ef95u) >> 33);
}

/// Points of a block with couplings between them alone.
struct Block {
  std::vector<i64> ptr{0};
  std::vector<i32> col;
  std::vector<float> way;
  std::vector<u8> inside;  // all couplings are in the block
  i64 begin = 0;           // global

  void add_row(auto const& each, i64 end) {
    bool all = true;
    each([&](i64 global, float w) {
      if (global < begin || global >= end) {
        all = false;
        return;
      }
      col.push_back(i32(global - begin));
      way.push_back(w);
    });
    ptr.push_back(i64(col.size()));
    inside.push_back(all);
  }
  i32 size() const { return i32(inside.size()); }
};

/// Lists of points with equal weights, oldest first.
class Buckets {
 public:
  Buckets(i32 points, i64 most)
      : next_(std::size_t(points)), before_(std::size_t(points)), first_(std::size_t(most) + 1, none), last_(first_) {}
  void put(i32 v, i64 weight) {
    auto& last = last_[std::size_t(weight)];
    next_[std::size_t(v)] = none;
    before_[std::size_t(v)] = last;
    (last == none ? first_[std::size_t(weight)] : next_[std::size_t(last)]) = v;
    last = v;
    top_ = std::max(top_, weight);
  }
  void take(i32 v, i64 weight) {
    auto const n = next_[std::size_t(v)], b = before_[std::size_t(v)];
    (b == none ? first_[std::size_t(weight)] : next_[std::size_t(b)]) = n;
    (n == none ? last_[std::size_t(weight)] : before_[std::size_t(n)]) = b;
  }
  /// Of the largest weight, or none.
  i32 top() {
    while (top_ > 0 && first_[std::size_t(top_)] == none) --top_;
    return first_[std::size_t(top_)];
  }
  static constexpr i32 none = -1;

 private:
  std::vector<i32> next_, before_, first_, last_;
  i64 top_ = 0;
};

/// The first pass of Ruge and Stueben: coarse points, of those with all couplings inside.
std::vector<i32> first_pass(Block const& g) {
  i32 const n = g.size();
  enum State : u8 { undecided, coarse, fine };
  std::vector<u8> state(std::size_t(n), undecided);
  std::vector<i64> weight(std::size_t(n), 0);
  i64 most = 0;
  for (i32 v = 0; v < n; ++v) {
    for (auto p = g.ptr[std::size_t(v)]; p < g.ptr[std::size_t(v) + 1]; ++p) weight[std::size_t(v)] += is_needed(g.way[std::size_t(p)]);
    most = std::max(most, weight[std::size_t(v)]);
  }
  Buckets buckets(n, 2 * most);
  for (i32 v = 0; v < n; ++v) buckets.put(v, weight[std::size_t(v)]);
  auto const each = [&](i32 v, auto const& f) {
    for (auto p = g.ptr[std::size_t(v)]; p < g.ptr[std::size_t(v) + 1]; ++p) f(g.col[std::size_t(p)], g.way[std::size_t(p)]);
  };
  auto const weigh = [&](i32 v, i64 more) {
    auto& w = weight[std::size_t(v)];
    if (state[std::size_t(v)] != undecided) return;
    buckets.take(v, w);
    buckets.put(v, w += more);
  };
  auto const decide = [&](i32 v, State s) {
    buckets.take(v, weight[std::size_t(v)]);
    state[std::size_t(v)] = s;
  };
  auto const make_fine = [&](i32 v) {
    decide(v, fine);
    each(v, [&](i32 k, float way) {
      if (depends(way)) weigh(k, 1);
    });
  };
  for (i32 v; (v = buckets.top()) != Buckets::none;) {
    if (weight[std::size_t(v)] == 0) {
      make_fine(v);
      continue;
    }
    decide(v, coarse);
    each(v, [&](i32 j, float way) {
      if (is_needed(way) && state[std::size_t(j)] == undecided) make_fine(j);
    });
    each(v, [&](i32 k, float way) {
      if (depends(way) && weight[std::size_t(k)] > 0) weigh(k, -1);
    });
  }
  std::vector<i32> out;
  for (i32 v = 0; v < n; ++v)
    if (state[std::size_t(v)] == coarse && g.inside[std::size_t(v)]) out.push_back(v);
  return out;
}

/// Of each of my points, whether the first pass in its block keeps it as coarse.
Buffer<i32> first_passes(Dependences const& g, Layout const& layout, comm::Cancellation& cancel) {
  auto const& comm = layout.comm();
  auto const n = layout.global_size();
  auto offsets = layout.offsets();  // of whole blocks: that of the rank of its first point
  for (auto& o : offsets) o = std::min((o + hmis_block - 1) / hmis_block * hmis_block, n);
  auto const blocks = Layout::from_offsets(comm, std::move(offsets));
  la::GhostRows<float> far;
  if (comm.size() > 1) {
    ColumnMap wanted;
    for (auto i = std::max(layout.end(), blocks.begin()); i < blocks.end(); ++i) wanted.ghosts.push_back(i);
    far = la::ghost_rows<float>(layout, wanted, [&](i32 i, std::vector<i64>& columns, std::vector<float>& values) {
      for (auto p = g.ptr[i]; p < g.ptr[i + 1]; ++p) columns.push_back(g.map.global(g.col[p])), values.push_back(g.val[p]);
    });
  }
  std::vector<i64> far_ptr{0};
  for (auto const l : far.lengths) far_ptr.push_back(far_ptr.back() + l);
  Buffer<i32> kept(blocks.local_size(), 0);
  auto const count = (blocks.local_size() + hmis_block - 1) / hmis_block;
  device::Executor executor;
  device::parallel_ranges(
      executor, count,
      [&](i64 first, i64 last) {
        for (auto b = first; b < last; ++b) {
          if (cancel.requested()) return;
          Block block;
          block.begin = blocks.begin() + b * hmis_block;
          auto const end = std::min(block.begin + hmis_block, blocks.end());
          for (auto i = block.begin; i < end; ++i) {
            if (i < layout.end()) {
              auto const r = i - layout.begin();
              block.add_row(
                  [&](auto const& f) {
                    for (auto p = g.ptr[r]; p < g.ptr[r + 1]; ++p) f(g.map.global(g.col[p]), g.val[p]);
                  },
                  end);
            } else {
              auto const r = std::size_t(i - std::max(layout.end(), blocks.begin()));
              block.add_row(
                  [&](auto const& f) {
                    for (auto p = std::size_t(far_ptr[r]); p < std::size_t(far_ptr[r + 1]); ++p) f(far.columns[p], far.values[p]);
                  },
                  end);
            }
          }
          for (auto const v : first_pass(block)) kept[b * hmis_block + v] = 1;
        }
      },
      1);
  cancel.throw_if_requested();
  if (comm.size() == 1) return kept;
  std::vector<i64> mine(std::size_t(layout.local_size()));
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = layout.begin() + i64(i);
  Buffer<i32> out(layout.local_size());
  comm::StarForest::from_layout(blocks, mine).bcast(kept.data(), out.data());
  return out;
}

}  // namespace

Dependences both_ways(Rows<float> const& depends, Layout const& layout, comm::Cancellation& cancel) {
  auto const needed = la::transpose(depends, layout, layout, false, cancel);
  return la::sparse_sum(1.0f, depends, 2.0f, needed, layout, cancel);
}

Buffer<u8> coarse_points(Dependences const& g, Layout const& layout, CoarseningType type, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGCoarsePoints");
  profile::Scope const scope(event);
  i32 const n = g.count, below = g.map.below;
  auto const* const ptr = g.ptr.data();
  auto const* const col = g.col.data();
  auto const* const way = g.val.data();
  Halo const halo(layout, g.map);
  Buffer<i64> weights(g.map.size());
  auto* const w = weights.data();
  cancellable_for(cancel, n, [&](i64 v) {
    i64 dependents = 0;
    for (auto p = ptr[v]; p < ptr[v + 1]; ++p) dependents += is_needed(way[p]);
    w[v + below] = dependents > 0 ? measure(dependents, g.map.begin + v) : is_fine;
  });
  if (type == CoarseningType::hmis) {
    auto const kept = first_passes(g, layout, cancel);
    for (i32 v = 0; v < n; ++v)
      if (kept[v]) w[v + below] = is_coarse;
  }
  halo.update(w);
  std::vector<i32> undecided;
  for (i32 v = 0; v < n; ++v)
    if (w[v + below] != is_fine && w[v + below] != is_coarse) undecided.push_back(v);
  std::vector<u8> found(undecided.size());
  // what each undecided point becomes by the weights of its neighbours; written when all are found
  auto const decide = [&](auto const& test, i64 becomes) {
    cancellable_for(cancel, i64(undecided.size()), [&](i64 u) { found[std::size_t(u)] = test(undecided[std::size_t(u)]); });
    std::size_t left = 0;
    for (std::size_t u = 0; u < undecided.size(); ++u) {
      if (found[u]) w[undecided[u] + below] = becomes;
      else undecided[left++] = undecided[u];
    }
    undecided.resize(left);
    halo.update(w);
  };
  auto const depends_on_coarse = [&](i32 v) {
    for (auto p = ptr[v]; p < ptr[v + 1]; ++p)
      if (w[col[p]] == is_coarse && depends(way[p])) return true;
    return false;
  };
  auto const is_largest = [&](i32 v) {
    i32 const l = v + below;
    for (auto p = ptr[v]; p < ptr[v + 1]; ++p) {
      i32 const c = col[p];
      if (w[c] != is_coarse && (w[c] > w[l] || (w[c] == w[l] && c > l))) return false;
    }
    return true;
  };
  for (;;) {
    decide(depends_on_coarse, is_fine);
    if (layout.comm().sum(i64(undecided.size())) == 0) break;
    decide(is_largest, is_coarse);
  }
  Buffer<u8> out(n);
  for (i32 v = 0; v < n; ++v) out[v] = w[v + below] == is_coarse;
  return out;
}

}  // namespace asterism::precond::amg
