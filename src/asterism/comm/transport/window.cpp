// One-sided: each rank puts its values into a window of the receiver, who takes them from there.
//
// An operation's epoch begins and ends when the operation begins, so these wait for other ranks there (all of them, or with pscw
// the neighbours); the order in which operations end is then free as it is with the other transports.

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/transport/outgoing.hpp"

namespace asterism::comm {
namespace {

class Windows final : public SharedTransport, public std::enable_shared_from_this<Windows> {
 public:
  Windows(Pattern const& pattern, TransportKind kind, MpiApi::Epoch epoch) : comm_(pattern.comm), kind_(kind), epoch_(epoch) {
    make(down_, *pattern.roots, *pattern.leaves);
    make(up_, *pattern.leaves, *pattern.roots);
  }
  std::unique_ptr<Transport> transport() override { return std::make_unique<Put>(shared_from_this()); }

 private:
  class Put;
  struct Direction {
    std::vector<int> to, from;
    std::vector<std::int64_t> places;  // in the receivers' windows, in edges
    std::int64_t edges = 0;            // that come here
    std::int64_t unit = 0;             // bytes of an edge that the window has room for
    MpiApi::Window window = nullptr;
    std::shared_ptr<void> kept;
    std::byte* base = nullptr;
    Put* user = nullptr;  // whose data lie in the window
  };

  void make(Direction& d, std::vector<Side> const& out, std::vector<Side> const& in) {
    std::vector<Parcel> parcels;  // each receiver tells where the sender's part begins
    for (auto const& s : in) {
      if (s.transport != kind_) continue;
      Parcel p{s.rank, {}};
      append<std::int64_t>(p.data, std::span(&d.edges, 1));
      parcels.push_back(std::move(p));
      d.from.push_back(s.rank);
      d.edges += s.at.count();
    }
    for (auto const& s : out)
      if (s.transport == kind_) d.to.push_back(s.rank);
    for (auto const& p : comm::exchange(comm_, std::move(parcels))) d.places.push_back(items_of<std::int64_t>(p.data)[0]);
    ASTERISM_ASSERT(d.places.size() == d.to.size());
  }

  class Put final : public Transport {
   public:
    explicit Put(std::shared_ptr<Windows> shared) : shared_(std::move(shared)) { mpi_carries_messages(); }
    ~Put() override { close(); }

    void open(Traffic const& t, TransportKind) override {
      traffic_ = &t;
      aside_.clear();
      next_ = 0;
    }

    void send(std::byte const* source) override {
      auto const& t = *traffic_;
      auto& d = t.down ? shared_->down_ : shared_->up_;
      if (d.user) d.user->put_aside();
      if (t.unit > d.unit || !d.window) grow(d);
      check_mpi(mpi()->window_open(d.window), "opening an epoch of a window");
      auto place = d.places.begin();
      each_outgoing(t, shared_->kind_, source, packed_, [&](Side const& s, std::byte const* from, std::int64_t length) {
        check_mpi(mpi()->put(d.window, from, length, s.rank, *place++ * t.unit), "MPI_Put");
      });
      check_mpi(mpi()->window_close(d.window), "closing an epoch of a window");
      direction_ = &d;
      d.user = this;
    }

    void receive(Side const& side, Receiver& receiver) override {
      auto const* const data = direction_ ? direction_->base : aside_.data();
      receiver.take(side, 0, side.at.count(), data + next_);  // sides are received in their order
      next_ += side.at.count() * traffic_->unit;
    }

    void close() override {
      if (direction_) direction_->user = nullptr;
      direction_ = nullptr;
    }

   private:
    void grow(Direction& d) {
      d.kept.reset();
      d.unit = 0;  // none, if that fails
      void* base = nullptr;
      check_mpi(mpi()->window_new(shared_->comm_.handle(), d.edges * traffic_->unit, shared_->epoch_, int(d.from.size()), d.from.data(),
                                  int(d.to.size()), d.to.data(), &base, &d.window),
                "MPI_Win_allocate");
      d.base = static_cast<std::byte*>(base);
      d.unit = traffic_->unit;
      d.kept = shared_->comm_.keep([window = d.window] { return mpi()->window_free(window); });
    }
    /// Another operation needs the window.
    void put_aside() {
      aside_.assign(direction_->base, direction_->base + direction_->edges * traffic_->unit);
      direction_->user = nullptr;
      direction_ = nullptr;
    }

    std::shared_ptr<Windows> shared_;
    Traffic const* traffic_ = nullptr;
    Direction* direction_ = nullptr;
    std::int64_t next_ = 0;
    std::vector<std::byte> packed_, aside_;
  };

  Communicator comm_;
  TransportKind kind_;
  MpiApi::Epoch epoch_;
  Direction down_, up_;
};

}  // namespace

std::shared_ptr<SharedTransport> window_fence_transport(Pattern const& pattern) {
  return std::make_shared<Windows>(pattern, TransportKind::window_fence, MpiApi::fence);
}
std::shared_ptr<SharedTransport> window_lock_transport(Pattern const& pattern) {
  return std::make_shared<Windows>(pattern, TransportKind::window_lock, MpiApi::lock);
}
std::shared_ptr<SharedTransport> window_pscw_transport(Pattern const& pattern) {
  return std::make_shared<Windows>(pattern, TransportKind::window_pscw, MpiApi::pscw);
}

}  // namespace asterism::comm
