// MPI's neighbourhood collectives: one persistent all-to-all between the neighbours for all messages of an operation.
#include <algorithm>
#include <array>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {
namespace {

/// Plans are made and started collectively, so all ranks must take the same plan for the same operation, in whatever order they end
/// them: plans are taken in turn. One that is still in use when its turn comes is waited for and its data put aside.
constexpr std::size_t plans_in_turn = 4;

class Neighbourhood final : public SharedTransport, public std::enable_shared_from_this<Neighbourhood> {
 public:
  explicit Neighbourhood(Pattern const& pattern) : comm_(pattern.comm) {
    make(down_, *pattern.roots, *pattern.leaves);
    make(up_, *pattern.leaves, *pattern.roots);
  }
  std::unique_ptr<Transport> transport() override { return std::make_unique<Exchange>(shared_from_this()); }

 private:
  class Exchange;
  struct Plan {
    Plan() = default;
    Plan(Plan const&) = delete;
    ~Plan() {
      if (plan) mpi()->neighbor_free(plan);
    }
    MpiApi::NeighborPlan plan = nullptr;
    std::int64_t unit = -1;
    std::vector<std::byte> sent, received;
    Exchange* user = nullptr;
  };
  struct Direction {
    std::array<Plan, plans_in_turn> plans;  // freed before the communicator
    std::size_t next = 0;
    MpiApi::Comm graph = 0;
    std::shared_ptr<void> graph_kept;
  };

  void make(Direction& d, std::vector<Side> const& out, std::vector<Side> const& in) {
    std::vector<int> to, from;
    for (auto const& s : out)
      if (s.transport == TransportKind::neighbor) to.push_back(s.rank);
    for (auto const& s : in)
      if (s.transport == TransportKind::neighbor) from.push_back(s.rank);
    check_mpi(mpi()->graph_comm(comm_.handle(), int(from.size()), from.data(), int(to.size()), to.data(), &d.graph),
              "MPI_Dist_graph_create_adjacent");
    d.graph_kept = comm_.keep([graph = d.graph] { return mpi()->comm_free(graph); });
  }

  class Exchange final : public Transport {
   public:
    explicit Exchange(std::shared_ptr<Neighbourhood> shared) : shared_(std::move(shared)) { mpi_carries_messages(); }
    ~Exchange() override {
      // else an error ended the operation: the forest will not be used any more
      if (plan_) plan_->user = nullptr, shared_->comm_.give_up(shared_);
    }

    void open(Traffic const& t, TransportKind) override {
      traffic_ = &t;
      waited_ = false;
      aside_.clear();
    }

    void send(std::byte const* source) override {
      auto const& t = *traffic_;
      auto& d = t.down ? shared_->down_ : shared_->up_;
      auto& plan = d.plans[d.next++ % plans_in_turn];
      if (plan.user) plan.user->put_aside();
      if (plan.unit != t.unit) prepare(plan, d.graph);
      auto* at = plan.sent.data();
      for (auto const& s : *t.out) {
        if (s.transport != TransportKind::neighbor) continue;
        s.at.pack(source, at, t.unit);
        at += s.at.count() * t.unit;
        profile::count_message(1, double(s.at.count() * t.unit));
      }
      check_mpi(mpi()->neighbor_start(plan.plan), "MPI_Neighbor_alltoallw");
      plan_ = &plan;
      plan.user = this;
      next_ = plan.received.data();
    }

    void receive(Side const& side, Receiver& receiver) override {
      wait();
      receiver.take(side, 0, side.at.count(), next_);  // sides are received in their order
      next_ += side.at.count() * traffic_->unit;
    }

    void close() override {
      wait();
      if (plan_) plan_->user = nullptr;
      plan_ = nullptr;
    }

   private:
    void prepare(Plan& plan, MpiApi::Comm graph) {
      auto const& t = *traffic_;
      if (plan.plan) mpi()->neighbor_free(plan.plan);
      plan.plan = nullptr;
      plan.unit = t.unit;
      auto const parts = [&](std::vector<Side> const& sides, std::vector<std::byte>& buffer) {
        std::int64_t bytes = 0;
        for (auto const& s : sides) bytes += s.transport == TransportKind::neighbor ? s.at.count() * t.unit : 0;
        buffer.resize(std::size_t(bytes));
        std::vector<MpiApi::Part> out;
        auto* at = buffer.data();
        for (auto const& s : sides)
          if (s.transport == TransportKind::neighbor) out.push_back({at, s.at.count() * t.unit}), at += out.back().bytes;
        return out;
      };
      auto const to = parts(*t.out, plan.sent), from = parts(*t.in, plan.received);
      check_mpi(mpi()->neighbor_plan(graph, to.data(), int(to.size()), from.data(), int(from.size()), &plan.plan),
                "MPI_Neighbor_alltoallw_init");
    }
    void wait() {
      if (waited_) return;
      Wait patience(shared_->comm_, Wait::For::messages);
      for (int done = 0;;) {
        check_mpi(mpi()->neighbor_test(plan_->plan, &done), "MPI_Neighbor_alltoallw");
        if (done) break;
        patience();
      }
      waited_ = true;
    }
    /// Another operation needs the plan.
    void put_aside() {
      wait();
      aside_ = plan_->received;
      next_ = aside_.data() + (next_ - plan_->received.data());
      plan_->user = nullptr;
      plan_ = nullptr;
    }

    std::shared_ptr<Neighbourhood> shared_;
    Traffic const* traffic_ = nullptr;
    Plan* plan_ = nullptr;
    bool waited_ = true;
    std::byte const* next_ = nullptr;
    std::vector<std::byte> aside_;
  };

  Communicator comm_;
  Direction down_, up_;
};

}  // namespace

std::shared_ptr<SharedTransport> neighbor_transport(Pattern const& pattern) { return std::make_shared<Neighbourhood>(pattern); }

}  // namespace asterism::comm
