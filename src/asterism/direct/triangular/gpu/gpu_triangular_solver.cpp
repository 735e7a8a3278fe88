#include "asterism/direct/triangular/gpu/gpu_triangular_solver.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/gpu/ipc.kernels.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/direct/lapack.hpp"
#include "asterism/direct/triangular/gpu/device_memory.hpp"
#include "asterism/direct/triangular/gpu/gpu_sweep.kernels.hpp"

namespace asterism::direct {
namespace {

namespace gpu = device::gpu;
using kernel::GpuBlock, kernel::GpuMessage, kernel::GpuPut, kernel::GpuSource, kernel::GpuTarget;

/// A message that a rank waits for, and where its place in that rank's window is.
struct Place {
  int from;
  std::int32_t label, node;  // label: direction and kind; node: after those that are a rank's alone
  std::int64_t slot, flag;   // bytes from the window's start
};
// Products with one x are shared by several blocks of threads: a row by a thread, a column by several.
constexpr std::int64_t most_rows_of_a_share = 512, most_columns_of_a_share = 64;
constexpr std::int64_t few_addends = 8;  // that one lane adds up

std::int32_t label_of(Sweep sweep, MessageKind kind) { return std::int32_t(sweep) * 2 + std::int32_t(kind); }

}  // namespace

class GpuTriangularSolver::Impl {
 public:
  Impl(comm::Communicator const& comm, std::vector<std::shared_ptr<LocalTriangle const>> const& triangles, Outside const& outside)
      : Impl(comm, triangles.at(0)->dtype()) {  // from here on an error ends in ~Impl
    auto const& first = *triangles[0];
    alone_ = first.alone();
    comm::agree(comm, [&] {
      ASTERISM_REQUIRE(first.grid().size() == comm.size() && first.rank() == comm.rank(), internal,
                       "a triangle of {} processes, rank {}, for rank {} of {}.", first.grid().describe(), first.rank(), comm.rank(),
                       comm.size());
      ASTERISM_REQUIRE(comm.size() == 1 || (comm.node() && comm.node()->size() == comm.size()), unsupported,
                       "triangular solve on GPUs: the {} ranks are on several machines; kernels write into memory of GPUs of one machine "
                       "only. Use fewer ranks, or the host.",
                       comm.size());
    });
    for (auto const s : {Sweep::forward, Sweep::backward})
      plans_[std::size_t(s)] = plan_sweep(first.pattern(), first.grid(), comm.rank(), s, outside, alone_);
    auto const& nodes = first.pattern().nodes();
    for (auto const& node : plans_[0].nodes)
      if (node.diagonal)
        for (auto r = nodes.starts[std::size_t(node.id)]; r < nodes.starts[std::size_t(node.id) + 1]; ++r) rows_.push_back(r);
    connect();
    comm::agree(comm, [&] {
      gpu::OnDevice const here;
      for (auto const& t : triangles) {
        values_.push_back(copy_of(*t));
        orders_.push_back(order_of(*t));
      }
      given_up_ = memory_.zeros_of<std::uint32_t>(1);
      right_ = memory_.zeros(rows_.size() * kernel::most_gpu_columns * size_of(dtype_));
      for (auto const s : {Sweep::forward, Sweep::backward}) lay_out(first, s);
      if (!one_rank()) load();
    });
  }

  ~Impl() {
    if (!wait_stream_) return;  // nor a window
    try {
      gpu::OnDevice const here;
      if (end_) gpu::api()->event_free(end_);
      gpu::api()->stream_free(wait_stream_);
      for (auto* const m : mapped_)
        if (m) gpu::api()->unmap_window(m);
      if (window_) gpu::api()->free_window(window_);
    } catch (...) {  // the runtime is gone, at the process's end
    }
  }

  static void submit(std::shared_ptr<Impl> const& self, device::Queue const& queue, std::size_t t, Sweep sweep, std::int64_t columns,
                     device::Array const& x, bool waits) {
    comm::collective(self->comm_, "a triangular solve", [&] {
      ASTERISM_REQUIRE(!self->broken_, value, "triangular solve on a GPU: an earlier solve was given up; make the solver again.");
      auto const bytes = std::size_t(std::int64_t(self->rows_.size()) * columns) * size_of(self->dtype_);
      ASTERISM_REQUIRE(x.bytes() == bytes, shape, "triangular solve: x has {} bytes for {} rows of {} numbers.", x.bytes(),
                       self->rows_.size(), columns);
      auto const order_token = self->comm_.order_token();
      std::vector<device::Intent> intents;
      x.intend(device::Access::update, intents);
      self->turn_.intend(device::Access::update, intents);
      if (!self->one_rank()) intents.push_back({order_token.buffer().get(), device::Access::update, true, device::Memory::host});
      queue.enqueue(std::move(intents), [self, order_token, t, sweep, columns, x](device::Executor& executor) {
        for (std::int64_t first = 0; first < columns; first += kernel::most_gpu_columns)
          self->pass(executor, t, sweep, columns, first, x.as<std::byte>(device::Memory::gpu));
      });
      if (waits && !self->one_rank()) queue.wait("triangular solves on GPUs");
    });
  }

  std::vector<std::int32_t> rows_;
  DeviceMemory memory_;

 private:
  Impl(comm::Communicator const& comm, Dtype dtype) : comm_(comm), dtype_(dtype) {}
  bool one_rank() const { return comm_.size() == 1; }
  std::int64_t slot_bytes(std::int32_t width) const {
    return (std::int64_t(size_of(dtype_)) * width * kernel::most_gpu_columns + 127) / 128 * 128;  // a line is no other slot's
  }

  /// The window for messages, and where those that this rank sends go.
  void connect() {
    if (one_rank()) return;
    std::vector<Place> awaited;
    std::int64_t flags = 0, bytes = 0;
    for (auto const s : {Sweep::forward, Sweep::backward})
      for (auto const& node : plans_[std::size_t(s)].nodes) {
        if (node.source && node.broadcast.parent >= 0)
          awaited.push_back({node.broadcast.parent, label_of(s, MessageKind::broadcast), node.id - alone_, slot_bytes(node.width), 0});
        if (node.target)
          for (int const child : node.reduction.children)
            if (child >= 0) awaited.push_back({child, label_of(s, MessageKind::reduction), node.id - alone_, slot_bytes(node.width), 0});
      }
    bytes = (std::int64_t(awaited.size()) * 8 / 128 + 1) * 128;  // one line where nothing is awaited
    for (auto& p : awaited) {
      p.flag = 8 * flags++;
      bytes += std::exchange(p.slot, bytes);
    }
    std::array<std::byte, gpu::window_name_bytes> name{};
    comm::agree(comm_, [&] {
      gpu::OnDevice const here;
      gpu::check(gpu::api()->stream_new(&wait_stream_), "creating a stream");
      gpu::check(gpu::api()->event_new(&end_), "creating an event");
      gpu::check(gpu::api()->new_window(&window_, std::size_t(bytes)), "allocating a window for other ranks");
      gpu::check(gpu::api()->name_window(window_, name.data()), "naming a window for other ranks");
    });
    auto const names = comm_.all_gather_bytes(name);
    comm::agree(comm_, [&] {
      gpu::OnDevice const here;
      mapped_.assign(std::size_t(comm_.size()), nullptr);
      for (int r = 0; r < comm_.size(); ++r)
        if (r != comm_.rank())
          gpu::check(gpu::api()->map_window(names.data() + std::size_t(r) * name.size(), &mapped_[std::size_t(r)]),
                     "mapping another rank's window");
    });
    std::vector<std::int64_t> counts;
    auto const all = comm_.all_gather_bytes(std::as_bytes(std::span(awaited)), &counts);
    std::size_t at = 0;
    for (int r = 0; r < comm_.size(); ++r)
      for (std::size_t end = at + std::size_t(counts[std::size_t(r)]); at < end; at += sizeof(Place)) {
        Place p;
        std::memcpy(&p, all.data() + at, sizeof p);
        if (r == comm_.rank()) mine_.emplace(std::tuple(p.label, p.node, p.from), p);
        if (p.from != comm_.rank()) continue;
        auto* const there = static_cast<std::byte*>(mapped_[std::size_t(r)]);
        puts_.emplace(std::tuple(p.label, p.node, r), GpuPut{there + p.slot, reinterpret_cast<std::uint64_t*>(there + p.flag)});
      }
  }

  /// All that a solve launches: what CUDA loads while WAIT runs could wait for it.
  void load() {
    device::Executor here;
    here.gpu_stream = wait_stream_;
    with_dtype(dtype_, [&](auto tag) { gpu::form_of (&kernel::load_sweeps<typename decltype(tag)::type>)(here); });
    gpu::form_of (&comm::kernel::await_signal)(here, on_device_[0].plan.waiting, 0);  // it is there
    gpu::check(gpu::api()->launch_error(), "loading the kernels of a triangular solve");
    gpu::wait(wait_stream_);
  }

  /// The triangle's numbers, with the inverses of diagonal blocks in place of these: a product has no order in its rows. A piece at a time.
  std::byte const* copy_of(LocalTriangle const& t) {
    constexpr std::size_t piece = std::size_t(32) << 20;
    auto* const out = static_cast<std::byte*>(memory_.zeros(t.values().size()));
    std::vector<std::byte> staged;
    std::size_t done = 0;
    auto const flush = [&] {
      if (!staged.empty()) gpu::copy_now(out + done, staged.data(), staged.size());
      done += staged.size();
      staged.clear();
    };
    with_dtype(dtype_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::vector<T> inverse;
      for (std::int32_t k = 0; k < t.pattern().count(); ++k) {
        auto const w = t.pattern().nodes().width(k);
        auto const square = t.owns_diagonal(k) ? std::size_t(w) * std::size_t(w) : 0;
        auto const* const first = t.panel(k) - square * sizeof(T);
        auto const bytes = (square + std::size_t(w * t.panel_rows(k))) * sizeof(T);
        if (staged.size() + bytes > piece) flush();
        staged.insert(staged.end(), first, first + bytes);
        if (square == 0) continue;
        inverse.assign(square, T(0));
        for (std::int32_t j = 0; j < w; ++j) inverse[std::size_t(j) * std::size_t(w + 1)] = T(1);
        lapack::trsm('L', 'L', 'N', 'N', w, w, reinterpret_cast<T const*>(first), w, inverse.data(), w);
        std::memcpy(staged.data() + staged.size() - bytes, inverse.data(), square * sizeof(T));
      }
    });
    flush();
    ASTERISM_ASSERT(done == t.values().size());
    return out;
  }

  std::int32_t const* order_of(LocalTriangle const& t) {
    std::vector<std::int32_t> out;
    for (auto const& node : plans_[0].nodes)
      if (node.diagonal) {
        auto const* const order = t.order(node.id);
        if (!order) return nullptr;
        out.insert(out.end(), order, order + node.width);
      }
    return memory_.copy_of(out);
  }

  /// The tables of one direction.
  void lay_out(LocalTriangle const& triangle, Sweep sweep) {
    auto const& plan = plans_[std::size_t(sweep)];
    auto const& pattern = triangle.pattern();
    bool const backward = sweep == Sweep::backward;
    auto const size = std::int64_t(size_of(dtype_));
    auto const* const base = triangle.values().data();
    std::vector<GpuSource> sources;
    std::vector<GpuTarget> targets;
    std::vector<GpuBlock> blocks;
    std::vector<std::int32_t> block_of, rows, target_at(plan.nodes.size(), -1);
    std::vector<std::uint32_t> left;
    std::vector<std::int64_t> part_of(std::size_t(pattern.blocks()), -1), own(plan.nodes.size(), 0);
    std::vector<GpuMessage> messages[2];
    std::int64_t products = 0, sums = 0, x = 0;

    auto const put = [&](MessageKind kind, std::int32_t node, int rank) {
      return rank >= 0 ? puts_.at({label_of(sweep, kind), node - alone_, rank}) : GpuPut{};
    };
    auto const await = [&](MessageKind kind, std::int32_t node, int rank, std::size_t place) {
      auto const& p = mine_.at({label_of(sweep, kind), node - alone_, rank});
      messages[std::size_t(kind)].push_back({p.flag / 8, std::int32_t(place)});
      return p.slot;
    };
    for (std::size_t p = 0; p < plan.nodes.size(); ++p)
      if (plan.nodes[p].diagonal) own[p] = std::exchange(x, x + plan.nodes[p].width);

    std::vector<std::size_t> order(plan.nodes.size());
    for (std::size_t p = 0; p < order.size(); ++p) order[p] = backward ? order.size() - 1 - p : p;
    for (auto const p : order) {
      auto const& node = plan.nodes[p];
      auto const contributions = node.blocks + node.reduction.child_count();
      if (!node.target || contributions == 0) continue;
      target_at[p] = std::int32_t(targets.size());
      GpuTarget t{node.width, 1, std::uint32_t(contributions), sums, {-1, -1}, put(MessageKind::reduction, node.id, node.reduction.parent)};
      for (std::size_t c = 0; c < 2; ++c)
        if (auto const child = node.reduction.children[c]; child >= 0)
          t.children[c] = await(MessageKind::reduction, node.id, child, targets.size());
      sums += node.width;
      left.push_back(t.contributions);
      targets.push_back(t);
    }
    for (auto const p : order) {
      auto const& node = plan.nodes[p];
      if (!node.diagonal && !node.source) continue;
      GpuSource s{};
      s.width = node.width;
      s.target = node.diagonal ? target_at[p] : -1;
      s.diagonal = node.diagonal ? (triangle.diagonal(node.id) - base) / size : -1;
      s.comes = !node.diagonal;
      s.x = node.diagonal ? own[p] : await(MessageKind::broadcast, node.id, node.broadcast.parent, sources.size());
      s.part = products;
      s.block = std::int32_t(blocks.size());
      for (std::size_t c = 0; c < 2; ++c) s.children[c] = put(MessageKind::broadcast, node.id, node.broadcast.children[c]);
      auto const first = sources.size();
      auto const end_share = [&] {
        s.parts = products - s.part;
        s.blocks = std::int32_t(blocks.size()) - s.block;
        sources.push_back(s);
      };
      for (auto u = node.first_using; u < node.last_using; ++u) {
        auto const index = plan.using_x[std::size_t(u)];
        auto const& b = pattern.block(index);
        auto const width = pattern.nodes().width(b.column);
        auto const parts = backward ? width : b.count;
        if (products > s.part && products - s.part + parts > (backward ? most_columns_of_a_share : most_rows_of_a_share)) {
          end_share();
          s.target = -1;
          s.diagonal = -1;
          s.part = products;
          s.block = std::int32_t(blocks.size());
          s.children[0] = s.children[1] = {};
        }
        auto const list = triangle.rows(index);
        part_of[std::size_t(index)] = products;
        auto const target = target_at[std::size_t(plan.place[std::size_t(backward ? b.column : b.row)])];
        blocks.push_back({(triangle.block(index) - base) / size, triangle.panel_rows(b.column), products, std::int64_t(rows.size()),
                          b.count, width, target});
        rows.insert(rows.end(), list.begin(), list.end());
        block_of.insert(block_of.end(), std::size_t(parts), std::int32_t(blocks.size()) - 1);
        products += parts;
      }
      end_share();
      sources[first].helpers = std::int32_t(sources.size() - first) - 1;
    }
    ASTERISM_REQUIRE(products <= std::numeric_limits<std::int32_t>::max(), unsupported,
                     "triangular solve on a GPU: {} rows of products on this rank; at most 2^31 are. Use more ranks.", products);

    // of each row of sums, its products in the order of the solve
    std::vector<std::int64_t> offsets(std::size_t(sums) + 1, 0);
    auto const each_addend = [&](auto const& f) {
      for (std::size_t p = 0; p < plan.nodes.size(); ++p) {
        auto const& node = plan.nodes[p];
        if (target_at[p] < 0) continue;
        auto const first = targets[std::size_t(target_at[p])].sum;
        for (auto a = node.first_adding; a < node.last_adding; ++a) {
          auto const index = plan.adding[std::size_t(a)];
          auto const part = part_of[std::size_t(index)];
          auto const list = triangle.rows(index);
          if (backward)
            for (std::int32_t j = 0; j < node.width; ++j) f(first + j, part + j);
          else
            for (std::size_t r = 0; r < list.size(); ++r) f(first + list[r], part + std::int64_t(r));
        }
      }
    };
    each_addend([&](std::int64_t row, std::int64_t) { ++offsets[std::size_t(row) + 1]; });
    for (std::size_t i = 0; i < std::size_t(sums); ++i) offsets[i + 1] += offsets[i];
    for (auto& t : targets) {
      if (t.children[0] >= 0 || t.children[1] >= 0) continue;  // one thread of WAIT may add it up: the same order
      auto const addends = (offsets[std::size_t(t.sum + t.width)] - offsets[std::size_t(t.sum)]) / t.width;
      while (t.lanes < 32 && t.lanes * few_addends < addends) t.lanes *= 2;
    }
    std::vector<std::int32_t> addends;
    addends.resize(std::size_t(products));
    auto next = offsets;
    each_addend([&](std::int64_t row, std::int64_t part) { addends[std::size_t(next[std::size_t(row)]++)] = std::int32_t(part); });

    auto& d = on_device_[std::size_t(sweep)];
    auto& m = memory_;
    auto& k = d.plan;
    k.sources = m.copy_of(sources);
    k.targets = m.copy_of(targets);
    k.blocks = m.copy_of(blocks);
    k.block_of = m.copy_of(block_of);
    k.rows = m.copy_of(rows);
    k.addend_offsets = m.copy_of(offsets);
    k.addends = m.copy_of(addends);
    for (std::size_t kind = 0; kind < 2; ++kind) {
      k.messages[kind] = m.copy_of(messages[kind]);
      k.message_count[kind] = std::int32_t(messages[kind].size());
      k.taken[kind] = m.zeros_of<std::uint64_t>(messages[kind].size());
    }
    k.source_count = std::int32_t(sources.size());
    k.window = static_cast<std::byte*>(window_);
    k.left = m.copy_of(left);
    k.sum_there = m.zeros_of<std::uint64_t>(targets.size());
    k.x_there = m.zeros_of<std::uint64_t>(sources.size());
    k.next_source = m.zeros_of<std::uint32_t>(1);
    k.waiting = m.zeros_of<std::uint64_t>(1);
    k.given_up = given_up_;
    k.backward = backward;
    d.sums = m.zeros(std::size_t(sums * kernel::most_gpu_columns * size));
    d.products = m.zeros(std::size_t(products * kernel::most_gpu_columns * size));
  }

  /// Columns [first, first + 8) or to the last. On several ranks until the end: then slots may be written again.
  void pass(device::Executor& executor, std::size_t t, Sweep sweep, std::int64_t columns, std::int64_t first, std::byte* x) {
    auto& d = on_device_[std::size_t(sweep)];
    // all ranks come here: slots and flags of the solve before are not in use any more. Some may not know of a solve that failed on others
    auto const number = d.solves = std::uint64_t(comm_.max(std::int64_t(d.solves) + 1));
    try {
      with_dtype(dtype_, [&](auto tag) {
        using T = typename decltype(tag)::type;
        kernel::GpuNumbers<T> numbers{};
        numbers.values = reinterpret_cast<T const*>(values_[t]);
        numbers.order = orders_[t];
        numbers.x = reinterpret_cast<T*>(x) + first;
        numbers.sums = static_cast<T*>(d.sums);
        numbers.products = static_cast<T*>(d.products);
        numbers.right = static_cast<T*>(right_);
        numbers.leading_x = columns;
        numbers.columns = std::int32_t(std::min<std::int64_t>(columns - first, kernel::most_gpu_columns));
        numbers.number = number;
        bool const waits = d.plan.message_count[0] + d.plan.message_count[1] > 0;
        if (waits) {
          auto* const stream = executor.stream();
          gpu::follow(wait_stream_, stream);
          device::Executor beside;
          beside.gpu_stream = wait_stream_;
          gpu::form_of (&kernel::wait_for_sweep<T>)(beside, d.plan, numbers);
          gpu::check(gpu::api()->launch_error(), "launching the kernel WAIT of a triangular solve");
          gpu::form_of (&comm::kernel::await_signal)(executor, d.plan.waiting, number);
        }
        gpu::form_of (&kernel::solve_sweep<T>)(executor, d.plan, numbers);
        if (waits) gpu::follow(executor.stream(), wait_stream_);
      });
      if (one_rank()) return;
      gpu::check(gpu::api()->event_record(end_, executor.stream()), "recording an event");
      comm::Wait wait(comm_, comm::Wait::For::messages);
      for (int ended = 0;;) {
        gpu::check(gpu::api()->event_done(end_, &ended), "asking for an event");
        if (ended) break;
        wait();
      }
    } catch (...) {
      give_up(executor);
      throw;
    }
  }

  /// Whoever waits on the GPU ends: its memory goes with this object.
  void give_up(device::Executor const& executor) noexcept {
    broken_ = true;
    try {
      std::uint32_t const one = 1;
      gpu::copy_now(given_up_, &one, sizeof one);
      gpu::wait(executor.stream());
      if (wait_stream_) gpu::wait(wait_stream_);
    } catch (...) {  // then nothing runs there any more
    }
  }

  comm::Communicator comm_;
  Dtype dtype_;
  std::array<SweepPlan, 2> plans_;
  std::int32_t alone_ = 0;                 // supernodes
  device::Array turn_ = device::Array(1);  // solves on several queues use the same memory for sums: one after the other
  void *wait_stream_ = nullptr, *window_ = nullptr, *end_ = nullptr;
  std::vector<void*> mapped_;  // of the other ranks
  using Key = std::tuple<std::int32_t, std::int32_t, int>;
  std::map<Key, Place> mine_;  // by label, supernode and the other rank
  std::map<Key, GpuPut> puts_;
  std::vector<std::byte const*> values_;
  std::vector<std::int32_t const*> orders_;
  std::uint32_t* given_up_ = nullptr;
  void* right_ = nullptr;
  struct Direction {
    kernel::GpuPlan plan{};
    void *sums = nullptr, *products = nullptr;
    std::uint64_t solves = 0;
  };
  std::array<Direction, 2> on_device_;
  std::atomic<bool> broken_{false};
};

GpuTriangularSolver::GpuTriangularSolver(comm::Communicator const& comm, std::vector<std::shared_ptr<LocalTriangle const>> triangles,
                                         Outside const& outside)
    : impl_(std::make_shared<Impl>(comm, triangles, outside)) {}
GpuTriangularSolver::~GpuTriangularSolver() {
  if (queue_) queue_->finish();
}
std::int64_t GpuTriangularSolver::owned() const { return std::int64_t(impl_->rows_.size()); }
std::vector<std::int32_t> const& GpuTriangularSolver::owned_rows() const { return impl_->rows_; }
void GpuTriangularSolver::solve(std::size_t t, Sweep sweep, std::int64_t columns, device::Array const& x) {
  if (!queue_) queue_ = device::Queue::gpu();
  Impl::submit(impl_, *queue_, t, sweep, columns, x, true);
}
void GpuTriangularSolver::submit(device::Queue const& queue, std::size_t t, Sweep sweep, std::int64_t columns,
                                 device::Array const& x) const {
  Impl::submit(impl_, queue, t, sweep, columns, x, false);
}
void GpuTriangularSolver::wait() const {
  if (queue_) queue_->wait("triangular solves on GPUs");
}
std::size_t GpuTriangularSolver::memory_bytes() const { return impl_->memory_.bytes(); }

}  // namespace asterism::direct
