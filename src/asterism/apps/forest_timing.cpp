#include "asterism/apps/forest_timing.hpp"

#include <algorithm>

#include "asterism/base/profile.hpp"
#include "asterism/comm/node/arena.hpp"

namespace asterism::apps {

namespace {

/// Zeros, in memory that neighbours read in place if wanted.
class Values {
 public:
  Values(std::int64_t n, bool shared) : n_(n), arena_(shared ? comm::node::Arena::mine() : nullptr), own_(arena_ ? 0 : std::size_t(n)) {
    if (!arena_) return;
    block_ = arena_->allocate(bytes());
    std::fill_n(data(), n, 0.0);
  }
  ~Values() {
    if (arena_) arena_->release(block_, bytes());
  }
  Values(Values const&) = delete;
  double* data() { return arena_ ? reinterpret_cast<double*>(arena_->at(block_)) : own_.data(); }

 private:
  std::int64_t bytes() const { return std::max<std::int64_t>(1, n_ * std::int64_t(sizeof(double))); }
  std::int64_t n_;
  comm::node::Arena* arena_;
  std::vector<double> own_;
  std::uint64_t block_ = 0;
};

}  // namespace

double forest_pingpong(comm::StarForest const& forest, std::int64_t k, comm::ReduceOp op, bool shared, int repeats) {
  Values root(forest.roots() * k, shared), leaf(forest.leaf_space() * k, shared);
  comm::Operation const operation(op);
  forest.comm().barrier();
  double const start = profile::now();
  for (int i = 0; i < repeats; ++i) {
    forest.bcast(root.data(), leaf.data(), k);
    forest.reduce(leaf.data(), root.data(), operation, k);
  }
  return (profile::now() - start) / (2.0 * repeats);
}

double forest_exchange(comm::StarForest const& forest, std::int64_t k, comm::ReduceOp op, bool renew, int repeats) {
  std::vector<double> root(std::size_t(forest.roots() * k), 1.0), leaf(std::size_t(forest.leaf_space() * k), 0.0);
  forest.comm().barrier();
  double const start = profile::now();
  comm::Operation const operation(op);
  double volatile one = 1.0;
  for (int i = 0; i < repeats; ++i) {
    if (renew)
      for (auto& r : root) r *= one;
    forest.bcast(root.data(), leaf.data(), k, operation);
  }
  return (profile::now() - start) / repeats;
}

namespace {

/// Vectors of a star forest on its queue.
struct QueuedValues {
  device::Array root, leaf;
  QueuedValues(comm::QueuedForest const& f, device::Queue const& queue, std::int64_t k)
      : root(of(f.forest().roots(), k, 1.0)), leaf(of(f.forest().leaf_space(), k, 0.0)) {
    f.bcast_begin(queue, Dtype::float64, k, root, leaf, comm::ReduceOp::sum).end();  // everything is there, and where it is used
    f.wait(queue);
    f.forest().comm().barrier();
  }
  static device::Array of(std::int64_t rows, std::int64_t k, double value) {
    return device::Array::of(std::span<double const>(std::vector<double>(std::size_t(rows * k), value)));
  }
};

}  // namespace

double queued_pingpong(comm::QueuedForest const& forest, device::Queue const& queue, std::int64_t k, comm::ReduceOp op, int repeats) {
  QueuedValues const v(forest, queue, k);
  double const start = profile::now();
  for (int i = 0; i < repeats; ++i) {
    forest.bcast_begin(queue, Dtype::float64, k, v.root, v.leaf).end();
    forest.reduce_begin(queue, Dtype::float64, k, v.leaf, v.root, op).end();
  }
  forest.wait(queue);
  return (profile::now() - start) / (2.0 * repeats);
}

double queued_exchange(comm::QueuedForest const& forest, device::Queue const& queue, std::int64_t k, comm::ReduceOp op, int repeats) {
  QueuedValues const v(forest, queue, k);
  double const start = profile::now();
  for (int i = 0; i < repeats; ++i) forest.bcast_begin(queue, Dtype::float64, k, v.root, v.leaf, op).end();
  forest.wait(queue);
  return (profile::now() - start) / repeats;
}

double raw_pingpong(comm::Communicator const& comm, std::int64_t bytes, int repeats) {
  ASTERISM_REQUIRE(comm.size() >= 2, comm, "pingpong: {} rank(s); 2 are needed.", comm.size());
  std::vector<std::byte> data(static_cast<std::size_t>(bytes));
  comm.barrier();
  double const start = profile::now();
  comm::check_mpi(comm::mpi()->pingpong(comm.handle(), data.data(), bytes, repeats), "MPI_Send or MPI_Recv");
  return (profile::now() - start) / (2.0 * repeats);
}

double forest_setup(comm::Communicator const& comm, std::int64_t roots, std::optional<std::vector<std::int64_t>> const& leaves,
                    std::vector<comm::RemoteRoot> const& remote, int repeats) {
  comm.barrier();
  double const start = profile::now();
  for (int i = 0; i < repeats; ++i) comm::StarForest const forest(comm, roots, leaves, remote);
  return (profile::now() - start) / repeats;
}

namespace {

/// Own points by their place in the whole grid, ghost points 0.
std::vector<double> own_values(grid::Grid const& grid) {
  auto const around = grid.ghosted(), own = grid.owned();
  auto const size = around.sizes();
  std::vector<double> data(std::size_t(around.points()), 0.0);
  for (auto i = own.low[0]; i < own.high[0]; ++i)
    for (auto j = own.low[1]; j < own.high[1]; ++j)
      for (auto k = own.low[2]; k < own.high[2]; ++k)
        data[std::size_t(((i - around.low[0]) * size[1] + j - around.low[1]) * size[2] + k - around.low[2])] =
            1.0 + double((i * grid.shape()[1] + j) * grid.shape()[2] + k);
  return data;
}

}  // namespace

/// Writes the own points that neighbours get, as a computation does between two exchanges: what others have read is then
/// theirs no more, and what they read next is in the writer's caches.
class Renewal {
 public:
  Renewal(grid::Grid const& grid, double* data) : grid_(grid), data_(data) {}
  void operator()() const {
    auto const around = grid_.ghosted(), own = grid_.owned();
    auto const size = around.sizes();
    auto const ranks = grid_.ranks();
    double volatile one = 1.0;
    for (std::size_t d = 0; d < 3; ++d)
      for (bool const high : {false, true}) {
        if (ranks[d] == 1) continue;
        auto layer = own;
        if (high) layer.low[d] = std::max(own.low[d], own.high[d] - grid_.width());
        else layer.high[d] = std::min(own.high[d], own.low[d] + grid_.width());
        for (auto i = layer.low[0]; i < layer.high[0]; ++i)
          for (auto j = layer.low[1]; j < layer.high[1]; ++j) {
            auto* const row = data_ + ((i - around.low[0]) * size[1] + j - around.low[1]) * size[2] - around.low[2];
            for (auto k = layer.low[2]; k < layer.high[2]; ++k) row[k] *= one;
          }
      }
  }
  static void call(void* renewal) { (*static_cast<Renewal const*>(renewal))(); }

 private:
  grid::Grid const& grid_;
  double* data_;
};

double grid_halo(grid::Grid const& grid, bool shared, int repeats) {
  auto const start_values = own_values(grid);
  Values values(std::int64_t(start_values.size()), shared);
  auto* const data = values.data();
  std::copy(start_values.begin(), start_values.end(), data);
  Renewal const renew(grid, data);
  double seconds = 0;
  for (int i = 0; i < repeats; ++i) {
    renew();
    grid.layout().comm().barrier();
    double const start = profile::now();
    grid.ghosts().bcast(data, data);
    seconds += (profile::now() - start) / repeats;
  }
  return seconds;
}

Overlap grid_overlap(grid::Grid const& grid, int repeats) {
  auto values = own_values(grid);
  auto* const data = values.data();
  auto const& comm = grid.layout().comm();
  std::vector<double> a(512, 1.0), b(512, 2.0);  // leaves the caches to the exchange
  std::int64_t rounds = 1;
  auto const work = [&]() __attribute__((noinline)) {
    for (std::int64_t r = 0; r < rounds; ++r)
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.5 * a[i] + b[i];
  };
  auto const timed = [&](auto const& f) {
    comm.barrier();
    double const start = profile::now();
    for (int i = 0; i < repeats; ++i) f();
    return comm.max((profile::now() - start) / repeats);
  };
  Overlap o;
  o.exchange = timed([&] { grid.ghosts().bcast(data, data); });
  rounds = std::max<std::int64_t>(1, std::int64_t(o.exchange / std::max(timed(work), 1e-9)));  // as long as the exchange
  o.work = timed(work);
  o.both = timed([&] {
    auto flight = grid.ghosts().bcast_begin(data, data);
    work();
    flight.end();
  });
  ASTERISM_ASSERT(a[0] > 0);
  return o;
}

double raw_halo(grid::Grid const& grid, bool packed, int repeats) {
  auto const& comm = grid.layout().comm();
  auto const around = grid.ghosted(), own = grid.owned();
  auto const size = around.sizes();
  auto const p = grid.ranks();
  std::array<int, 3> const me{comm.rank() / (p[1] * p[2]), comm.rank() / p[2] % p[1], comm.rank() % p[2]};
  std::vector<comm::MpiApi::HaloPart> parts;
  for (int a = -1; a <= 1; ++a)
    for (int b = -1; b <= 1; ++b)
      for (int c = -1; c <= 1; ++c) {
        std::array<int, 3> const way{a, b, c};
        int const turns = (a != 0) + (b != 0) + (c != 0);
        if (turns == 0 || (turns > 1 && grid.stencil() == grid::Stencil::star)) continue;
        comm::MpiApi::HaloPart part{};
        bool there = true;
        for (std::size_t d = 0; d < 3; ++d) {
          int const other = me[d] + way[d];
          there = there && other >= 0 && other < p[d];
          part.rank = part.rank * p[d] + other;
          auto const own_size = int(own.high[d] - own.low[d]), w = int(grid.width()), first = int(own.low[d] - around.low[d]);
          part.sizes[d] = way[d] == 0 ? own_size : w;
          part.send_low[d] = way[d] <= 0 ? first : first + own_size - w;
          part.receive_low[d] = way[d] < 0 ? first - w : way[d] == 0 ? first : first + own_size;
          ASTERISM_REQUIRE(own_size >= w, unsupported, "raw_halo: {} points are fewer than the {} ghost points.", own_size, w);
        }
        if (there) parts.push_back(part);
      }
  auto data = own_values(grid), wanted = data;
  int const sizes[3] = {int(size[0]), int(size[1]), int(size[2])};
  double seconds = 0;
  Renewal renew(grid, data.data());
  comm::check_mpi(comm::mpi()->halo(comm.handle(), data.data(), sizes, parts.data(), int(parts.size()), packed, repeats, Renewal::call,
                                    &renew, &seconds),
                  "MPI_Isend or MPI_Irecv");
  grid.ghosts().bcast(wanted.data(), wanted.data());
  ASTERISM_ASSERT(data == wanted);
  return seconds;
}

}  // namespace asterism::apps
