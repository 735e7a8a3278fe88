// MPI_Isend and MPI_Irecv, one message for each neighbour; a long one whose values are to be combined goes in pieces.
//
// Such values cannot be received where they belong. If the operation ends in the call that begins it, a piece is combined while
// the next ones arrive, out of a buffer that stays in the cache. If not, all its receives must be posted when it begins, so that
// no rank's end waits for another's; the messages are the same in both cases.
#include <algorithm>

#include "asterism/base/log.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/mpi/batch.hpp"
#include "asterism/comm/transport/outgoing.hpp"

namespace asterism::comm {
namespace {

constexpr std::int64_t message_pieces_from = 512 << 10, message_piece = 256 << 10;
constexpr int ahead = 2;  // pieces that are posted at a time

/// Edges of each piece of a message; the last has fewer.
std::int64_t edges_of_piece(Traffic const& t, std::int64_t count) {
  return t.combines && count * t.unit >= message_pieces_from ? std::max<std::int64_t>(1, message_piece / t.unit) : count;
}

class PointToPoint final : public Transport {
 public:
  PointToPoint() { mpi_carries_messages(); }
  ~PointToPoint() override {
    if (open_) give_up();  // an error ended the operation
  }

  void open(Traffic const& t, TransportKind kind) override {
    traffic_ = &t;
    kind_ = kind;
    waited_ = false;
    open_ = true;
    std::int64_t bytes = 0;
    for (auto const& s : *t.in)
      if (staged(s)) bytes += room(s);
    if (!buffers_) buffers_ = std::make_shared<Buffers>();
    if (std::int64_t(buffers_->received.size()) < bytes) buffers_->received.resize(std::size_t(bytes));
    auto* next = buffers_->received.data();
    next_ = next;
    first_place_ = 0;
    piece_ = posted_ = 0;
    int place = 0;
    for (auto const& s : *t.in) {
      if (s.transport != kind) continue;
      auto const count = s.at.count(), length = edges_of_piece(t, count);
      if (staged(s) && length < count) {
        for (int p = 0; p < ring(s); ++p) post(s, next, p, place++);
        next += room(s);
        continue;
      }
      auto* const to = staged(s) ? next : t.target + s.at.first() * t.unit;
      if (staged(s)) next += count * t.unit;
      check_mpi(mpi()->irecv(buffers_->receives.get(), t.comm->handle(), to, count * t.unit, s.rank, t.tag), "MPI_Irecv");
    }
  }

  void send(std::byte const* source) override {
    auto const& t = *traffic_;
    each_outgoing(t, kind_, source, buffers_->sent, [&](Side const& s, std::byte const* place, std::int64_t bytes) {
      auto const step = edges_of_piece(t, s.at.count()) * t.unit;
      do {
        auto const n = std::min(step, bytes);
        check_mpi(mpi()->isend(buffers_->sends.get(), t.comm->handle(), place, n, s.rank, t.tag), "MPI_Isend");
        place += n, bytes -= n;
      } while (bytes > 0);
    });
  }

  void receive(Side const& side, Receiver& receiver) override {
    auto const count = side.at.count();
    bool const pieces = in_pieces(side);
    if (!pieces) wait();
    if (!staged(side)) return;
    if (pieces)
      return receive_pieces(side, [&](std::int64_t first, std::int64_t n, std::byte const* data) { receiver.take(side, first, n, data); });
    auto* const buffer = next_;  // sides are received in their order
    next_ += room(side);
    receiver.take(side, 0, count, buffer);
  }

  void close() override {
    wait();
    open_ = false;
  }

 private:
  bool staged(Side const& s) const { return s.transport == kind_ && !(traffic_->in_place && s.at.contiguous()); }
  bool in_pieces(Side const& s) const { return staged(s) && edges_of_piece(*traffic_, s.at.count()) < s.at.count(); }
  /// Pieces of a side's message that have a buffer at the same time.
  int ring(Side const& s) const {
    auto const count = s.at.count(), length = edges_of_piece(*traffic_, count), pieces = (count + length - 1) / length;
    return int(traffic_->at_once ? std::min<std::int64_t>(ahead, pieces) : pieces);
  }
  std::int64_t room(Side const& s) const {
    auto const count = s.at.count(), length = edges_of_piece(*traffic_, count);
    return (length < count ? std::min(count, ring(s) * length) : count) * traffic_->unit;
  }
  void post(Side const& s, std::byte* buffer, std::int64_t piece, int place) {
    auto const& t = *traffic_;
    auto const count = s.at.count(), length = edges_of_piece(t, count);
    check_mpi(mpi()->irecv_at(buffers_->pieces.get(), place, t.comm->handle(), buffer + piece % ring(s) * length * t.unit,
                              std::min(length, count - piece * length) * t.unit, s.rank, t.tag),
              "MPI_Irecv");
  }
  /// take(first, n, data) for each piece of the side whose turn it is, in order, from piece_ on.
  template <class F>
  void receive_pieces(Side const& side, F const& take) {
    auto const& t = *traffic_;
    auto const count = side.at.count(), length = edges_of_piece(t, count), pieces = (count + length - 1) / length;
    int const places = ring(side);
    while (piece_ < pieces) {
      for (posted_ = std::max<std::int64_t>(posted_, places); posted_ < std::min(pieces, piece_ + places); ++posted_)
        post(side, next_, posted_, first_place_ + int(posted_ % places));
      auto const p = piece_++;
      Wait wait(*t.comm, Wait::For::messages);
      std::int64_t bytes = 0;
      for (int done = 0;;) {
        check_mpi(mpi()->test_at(buffers_->pieces.get(), first_place_ + int(p % places), &done, &bytes), "MPI_Irecv");
        if (done) break;
        wait();
      }
      take(p * length, std::min(length, count - p * length), next_ + p % places * length * t.unit);
    }
    next_ += room(side);
    first_place_ += places;
    piece_ = posted_ = 0;
  }
  /// What comes is not received any more, which may be into the user's memory. What was sent stays for MPI.
  void give_up() noexcept {
    mpi()->cancel_all(buffers_->receives.get());
    mpi()->cancel_all(buffers_->pieces.get());
    traffic_->comm->give_up(buffers_);
  }
  void wait() {
    if (waited_) return;
    waited_ = true;
    wait_for(*traffic_->comm, buffers_->receives.get(), "MPI_Irecv");
    wait_for(*traffic_->comm, buffers_->sends.get(), "MPI_Isend");
  }

  Traffic const* traffic_ = nullptr;
  TransportKind kind_ = TransportKind::point_to_point;
  struct Buffers {
    Batch receives, sends, pieces;
    std::vector<std::byte> sent, received;
  };
  std::shared_ptr<Buffers> buffers_;
  bool waited_ = false;
  std::byte* next_ = nullptr;
  bool open_ = false;
  // of the side whose turn it is: where its pieces are in pieces_, the next one, and how many were posted since the first `places`
  int first_place_ = 0;
  std::int64_t piece_ = 0, posted_ = 0;
};

}  // namespace

std::unique_ptr<Transport> point_to_point() { return std::make_unique<PointToPoint>(); }

}  // namespace asterism::comm
