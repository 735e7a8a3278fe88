#include "asterism/apps/sweep_timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/apps/cusparse_triangle.hpp"
#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/channels/channels.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::apps {
namespace {

using direct::Supernodes;
using direct::Sweep;

/// Of a column, before they are scaled.
double weight(std::int32_t column) { return double(1 + column % 7); }

/// `count` supernodes of that width, each with one block of all rows of the next below it.
std::shared_ptr<direct::BlockPattern const> chain(std::int32_t count, std::int32_t width) {
  auto nodes = std::make_shared<Supernodes>();
  nodes->starts = {0};
  nodes->row_offsets = {0};
  for (std::int32_t s = 0; s < count; ++s) {
    nodes->starts.push_back((s + 1) * width);
    nodes->parent.push_back(s + 1 < count ? s + 1 : -1);
    if (s + 1 < count)
      for (std::int32_t i = 0; i < width; ++i) nodes->row_indices.push_back((s + 1) * width + i);
    nodes->row_offsets.push_back(std::int64_t(nodes->row_indices.size()));
  }
  return std::make_shared<direct::BlockPattern const>(std::move(nodes));
}

}  // namespace

TimedTriangle::TimedTriangle(comm::Communicator const& comm, std::shared_ptr<direct::BlockPattern const> pattern,
                             direct::ProcessGrid const& grid, Dtype dtype, std::string const& gpu, direct::TriangularOptions const& options)
    : comm_(comm), pattern_(std::move(pattern)), dtype_(dtype) {
  auto const& nodes = pattern_->nodes();
  auto& [rows, columns] = sums_;
  rows.assign(std::size_t(nodes.starts.back()), 0.0);
  columns = rows;
  for (std::int32_t k = 0; k < nodes.count(); ++k) {
    double before = 0;
    auto const end = nodes.starts[std::size_t(k) + 1];
    for (auto j = nodes.starts[std::size_t(k)]; j < end; ++j) {
      rows[std::size_t(j)] += before;
      before += weight(j);
      columns[std::size_t(j)] = weight(j) * double(end - 1 - j + nodes.below(k));
    }
    for (auto const i : nodes.rows(k)) rows[std::size_t(i)] += before;
  }
  double largest = 1;
  for (auto const& sums : sums_)
    for (auto const s : sums) largest = std::max(largest, s);
  double const scale = scale_ = 0.5 / largest;  // the triangle is diagonally dominant, by rows and by columns
  for (auto& sums : sums_)
    for (auto& s : sums) s *= scale;

  auto triangle = std::make_shared<direct::LocalTriangle>(pattern_, grid, comm_.rank(), dtype);
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> panel;
    for (std::int32_t k = 0; k < nodes.count(); ++k) {
      auto const rows_of_panel = std::size_t(nodes.width(k) + nodes.below(k));
      panel.clear();
      for (std::int32_t j = 0; j < nodes.width(k); ++j)
        panel.insert(panel.end(), rows_of_panel, T(real_t<T>(scale * weight(nodes.starts[std::size_t(k)] + j))));
      triangle->take(k, panel.data(), std::int64_t(rows_of_panel), true);
    }
  });
  std::vector<std::shared_ptr<direct::LocalTriangle const>> const triangles{triangle};
  if (gpu.empty()) {
    solver_ = std::make_unique<direct::TriangularSolver>(comm_, triangles, options);
    return;
  }
  comm::agree(comm_, [&] { device::gpu::open(gpu); });
  on_gpu_ = std::make_unique<direct::GpuTriangularSolver>(comm_, triangles);
}

template <class T>
void TimedTriangle::fill(T* own, Sweep sweep, std::int64_t columns) const {
  auto const& sums = sums_[std::size_t(sweep)];
  for (auto const row : owned_rows()) own = std::fill_n(own, columns, T(real_t<T>(1 + sums[std::size_t(row)])));
}

TimedTriangle::Times TimedTriangle::time(Sweep sweep, std::int64_t columns, int repeats) {
  return with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Times out;
    auto const rows = std::int64_t(owned_rows().size());
    device::Array const x(std::size_t(rows * columns) * sizeof(T));
    auto const error = [&] {
      x.settle(device::Access::read, "timing of triangular solves");
      double most = 0;
      for (std::int64_t i = 0; i < rows * columns; ++i) most = std::max(most, double(magnitude(x.as<T>()[i] - T(real_t<T>(1)))));
      return comm_.max(most);
    };
    if (on_gpu_) {
      fill(x.as<T>(), sweep, columns);
      on_gpu_->solve(0, sweep, columns, x);
      out.error = error();
      for (int i = 0; i < repeats; ++i) {  // of what is there: copies do not count
        on_gpu_->wait();
        comm_.barrier();
        double const start = profile::now();
        on_gpu_->solve(0, sweep, columns, x);
        on_gpu_->wait();
        out.seconds.push_back(comm_.max(profile::now() - start));
      }
      return out;
    }
    for (int i = 0; i <= repeats; ++i) {
      fill(x.as<T>(), sweep, columns);
      solver_->log_messages(i == 0);
      comm_.barrier();
      double const start = profile::now();
      solver_->solve(0, sweep, columns, {x.as<std::byte>(), x.bytes()});
      double const seconds = profile::now() - start;
      if (i == 0) out.sent = comm_.sum(std::int64_t(solver_->log().size()));
      else out.seconds.push_back(comm_.max(seconds));
    }
    out.error = error();
    return out;
  });
}

TimedTriangle::Times TimedTriangle::time_cusparse(Sweep sweep, int repeats) const {
  auto const& nodes = pattern_->nodes();
  auto const n = std::size_t(nodes.starts.back());
  auto const each = [&](auto const& f) {  // below the diagonal, by columns
    for (std::int32_t k = 0; k < nodes.count(); ++k) {
      auto const end = nodes.starts[std::size_t(k) + 1];
      for (auto j = nodes.starts[std::size_t(k)]; j < end; ++j) {
        for (auto i = j + 1; i < end; ++i) f(i, j);
        for (auto const i : nodes.rows(k)) f(i, j);
      }
    }
  };
  std::vector<std::int64_t> counts(n + 1, 0);
  each([&](std::int32_t i, std::int32_t) { ++counts[std::size_t(i) + 1]; });
  for (std::size_t i = 0; i < n; ++i) counts[i + 1] += counts[i];
  ASTERISM_REQUIRE(counts[n] <= std::numeric_limits<std::int32_t>::max(), unsupported,
                   "cuSPARSE's SpSV: {} entries; at most 2^31 have 32-bit offsets.", counts[n]);
  std::vector<std::int32_t> const offsets(counts.begin(), counts.end());
  std::vector<std::int32_t> columns(static_cast<std::size_t>(counts[n]));
  std::vector<double> values(columns.size());
  each([&](std::int32_t i, std::int32_t j) {
    auto const at = std::size_t(counts[std::size_t(i)]++);
    columns[at] = j;
    values[at] = scale_ * weight(j);
  });
  CusparseTriangle triangle(offsets, columns, values, dtype_, sweep == Sweep::backward);
  std::vector<double> b, x;
  for (auto const s : sums_[std::size_t(sweep)]) b.push_back(1 + s);
  Times out;
  out.seconds = triangle.time(b, repeats, x);
  for (auto const v : x) out.error = std::max(out.error, std::abs(v - 1));
  return out;
}

SweepRates sweep_rates(comm::Communicator const& comm) {
  auto const self = comm::Communicator();
  auto const best = [&](std::int32_t count, std::int32_t width, int repeats) {
    TimedTriangle triangle(self, chain(count, width), {}, Dtype::float64);
    comm.barrier();  // all ranks at once
    auto const times = triangle.time(Sweep::forward, 1, repeats).seconds;
    return comm.max(*std::min_element(times.begin(), times.end()));
  };
  constexpr std::int32_t many = 20000, few = 120, wide = 256;
  double const of_tasks = best(many, 1, 9) / double(2 * many - 1);
  double const entries = double(few) * wide * (wide + 1) / 2 + double(few - 1) * wide * wide;
  double const of_large = best(few, wide, 5) - double(2 * few - 1) * of_tasks;
  return {of_tasks, 8.0 * entries / of_large};
}

ChannelTimes channel_times(comm::Communicator const& comm, std::int64_t bytes, int repeats, comm::TransportChoice transport) {
  ASTERISM_REQUIRE(comm.size() >= 2, comm, "channels: {} rank(s); 2 are needed.", comm.size());
  auto const me = comm.rank();
  std::vector<comm::Channel> out;
  if (me < 2) out.push_back({1 - me, bytes, 0});
  comm::Channels channels(comm, out, transport);
  std::vector<std::byte> const data(static_cast<std::size_t>(bytes));
  auto const take = [&] { channels.release(channels.wait()); };
  auto const put = [&] { channels.put(1 - me, data); };
  ChannelTimes times;
  for (int turn = 0; turn < 2; ++turn) {  // the first one warms up
    comm.barrier();
    double start = profile::now();
    if (me < 2)
      for (int i = 0; i < repeats; ++i) me == 0 ? (put(), take()) : (take(), put());
    times.one_way = (profile::now() - start) / (2.0 * repeats);
    comm.barrier();
    start = profile::now();
    if (me == 0) {
      for (int i = 0; i < repeats; ++i) put();
      take();
    } else if (me == 1) {
      for (int i = 0; i < repeats; ++i) take();
      put();
    }
    times.each = (profile::now() - start) / repeats;
  }
  return {comm.max(me == 0 ? times.one_way : 0.0), comm.max(me == 0 ? times.each : 0.0)};
}

}  // namespace asterism::apps
