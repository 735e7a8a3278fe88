#include "asterism/direct/triangular/triangular_solver.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/device/host/team.hpp"
#include "asterism/direct/triangular/message_driven_sweep.hpp"
#include "asterism/direct/triangular/seal.hpp"

namespace asterism::direct {
namespace {

constexpr auto channels_name = "triangular solve";
constexpr std::int64_t most_columns = 8;         // that one pass over the triangle serves
constexpr std::int64_t worth_threads = 1 << 18;  // bytes of the triangle, times columns: some 20 us of one thread

int label_of(Sweep sweep, MessageKind kind, std::int32_t node) { return (node * 2 + int(sweep)) * 2 + int(kind); }
Sweep sweep_of(int label) { return Sweep(label / 2 % 2); }
Envelope envelope_of(comm::Channels::Arrival const& a) { return {MessageKind(a.label % 2), a.label / 4, a.rank}; }

}  // namespace

class TriangularSolver::Impl {
 public:
  Impl(comm::Communicator const& comm, std::vector<std::shared_ptr<LocalTriangle const>> triangles, TriangularOptions const& options,
       Outside outside)
      : comm_(comm),
        options_(options),
        triangles_(std::move(triangles)),
        outside_(std::move(outside)),
        channels_(comm, wanted(), options.transport),
        epoch_(comm.epoch()) {
    channels_.set_name(channels_name);
    for (std::size_t t = 0; t < triangles_.size(); ++t)
      for (auto const s : {Sweep::forward, Sweep::backward})
        sweeps_.emplace_back(triangles_[t], plans_[std::size_t(s)],
                             [this](Envelope const& to, std::span<std::byte const> data) { send(to, data); });
    auto const& nodes = triangles_[0]->pattern().nodes();
    for (auto const& node : plans_[0]->nodes)
      if (node.diagonal)
        for (auto r = nodes.starts[std::size_t(node.id)]; r < nodes.starts[std::size_t(node.id) + 1]; ++r) rows_.push_back(r);
  }

  void solve(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x) {
    comm::collective(comm_, "a triangular solve", [&] {
      renew_channels();
      solve_by_parts(t, sweep, columns, x);
    });
  }
  void solve(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x, std::span<std::byte> beside) {
    comm::collective(comm_, "a triangular solve", [&] {
      renew_channels();
      run(t, sweep, columns, x, beside);
    });
  }

  std::vector<std::int32_t> rows_;
  std::array<std::shared_ptr<SweepPlan const>, 2> plans_;
  std::vector<Message> log_;
  bool logs_ = false;

 private:
  /// After ranks have recovered from an error messages of the solve that failed may still be in the channels.
  void renew_channels() {
    if (comm_.epoch() == epoch_) return;
    held_.clear();
    solve_ = 0;  // ranks may have ended in different solves
    std::vector<comm::Channel> const out(channels_.out().begin(), channels_.out().end());
    channels_ = comm::Channels(comm_, out, options_.transport);
    channels_.set_name(channels_name);
    epoch_ = comm_.epoch();
  }

  void solve_by_parts(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x) {
    auto const size = std::int64_t(size_of(triangles_[t]->dtype()));
    auto const n = std::int64_t(rows_.size());
    if (std::int64_t(x.size()) != n * columns * size)
      fail(ErrorKind::shape, "triangular solve: x has {} bytes for {} rows of {} numbers.", x.size(), n, columns);
    for (std::int64_t first = 0; first < columns; first += most_columns) {
      auto const k = std::min(most_columns, columns - first);
      if (k == columns) {
        run(t, sweep, k, x);
        continue;
      }
      part_.resize(std::size_t(n * k * size));
      auto const copy = [&](bool back) {
        for (std::int64_t i = 0; i < n; ++i) {
          auto *a = x.data() + (i * columns + first) * size, *b = part_.data() + i * k * size;
          std::memcpy(back ? a : b, back ? b : a, std::size_t(k * size));
        }
      };
      copy(false);
      run(t, sweep, k, part_);
      copy(true);
    }
  }

  std::vector<comm::Channel> wanted() {
    auto const& first = *triangles_.at(0);
    auto const& grid = first.grid();
    if (grid.size() != comm_.size() || first.rank() != comm_.rank())
      fail(ErrorKind::internal, "a triangle of {} processes, rank {}, for rank {} of {}.", grid.describe(), first.rank(), comm_.rank(),
           comm_.size());
    std::vector<comm::Channel> out;
    for (auto const s : {Sweep::forward, Sweep::backward}) {
      auto plan = std::make_shared<SweepPlan const>(plan_sweep(first.pattern(), grid, comm_.rank(), s, outside_));
      for (auto const& node : plan->nodes) {
        auto const bytes =
            std::int64_t(size_of(first.dtype())) * node.width * most_columns + (options_.checksums ? std::int64_t(sizeof(Seal)) : 0);
        if (node.source)
          for (int const child : node.broadcast.children)
            if (child >= 0) out.push_back({child, bytes, label_of(s, MessageKind::broadcast, node.id)});
        if (node.target && node.reduction.parent >= 0)
          out.push_back({node.reduction.parent, bytes, label_of(s, MessageKind::reduction, node.id)});
      }
      plans_[std::size_t(s)] = std::move(plan);
    }
    return out;
  }

  void run(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x, std::span<std::byte> beside = {}) {
    ++solve_;
    sweep_ = sweep;
    auto& s = sweeps_[2 * t + std::size_t(sweep)];
    bool const assisted = device::host::team_size() > 1 && std::int64_t(triangles_[t]->values().size()) * columns >= worth_threads;
    s.begin(columns, x, sweep == Sweep::forward ? std::span<std::byte const>(beside) : std::span<std::byte const>(), assisted);
    if (assisted) lead_with_threads(s);
    else lead(s);
    if (sweep == Sweep::backward && !beside.empty()) s.end(beside);
  }

  void lead_with_threads(MessageDrivenSweep& s) {
    struct Context {
      Impl& self;
      MessageDrivenSweep& sweep;
    } const context{*this, s};
    device::host::run_pieces(
        device::host::team_size(), 1,
        [](void const* given, std::int64_t first, std::int64_t) {
          auto const& c = *static_cast<Context const*>(given);
          first == 0 ? c.self.lead(c.sweep) : c.sweep.assist();  // the first piece is this thread's
        },
        &context);
  }

  void lead(MessageDrivenSweep& s) {
    struct Stop {
      MessageDrivenSweep& sweep;
      ~Stop() { sweep.stop(); }
    } const stop{s};
    for (auto a = held_.begin(); a != held_.end();)
      if (sweep_of(a->label) == sweep_ && s.awaits(envelope_of(*a))) {
        take(s, *a);
        a = held_.erase(a);
      } else {
        ++a;
      }
    while (!s.done()) {
      while (auto const a = channels_.poll()) arrived(s, *a);
      if (s.work() || s.done()) continue;
      if (s.needs_message()) arrived(s, channels_.wait());
      else s.wait_for_others();
    }
  }

  void arrived(MessageDrivenSweep& s, comm::Channels::Arrival const& a) {
    // of a rank that is in a later solve
    if (sweep_of(a.label) != sweep_ || !s.awaits(envelope_of(a))) held_.push_back(a);
    else take(s, a);
  }

  void take(MessageDrivenSweep& s, comm::Channels::Arrival const& a) {
    auto data = a.data;
    auto const from = envelope_of(a);
    if (options_.checksums) {
      if (auto const why = broken_seal(data, solve_); !why.empty())
        fail(ErrorKind::comm, "triangular solve: {} of supernode {} from rank {} {}.",
             from.kind == MessageKind::broadcast ? "x" : "the sum", from.node, from.rank, why);
      data = data.first(data.size() - sizeof(Seal));
    }
    s.receive(from, data);
    channels_.release(a);
  }

  void send(Envelope const& to, std::span<std::byte const> data) {
    if (logs_) log_.push_back({to.kind, to.node, comm_.rank(), to.rank});
    auto const label = label_of(sweep_, to.kind, to.node);
    if (!options_.checksums) return channels_.put(to.rank, data, label);
    seal(data, solve_, sealed_);
    channels_.put(to.rank, sealed_, label);
  }

  comm::Communicator comm_;
  TriangularOptions options_;
  std::vector<std::shared_ptr<LocalTriangle const>> triangles_;
  Outside outside_;
  comm::Channels channels_;
  std::uint64_t epoch_ = 0;  // of the communicator, when they were made
  std::vector<MessageDrivenSweep> sweeps_;
  std::deque<comm::Channels::Arrival> held_;
  std::vector<std::byte> part_, sealed_;
  std::uint64_t solve_ = 0;
  Sweep sweep_ = Sweep::forward;
};

TriangularSolver::TriangularSolver(comm::Communicator const& comm, std::vector<std::shared_ptr<LocalTriangle const>> triangles,
                                   TriangularOptions const& options, Outside outside)
    : impl_(std::make_unique<Impl>(comm, std::move(triangles), options, std::move(outside))) {}
TriangularSolver::~TriangularSolver() = default;
TriangularSolver::TriangularSolver(TriangularSolver&&) noexcept = default;
std::int64_t TriangularSolver::owned() const { return std::int64_t(impl_->rows_.size()); }
std::vector<std::int32_t> const& TriangularSolver::owned_rows() const { return impl_->rows_; }
void TriangularSolver::solve(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x) {
  impl_->solve(t, sweep, columns, x);
}
void TriangularSolver::solve(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x, std::span<std::byte> beside) {
  impl_->solve(t, sweep, columns, x, beside);
}
SweepPlan const& TriangularSolver::plan(Sweep sweep) const { return *impl_->plans_[std::size_t(sweep)]; }
void TriangularSolver::log_messages(bool on) {
  impl_->logs_ = on;
  impl_->log_.clear();
}
std::vector<Message> const& TriangularSolver::log() const { return impl_->log_; }

}  // namespace asterism::direct
