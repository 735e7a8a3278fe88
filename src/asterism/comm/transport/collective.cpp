// MPI's collectives of the whole communicator, for patterns that are one: an allgather, a gather, a scatter; else an all-to-all.
//
// Only the values move by them. They meet in the order of the ranks as ever, so a reduction has the same bits as by other transports.
#include <algorithm>
#include <limits>

#include "asterism/base/limits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/mpi/batch.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {
namespace {

enum class Shape : std::uint8_t { all_to_all, all_gather, gather, scatter };

class Collectives final : public SharedTransport, public std::enable_shared_from_this<Collectives> {
 public:
  explicit Collectives(Pattern const& pattern) : comm_(pattern.comm) {
    auto const size = std::size_t(comm_.size());
    auto const fill = [&](Half& half, std::vector<Side> const& sides) {
      half.counts.assign(size, 0);
      half.places.assign(size, 0);
      std::int64_t place = 0;
      for (auto const& s : sides) {
        half.places[std::size_t(s.rank)] = int(place);
        half.counts[std::size_t(s.rank)] = int(s.at.count());
        place += s.at.count();
      }
      half.edges = place;
    };
    fill(roots_, *pattern.roots);
    fill(leaves_, *pattern.leaves);
    agree(comm_, [&] {
      for (auto const* h : {&roots_, &leaves_})
        ASTERISM_REQUIRE(h->edges <= limits().mpi_count, unsupported,
                         "transport 'collective': {} edges on a rank are more than MPI's collectives can count. Use 'auto' or 'p2p'.",
                         h->edges);
    });
    recognise(pattern);
  }
  std::unique_ptr<Transport> transport() override { return std::make_unique<Call>(shared_from_this()); }
  std::string_view describe() const override {
    constexpr std::string_view names[] = {"an all-to-all", "an all-gather", "a gather", "a scatter"};
    return names[std::size_t(shape_)];
  }

 private:
  struct Half {
    std::vector<int> counts, places;  // in edges, for each rank
    std::int64_t edges = 0;
  };

  void recognise(Pattern const& pattern) {
    // every rank's leaves are all roots of this one, as a block
    auto const& roots = *pattern.roots;
    bool one_block = std::int64_t(roots.size()) == comm_.size() || roots.empty();
    for (auto const& s : roots)
      one_block = one_block && s.at.contiguous() && s.at.first() == roots[0].at.first() && s.at.count() == roots[0].at.count();
    auto const receivers = comm_.sum(leaves_.edges > 0 ? 1 : 0), senders = comm_.sum(roots_.edges > 0 ? 1 : 0);
    auto const others = comm_.sum(one_block ? 0 : 1);
    only_ = int(comm_.max(std::int64_t(receivers == 1                     ? (leaves_.edges > 0 ? comm_.rank() : -1)
                                       : senders == 1 && roots_.edges > 0 ? comm_.rank()
                                                                          : -1)));
    shape_ = receivers == 1               ? Shape::gather
             : senders == 1               ? Shape::scatter
             : others == 0 && senders > 0 ? Shape::all_gather
                                          : Shape::all_to_all;
  }

  class Call final : public Transport {
   public:
    explicit Call(std::shared_ptr<Collectives> shared) : shared_(std::move(shared)) { mpi_carries_messages(); }
    ~Call() override {
      if (!waited_) shared_->comm_.give_up(buffers_);  // an error ended the operation
    }

    void open(Traffic const& t, TransportKind) override { traffic_ = &t; }

    void send(std::byte const* source) override {
      auto const& t = *traffic_;
      auto& s = *shared_;
      auto const& out = t.down ? s.roots_ : s.leaves_;
      auto const& in = t.down ? s.leaves_ : s.roots_;
      buffers_->received.resize(std::size_t(in.edges * t.unit));
      bool const same_for_all = t.down && s.shape_ == Shape::all_gather;
      auto const* values = pack(source, same_for_all);
      auto const comm = s.comm_.handle();
      int const me = s.comm_.rank(), only = s.only_;
      if (t.unit == 0) return;
      waited_ = false;
      auto const batch = buffers_->batch.get();
      int error;
      if (same_for_all) {
        auto const mine = t.out->empty() ? 0 : int(t.out->front().at.count());
        error = mpi()->iallgatherv(batch, comm, values, mine, buffers_->received.data(), in.counts.data(), in.places.data(), t.unit);
      } else if (s.shape_ == (t.down ? Shape::gather : Shape::scatter)) {
        error = mpi()->igatherv(batch, comm, values, out.counts[std::size_t(only)], buffers_->received.data(), in.counts.data(),
                                in.places.data(), t.unit, only);
      } else if (s.shape_ == (t.down ? Shape::scatter : Shape::gather)) {
        error = mpi()->iscatterv(batch, comm, values, out.counts.data(), out.places.data(), buffers_->received.data(),
                                 in.counts[std::size_t(only)], t.unit, only);
      } else {
        error = mpi()->ialltoallv(batch, comm, values, out.counts.data(), out.places.data(), buffers_->received.data(), in.counts.data(),
                                  in.places.data(), t.unit);
      }
      check_mpi(error, "a collective");
      for (auto const& side : *t.out)
        if (side.rank != me) profile::count_message(1, double(side.at.count() * t.unit));
    }

    void receive(Side const& side, Receiver& receiver) override {
      close();
      auto const& in = traffic_->down ? shared_->leaves_ : shared_->roots_;
      receiver.take(side, 0, side.at.count(), buffers_->received.data() + in.places[std::size_t(side.rank)] * traffic_->unit);
    }

    void close() override {
      if (waited_) return;
      wait_for(shared_->comm_, buffers_->batch.get(), "a collective");
      waited_ = true;
    }

   private:
    /// The values in the order of the ranks, my own part with them; where they lie if one block is for all or there is one part only.
    std::byte const* pack(std::byte const* source, bool same_for_all) {
      auto const& t = *traffic_;
      auto const& sides = *t.out;
      if (!sides.empty() && sides[0].at.contiguous() && (same_for_all || sides.size() == 1)) return source + sides[0].at.first() * t.unit;
      std::int64_t bytes = 0;
      for (auto const& s : sides) bytes += s.at.count() * t.unit;
      auto& sent = buffers_->sent;
      if (std::int64_t(sent.size()) < bytes) sent.resize(std::size_t(bytes));
      auto* at = sent.data();
      for (auto const& s : sides) {
        s.at.pack(source, at, t.unit);
        at += s.at.count() * t.unit;
      }
      return sent.data();
    }

    std::shared_ptr<Collectives> shared_;
    Traffic const* traffic_ = nullptr;
    struct Buffers {
      Batch batch;
      std::vector<std::byte> sent, received;
    };
    std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
    bool waited_ = true;
  };

  Communicator comm_;
  Half roots_, leaves_;
  Shape shape_ = Shape::all_to_all;
  int only_ = -1;  // the one rank that gathers or scatters
};

}  // namespace

std::shared_ptr<SharedTransport> collective_transport(Pattern const& pattern) { return std::make_shared<Collectives>(pattern); }

}  // namespace asterism::comm
