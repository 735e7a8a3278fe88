// What a star forest is made of; for the files that set it up and run it.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/forest/call_check.hpp"
#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/comm/transport/traffic_record.hpp"
#include "asterism/comm/transport/transport.hpp"

namespace asterism::comm {

using SharedTransports = std::array<std::shared_ptr<SharedTransport>, transport_kinds>;
using Uses = std::array<bool, transport_kinds>;

/// One operation's messages in one direction, over the transports that the forest's neighbours need.
class Route {
 public:
  /// The messages, to be filled in before open().
  Traffic traffic;

  void open(Uses const& uses, SharedTransports const& shared_transports) {
    uses_ = uses;
    for (std::size_t w = 0; w < uses.size(); ++w) {
      if (!uses[w] || TransportKind(w) == TransportKind::self) continue;
      auto& t = by_kind_[w];
      if (!t)
        t = shared_transports[w]                               ? shared_transports[w]->transport()
            : TransportKind(w) == TransportKind::shared_memory ? shared_memory()
                                                               : point_to_point();
      t->open(traffic, TransportKind(w));
    }
  }
  void send(std::byte const* source) {
    each([&](Transport& t) { t.send(source); });
  }
  void receive(Side const& side, Receiver& receiver) { by_kind_[std::size_t(side.transport)]->receive(side, receiver); }
  void close() {
    each([](Transport& t) { t.close(); });
  }

 private:
  template <class F>
  void each(F const& f) {
    for (std::size_t w = 1; w < uses_.size(); ++w)
      if (uses_[w]) f(*by_kind_[w]);
  }
  std::array<std::unique_ptr<Transport>, transport_kinds> by_kind_;
  Uses uses_{};
};

struct StarForest::Flight::State final : Receiver {
  std::shared_ptr<Impl> forest;
  Route forth, back;  // back: of fetch_and_op
  std::vector<Side> const *from = nullptr, *to = nullptr;
  std::byte const* source = nullptr;
  std::byte* target = nullptr;
  std::int64_t unit = 0;
  Combine combine;
  bool in_place = false;          // what comes last stays
  bool distinct = false;          // every place gets one value at most: no order to keep
  std::byte* update = nullptr;    // fetch_and_op: where the leaves' old root values go
  std::vector<std::byte> packed;  // my own edges' values
  std::optional<SourceCopy> before;
  bool helped = false;       // by the progress thread
  std::uint64_t epoch = 0;   // of the communicator, when it began
  std::uint64_t serial = 0;  // of the call that it began in

  void take(Side const& s, std::int64_t first, std::int64_t count, std::byte const* data) override {
    if (in_place) s.at.unpack(data, target, unit, first, count, distinct);
    else s.at.combine(combine, data, target, unit, first, count);
  }
  /// My own edges' values in the order of the edges: where they lie if they are contiguous, else packed.
  std::byte const* own_values(int rank);
};

struct StarForest::Impl {
  Communicator comm;
  TransportChoice choice = TransportChoice::automatic;
  std::int64_t roots = 0, leaf_space = 0, leaf_count = 0;
  std::vector<Side> leaf_sides;        // by owner rank, mine included
  std::vector<Side> root_sides;        // by leaf rank, mine included; same order of edges as the other side's
  std::vector<Side> dense_roots;       // the same edges in a buffer with a place for each, for fetch_and_op
  std::vector<Side> remote;            // offsets of the roots of leaf_sides at their owners
  Uses uses{};                         // which transports its neighbours need
  SharedTransports shared_transports;  // of the transports that need one
  // several values may meet in one place: a replace must then keep the order of ranks
  bool shared_roots = false, shared_leaves = false;
  std::int64_t repeated_leaf = -1;
  std::uint64_t epoch = 0;  // of the communicator, when it was made
  std::optional<StarForest> multi;
  std::optional<TrafficRecord> record;
  std::vector<std::unique_ptr<Flight::State>> idle;  // with their buffers and requests, for the next operation

  /// The set-up once the sides at my leaves are there: the other sides from what other ranks sent, transports, and whether roots are
  /// shared. Collective.
  void connect(std::vector<Parcel> const& received);
  Parcel parcel(int rank, IndexSet const& roots_there) const;
  void find_shared_leaves();
  void make_root_sides(std::vector<Parcel> const& received);
  void choose_transports();
  void make_shared_transports();  // collective
  bool needs_mpi() const {
    for (std::size_t w = 0; w < uses.size(); ++w)
      if (uses[w] && TransportKind(w) != TransportKind::self && TransportKind(w) != TransportKind::shared_memory) return true;
    return false;
  }
  std::unique_ptr<Flight::State> take_idle() {
    if (idle.empty()) return std::make_unique<Flight::State>();
    auto s = std::move(idle.back());
    idle.pop_back();
    return s;
  }

  Flight start_together(std::shared_ptr<Impl> const& self, std::vector<Side> const& from, std::vector<Side> const& to, void const* source,
                        void* target, Items const& items, Operation const& op, void* update, bool at_once);
  Flight start(std::shared_ptr<Impl> const& self, std::vector<Side> const& from, std::vector<Side> const& to, void const* source,
               void* target, Items const& items, Operation const& op, void* update, bool at_once);
  void end(Flight::State& state);
  void end_fetch(Flight::State& state);
  void end_together(Flight::State& state);
  void require_under_way(Flight::State const& state) const;
};

}  // namespace asterism::comm
