// MPI_Isend and MPI_Irecv, one message for each neighbour.
#include "asterism/comm/transport/outgoing.hpp"

namespace asterism::comm {
namespace {

class PointToPoint final : public Transport {
 public:
  PointToPoint() : batch_(mpi()->batch_new()) {}
  ~PointToPoint() override { mpi()->batch_free(batch_); }

  void open(Traffic const& t) override {
    traffic_ = t;
    waited_ = false;
    std::int64_t bytes = 0;
    for (auto const& s : *t.in)
      if (staged(s)) bytes += s.at.count() * t.unit;
    if (std::int64_t(received_.size()) < bytes) received_.resize(std::size_t(bytes));
    auto* next = received_.data();
    next_ = next;
    for (auto const& s : *t.in) {
      if (s.way != t.way) continue;
      auto* const place = staged(s) ? next : t.target + s.at.first() * t.unit;
      if (staged(s)) next += s.at.count() * t.unit;
      check_mpi(mpi()->irecv(batch_, t.comm->handle(), place, s.at.count() * t.unit, s.rank, t.tag), "MPI_Irecv");
    }
  }

  void send(std::byte const* source) override {
    auto const& t = traffic_;
    each_outgoing(t, source, sent_, [&](Side const& s, std::byte const* place, std::int64_t length) {
      check_mpi(mpi()->isend(batch_, t.comm->handle(), place, length, s.rank, t.tag), "MPI_Isend");
    });
  }

  void receive(Side const& side, Taker& taker) override {
    close();
    if (!staged(side)) return;
    taker.take(side, 0, side.at.count(), next_);  // sides are received in their order
    next_ += side.at.count() * traffic_.unit;
  }

  void close() override {
    if (waited_) return;
    waited_ = true;
    check_mpi(mpi()->waitall(batch_), "MPI_Waitall");
  }

 private:
  bool staged(Side const& s) const { return s.way == traffic_.way && !(traffic_.in_place && s.at.contiguous()); }
  Traffic traffic_;
  MpiApi::Batch batch_;
  bool waited_ = false;
  std::vector<std::byte> sent_, received_;
  std::byte const* next_ = nullptr;
};

}  // namespace

std::unique_ptr<Transport> point_to_point() { return std::make_unique<PointToPoint>(); }

}  // namespace asterism::comm
