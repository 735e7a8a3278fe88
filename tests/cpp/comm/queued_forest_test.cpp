#include "asterism/comm/forest/queued_forest.hpp"

#include <gtest/gtest.h>

#include <random>

#include "asterism/base/error.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/forest/gpu_aware.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "harness/gpu.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::comm;
using device::Array;
using device::Queue;

namespace {

/// Random edges; some ranks have no roots, or no leaves.
StarForest random_forest(unsigned seed, TransportChoice transport) {
  auto const& c = world();
  std::mt19937 every(seed), mine(seed * 97 + unsigned(c.rank()));
  std::vector<std::int64_t> roots;
  for (int r = 0; r < c.size(); ++r) roots.push_back(every() % 4 == 0 ? 0 : std::int64_t(every() % 30));
  std::vector<std::int64_t> leaves;
  std::vector<RemoteRoot> remote;
  std::int64_t const space = std::int64_t(mine() % 50);
  for (std::int64_t l = space; l-- > 0;) {
    int const owner = int(mine() % unsigned(c.size()));
    if (roots[std::size_t(owner)] == 0 || mine() % 5 == 0) continue;
    leaves.push_back(l);
    remote.push_back({owner, std::int64_t(mine() % std::uint64_t(roots[std::size_t(owner)]))});
  }
  return {c, roots[std::size_t(c.rank())], leaves, remote, space, transport};
}

template <class T>
std::vector<T> values(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (auto& x : v) x = T(double(random() % 1000) / 7);
  return v;
}
template <class T>
Array array(std::vector<T> const& v) {
  return Array::of(std::span<T const>(v));
}
template <class T>
std::vector<T> host_values(Array const& a) {
  a.settle(device::Access::read, "test");
  return {a.as<T>(), a.as<T>() + a.bytes() / sizeof(T)};
}

/// Everything once, several under way, against the forest itself.
template <class T>
void compare(Queue const& queue, unsigned seed, TransportChoice transport, bool for_any_queue = false) {
  auto const sf = random_forest(seed, transport);
  auto const f = for_any_queue ? QueuedForest(sf) : QueuedForest(sf, queue);
  std::int64_t const k = 1 + seed % 3;
  auto const d = dtype_v<T>;
  auto root = values<T>(sf.roots() * k, seed), leaf = values<T>(sf.leaf_space() * k, seed + 1), update = values<T>(sf.leaf_space() * k, 1);
  Array const x = array(root), y = array(leaf), z = array(leaf), u = array(update);
  for (auto const op : {ReduceOp::replace, ReduceOp::sum, ReduceOp::max}) {
    auto other = leaf;
    auto one = f.bcast_begin(queue, d, k, x, y, op);
    auto two = f.bcast_begin(queue, d, k, x, z, ReduceOp::sum);
    one.end(), two.end();
    sf.bcast(root.data(), other.data(), k, ReduceOp::sum);
    sf.bcast(root.data(), leaf.data(), k, op);
    ASSERT_EQ(host_values<T>(z), other) << "seed " << seed;
    f.fetch_and_op_begin(queue, d, k, x, y, u, op).end();
    if (seed % 2) f.reduce_begin(queue, d, k, z, x, op).end();
    else f.reduce(queue, d, k, z, x, op);
    sf.fetch_and_op(root.data(), leaf.data(), update.data(), op, k);
    sf.reduce(other.data(), root.data(), op, k);
    ASSERT_EQ(host_values<T>(x), root) << "seed " << seed << " op " << int(op);
    ASSERT_EQ(host_values<T>(y), leaf) << "seed " << seed << " op " << int(op);
    ASSERT_EQ(host_values<T>(u), update) << "seed " << seed << " op " << int(op);
    z.settle(device::Access::update, "test");
    std::copy(leaf.begin(), leaf.end(), z.as<T>());
  }
  f.wait(queue);
}

}  // namespace

TEST(QueuedForest, DoesWhatTheForestDoes) {
  for (unsigned seed = 0; seed < 12; ++seed)
    for (auto const* const name : {"inline", "thread", "strict", "shuffle", "cuda"}) {
      SCOPED_TRACE(name);
      auto const queue = Queue::from_name(name, seed);
      auto const way = seed % 3 == 0 ? TransportChoice::p2p : TransportChoice::automatic;
      compare<double>(queue, seed, way);
      compare<float>(queue, seed + 100, way);
      compare<double>(queue, seed + 300, way, true);
    }
}

TEST(QueuedForest, BetweenGpusByWindows) {
  if (world().size() == 1) return;
  auto const queue = Queue::gpu("cuda");
  for (unsigned seed = 200; seed < 220; ++seed) compare<double>(queue, seed, TransportChoice::ipc);
}

TEST(QueuedForest, AFlightThatIsDroppedIsEnded) {
  auto const& c = world();
  StarForest const sf(c, 1, std::nullopt, {{(c.rank() + 1) % c.size(), 0}});
  for (auto const* const name : {"thread", "cuda"}) {
    auto const queue = Queue::from_name(name);
    QueuedForest const f(sf, queue);
    auto const x = array(std::vector<double>{10.0 + c.rank()}), y = array(std::vector<double>{0});
    {
      auto const dropped = f.bcast_begin(queue, Dtype::float64, 1, x, y, ReduceOp::replace);
    }
    EXPECT_EQ(host_values<double>(y)[0], 10.0 + (c.rank() + 1) % c.size());
  }
}

// Before and after MPI was found to take the GPU's memory, or not.
TEST(QueuedForest, SomeRanksOnGpusOthersNot) {
  bool const on_gpu = world().rank() % 2 == 0;
  for (bool const known : {false, true}) {
    if (known) {
      device::gpu::open("cuda");
      set_gpu_aware(GpuAware::yes);
      try {
        EXPECT_TRUE(gpu_awareness(world()).used || world().size() == 1);
      } catch (Error const& e) {  // this MPI takes no GPU memory
        EXPECT_FALSE(on_the_emulated_gpu()) << e.what();
        set_gpu_aware(GpuAware::automatic);
      }
    }
    for (unsigned seed = 400; seed < 412; ++seed)
      for (auto const* const host : {"inline", "thread"})
        compare<double>(Queue::from_name(on_gpu ? "cuda" : host), seed, TransportChoice::automatic, true);
  }
  set_gpu_aware(GpuAware::automatic);
  // all count the same calls: else a rank that is through and ends its program would seem to miss some
  EXPECT_TRUE(world().same_on_all_ranks(std::int64_t(world().failures().serial / 2)));
}
