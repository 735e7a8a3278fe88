// Between ranks of one machine, without an MPI call in a steady state.
//
// The sender gathers straight into memory that both map, the receiver puts it from there where it belongs. Long messages are
// published in pieces, so that both copy at once. An array that itself lies in shared memory is lent instead, where a block of
// it is sent or it is broadcast: the receiver reads it in place, one pass, and the sender's end
// waits for that, but not for a reader that does not begin. A long block of other memory is lent too: the receiver lets the
// system copy it. Both only where two ranks send to each other at once and have no time to help each other with copies, and
// between cores that share a cache (node/block_writer.hpp).
#include <algorithm>
#include <array>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {
namespace {

constexpr std::int64_t piece_bytes = 4 << 10;    // measured: 2-8 KiB are best from 16 KiB to 1 MiB
constexpr std::int64_t piece_around = 16 << 10;  // where they go around the caches
constexpr std::int64_t lend_from = 4 << 10;      // below, a copy costs less than the sender's wait
// Shorter rows are packed: a neighbour would read lines in which this rank writes its ghost points.
constexpr std::int64_t lend_row = 512;
constexpr std::int64_t lend_private_from = 64 << 10;
constexpr double revoke_after = 200e-6;           // seconds that the sender waits for a reader that has not begun
constexpr std::int64_t private_piece = 64 << 10;  // a call of the system each
// A sender that is this far ahead of a receiver waits in close(). Operations that have not ended are never waited for.
constexpr std::size_t far_ahead = 64;
constexpr std::int64_t far_ahead_bytes = 64 << 20;

class SharedMemory final : public Transport {
 public:
  ~SharedMemory() override {
    if (!open_) return;  // else an error ended the operation: what it lent is still to be read
    forget();
    try {
      wait_for_readers();
    } catch (Error const&) {  // the readers have left their operation too
    }
  }

  void open(Traffic const& t, TransportKind) override {
    traffic_ = &t;
    epoch_ = t.comm->epoch();
    auto& node = *t.comm->node();
    ++node.under_way;
    open_ = true;
    lent_ = false;
    sent_.clear();
    for (auto const& s : *t.out) {
      if (s.transport != TransportKind::shared_memory) continue;
      auto& box = node.to(s.node_index);
      sent_.push_back({&s, &box, box.reserve(), false});
    }
    expected_.clear();
    for (auto const& s : *t.in) {
      if (s.transport != TransportKind::shared_memory) continue;
      auto& box = node.from(s.node_index);
      expected_.push_back({&s, &box, box.expect()});
    }
    next_ = 0;
  }

  void send(std::byte const* source) override {
    auto const& t = *traffic_;
    source_ = source;
    bool const shared = node::Arena::mine()->contains(source);
    for (auto& sent : sent_) {
      auto const& s = *sent.side;
      auto& out = *sent.box;
      auto const count = s.at.count(), bytes = count * t.unit;
      profile::count_message(1, double(bytes));
      auto const lend = [&](node::Place place, std::byte const* from) {
        sent.lent = lent_ = true;
        out.lend(sent.message, place, from, bytes);
      };
      auto const* const first = source + s.at.first() * t.unit;
      bool const block = s.at.contiguous(), rows = t.roots && s.at.row_length() * t.unit >= lend_row;
      bool const lendable =
          shared ? bytes >= lend_from && (block || rows) : bytes >= lend_private_from && block && t.comm->node()->reads_private();
      // one way only, both ends copy at the same time, which is faster than one that reads while the other waits for it
      if (lendable && receives_from(s.rank) && out.writer().better_lent()) {
        lend(!block ? node::Place::array : shared ? node::Place::block : node::Place::process, block ? first : source);
        continue;
      }
      auto* const data = out.room(sent.message, bytes);
      auto const piece = out.writer().around() ? piece_around : piece_bytes;
      auto const step = bytes <= 2 * piece ? count : std::max<std::int64_t>(1, piece / t.unit);
      for (std::int64_t first = 0;;) {
        auto const n = std::min(step, count - first);
        auto* const to = data + first * t.unit;
        if (s.at.contiguous()) {
          out.write(to, source + (s.at.first() + first) * t.unit, n * t.unit);
        } else if (n * t.unit >= node::BlockWriter::from && !out.writer().leaves_to_caller()) {
          if (std::int64_t(packed_.size()) < n * t.unit) packed_.resize(std::size_t(n * t.unit));
          s.at.pack(source, packed_.data(), t.unit, first, n);
          out.write(to, packed_.data(), n * t.unit);
        } else {
          s.at.pack(source, to, t.unit, first, n);
        }
        bool const rings = first == 0 || first + n >= count;  // not with each piece: that costs as much as its copy
        first += n;
        out.publish(sent.message, first * t.unit, rings);
        if (first >= count) break;
      }
    }
  }

  void receive(Side const& side, Receiver& receiver) override {
    auto const& t = *traffic_;
    require_same_epoch();
    auto const& e = expected_[next_++];  // sides are received in their order
    auto const count = side.at.count();
    auto& in = *e.box;
    Wait wait(*t.comm, Wait::For::memory);
    node::Message* m;
    while (!(m = in.find(e.number))) wait();
    struct Credit {  // also if the user's operation throws: the sender must not wait for a reader that has gone
      node::Inbox& in;
      std::uint64_t number;
      ~Credit() { in.take(number); }
    } const credit{in, e.number};
    ASTERISM_REQUIRE(std::int64_t(m->bytes) == count * t.unit, comm,
                     "rank {} sent {} bytes where {} were expected: the ranks called operations of different items, or in different order.",
                     side.rank, m->bytes, count * t.unit);
    auto const* const data = in.data(*m);
    std::byte const* const copy = m->place == node::Place::message ? nullptr : in.claim(*m);
    if (copy) {
      receiver.take(side, 0, count, copy);
    } else if (m->place == node::Place::block) {
      receiver.take(side, 0, count, data);
    } else if (m->place == node::Place::array) {
      read_lent(side, data, receiver);
    } else if (m->place == node::Place::process) {
      read_private(side, in, *m, receiver);
    } else {
      for (std::int64_t first = 0; first < count && t.unit > 0;) {
        auto const there = in.ready(*m) / t.unit;
        if (there == first) {
          wait();
          continue;
        }
        receiver.take(side, first, there - first, data + first * t.unit);
        first = there;
        wait.part_has_come();
      }
    }
  }

  void close() override {
    require_same_epoch();
    auto& node = *traffic_->comm->node();
    forget();
    wait_for_readers();
    auto const own = node.under_way;
    for (auto const& sent : sent_) {
      auto& out = *sent.box;
      auto const ahead = [&] {
        return out.under_way() > own + far_ahead || (out.bytes_under_way() > far_ahead_bytes && out.under_way() > own + 2);
      };
      if (!ahead()) continue;
      Wait wait(*traffic_->comm, Wait::For::memory);
      for (out.collect(); ahead(); out.collect()) wait();
    }
  }

 private:
  struct Sent {
    Side const* side;
    node::Outbox* box;
    node::Outbox::Sent message;
    bool lent;
  };
  struct Expected {
    Side const* side;
    node::Inbox* box;
    std::uint64_t number;
  };
  void forget() {
    if (traffic_->comm->epoch() == epoch_) --traffic_->comm->node()->under_way;
    open_ = false;
  }
  void require_same_epoch() const {
    ASTERISM_REQUIRE(traffic_->comm->epoch() == epoch_, comm,
                     "this operation was under way when an error ended another call on its communicator, and was given up.");
  }

  /// Until nobody reads this rank's arrays any more. A receiver may be busy with something else, even waiting for this rank: then it
  /// gets a copy.
  void wait_for_readers() {
    if (!lent_) return;
    for (auto const& sent : sent_) {
      if (!sent.lent) continue;
      auto const& s = *sent.side;
      auto& out = *sent.box;
      Wait wait(*traffic_->comm, Wait::For::memory);
      double const start = profile::now();
      bool revocable = true;
      for (int waited = 1; !out.taken(sent.message); ++waited) {
        if (waited % 64 == 0 && revocable && profile::now() - start > revoke_after) {
          revocable = false;
          if (out.revoke(sent.message, [&](std::byte* to) { s.at.pack(source_, to, traffic_->unit); })) break;
        }
        wait();
      }
    }
  }
  Side const& roots_of(Side const& side) const { return (*traffic_->roots)[std::size_t(&side - traffic_->in->data())]; }

  bool receives_from(int rank) const {
    return std::any_of(expected_.begin(), expected_.end(), [rank](Expected const& e) { return e.side->rank == rank; });
  }

  void read_private(Side const& side, node::Inbox& in, node::Message const& m, Receiver& receiver) {
    auto const& t = *traffic_;
    auto const count = side.at.count();
    if (t.in_place && side.at.contiguous()) return in.read(m, 0, count * t.unit, t.target + side.at.first() * t.unit);
    auto const step = std::max<std::int64_t>(1, private_piece / t.unit);
    if (std::int64_t(piece_.size()) < step * t.unit) piece_.resize(std::size_t(step * t.unit));
    for (std::int64_t first = 0; first < count; first += step) {
      auto const n = std::min(step, count - first);
      in.read(m, first * t.unit, n * t.unit, piece_.data());
      receiver.take(side, first, n, piece_.data());
    }
  }

  void read_lent(Side const& side, std::byte const* array, Receiver& receiver) {
    auto const& t = *traffic_;
    auto const& roots = roots_of(side).at;
    auto const count = side.at.count();
    if (t.in_place && side.at.contiguous()) {
      roots.pack(array, t.target + side.at.first() * t.unit, t.unit);
    } else {  // through a buffer of the first cache
      alignas(64) std::array<std::byte, piece_bytes> buffer;
      auto const step = std::int64_t(buffer.size()) / t.unit;
      if (step == 0) {
        std::vector<std::byte> all(static_cast<std::size_t>(count * t.unit));
        roots.pack(array, all.data(), t.unit);
        return receiver.take(side, 0, count, all.data());
      }
      for (std::int64_t first = 0; first < count; first += step) {
        auto const n = std::min(step, count - first);
        roots.pack(array, buffer.data(), t.unit, first, n);
        receiver.take(side, first, n, buffer.data());
      }
    }
  }

  Traffic const* traffic_ = nullptr;
  std::uint64_t epoch_ = 0;
  bool open_ = false, lent_ = false;
  std::byte const* source_ = nullptr;
  std::vector<Sent> sent_;
  std::vector<Expected> expected_;
  std::size_t next_ = 0;
  std::vector<std::byte> piece_;   // of a message in the sender's process
  std::vector<std::byte> packed_;  // a piece of mine
};

}  // namespace

std::unique_ptr<Transport> shared_memory() { return std::make_unique<SharedMemory>(); }

}  // namespace asterism::comm
