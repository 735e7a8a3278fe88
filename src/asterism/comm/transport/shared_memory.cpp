// Between ranks of one machine: the sender gathers straight into memory that both map, the receiver puts it from there
// where it belongs. No MPI call in a steady state. Long messages are published in pieces, so that both copy at once.
#include <algorithm>

#include "asterism/base/profile.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {
namespace {

constexpr std::int64_t piece_bytes = 4 << 10;  // measured: 2-8 KiB are best from 16 KiB to 1 MiB
// A sender that is this far ahead of a receiver waits in close(). Operations that have not ended are never waited for.
constexpr std::size_t far_ahead = 64;
constexpr std::int64_t far_ahead_bytes = 64 << 20;

class SharedMemory final : public Transport {
 public:
  void open(Traffic const& t) override {
    traffic_ = t;
    auto& node = *t.comm->node();
    ++node.operations_under_way;
    places_.clear();
    for (auto const& s : *t.out)
      if (s.way == Way::shared_memory) places_.push_back(node.to(s.node_index).reserve());
    numbers_.clear();
    for (auto const& s : *t.in)
      if (s.way == Way::shared_memory) numbers_.push_back(node.from(s.node_index).expect());
    next_ = 0;
  }

  void send(std::byte const* source) override {
    auto const& t = traffic_;
    auto place = places_.begin();
    for (auto const& s : *t.out) {
      if (s.way != Way::shared_memory) continue;
      auto& out = t.comm->node()->to(s.node_index);
      auto const& p = *place++;
      auto const count = s.at.count(), bytes = count * t.unit;
      auto* const data = out.room(p, bytes);
      auto const step = bytes <= 2 * piece_bytes ? count : std::max<std::int64_t>(1, piece_bytes / t.unit);
      for (std::int64_t first = 0;;) {
        auto const n = std::min(step, count - first);
        s.at.pack(source, data + first * t.unit, t.unit, first, n);
        first += n;
        out.publish(p, first * t.unit);
        if (first >= count) break;
      }
      profile::count_message(1, double(bytes));
    }
  }

  void receive(Side const& side, Taker& taker) override {
    auto const& t = traffic_;
    auto& in = t.comm->node()->from(side.node_index);
    auto const number = numbers_[next_++];  // sides are received in their order
    auto wait = t.comm->node()->patience();
    node::Message* m;
    while (!(m = in.find(number))) wait();
    auto const count = side.at.count();
    ASTERISM_REQUIRE(std::int64_t(m->bytes) == count * t.unit, comm,
                     "rank {} sent {} bytes where {} were expected: the ranks called operations of different items, or in different order.",
                     side.rank, m->bytes, count * t.unit);
    auto const* const data = in.data(*m);
    for (std::int64_t first = 0; first < count && t.unit > 0;) {
      auto const there = in.ready(*m) / t.unit;
      if (there == first) {
        wait();
        continue;
      }
      taker.take(side, first, there - first, data + first * t.unit);
      first = there;
    }
    in.take(number);
  }

  void close() override {
    auto& node = *traffic_.comm->node();
    auto const own = std::size_t(--node.operations_under_way);
    for (auto const& s : *traffic_.out) {
      if (s.way != Way::shared_memory) continue;
      auto& out = node.to(s.node_index);
      auto const ahead = [&] {
        return out.under_way() > own + far_ahead || (out.bytes_under_way() > far_ahead_bytes && out.under_way() > own + 2);
      };
      if (!ahead()) continue;
      auto wait = node.patience();
      for (out.collect(); ahead(); out.collect()) wait();
    }
  }

 private:
  Traffic traffic_;
  std::vector<node::Outbox::Sent> places_;
  std::vector<std::uint64_t> numbers_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Transport> shared_memory() { return std::make_unique<SharedMemory>(); }

}  // namespace asterism::comm
