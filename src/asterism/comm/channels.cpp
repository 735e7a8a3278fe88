#include "asterism/comm/channels.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/mpi/batch.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/comm/transport/traffic_record.hpp"

namespace asterism::comm {
namespace {

constexpr int posted_receives = 8;  // for each sender by MPI

struct Target {
  int rank = 0;
  std::unique_ptr<node::Outbox> box;  // nothing: by MPI
};

struct Source {
  int rank = 0;
  std::unique_ptr<node::Inbox> box;
  std::uint64_t next = 0;
  std::vector<std::uint64_t> held;  // keys of arrivals that were not released
  std::deque<int> posted;           // by MPI: its receives in the order in which they were posted, and complete
};

template <class End>
End* with_rank(std::vector<End>& ends, int rank) {
  auto const at = std::lower_bound(ends.begin(), ends.end(), rank, [](End const& e, int r) { return e.rank < r; });
  return at != ends.end() && at->rank == rank ? &*at : nullptr;
}

}  // namespace

struct Channels::Impl {
  Communicator comm;
  MpiApi::Comm handle = 0;  // as it was when the receives were posted
  std::int64_t max_bytes = 0;
  int tag = 0;
  std::vector<Target> targets;
  std::vector<Source> sources;
  std::vector<int> source_ranks;
  std::optional<MessageRecord> record;
  std::size_t turn = 0;
  // by MPI
  MpiApi::Batch receives = nullptr, sends = nullptr;
  std::vector<std::byte> landing;
  std::vector<std::unique_ptr<std::byte[]>> sent;  // until all of them are out

  std::byte* place(int receive) { return landing.data() + receive * max_bytes; }
  void post(Source& s, int receive) {
    check_mpi(mpi()->irecv_at(receives, receive, handle, place(receive), max_bytes, s.rank, tag), "MPI_Irecv");
    s.posted.push_back(receive);
  }
  void progress_sends() {
    int done = 1;
    if (!sent.empty()) check_mpi(mpi()->testall(sends, &done), "MPI_Testall");
    if (done) sent.clear();
  }
  ~Impl() {
    int alive = 0;
    if (sends || receives) mpi()->initialized(&alive);  // an interpreter may end MPI before its last objects
    if (sends && alive) {
      int done = 1;
      mpi()->testall(sends, &done);
      if (!done) {
        log::warning("Channels go away before everything that was put is taken; they wait for it.");
        test_until_done(*mpi(), sends, [] {});
      }
    }
    if (receives && alive) mpi()->cancel_all(receives);
    for (auto const batch : {sends, receives})
      if (batch) mpi()->batch_free(batch);
  }
};

Channels::Channels(Communicator const& comm, std::span<int const> to, std::int64_t max_bytes, TransportChoice transport)
    : impl_(std::make_unique<Impl>()) {
  auto& im = *impl_;
  agree(comm, [&] {
    ASTERISM_REQUIRE(max_bytes >= 1, value, "Channels: messages of at most {} bytes.", max_bytes);
    for (std::size_t i = 0; i < to.size(); ++i) {
      ASTERISM_REQUIRE(to[i] >= 0 && to[i] < comm.size(), value, "Channels: there is no rank {}; there are {}.", to[i], comm.size());
      ASTERISM_REQUIRE(to[i] != comm.rank(), value, "Channels: rank {} cannot send to itself.", to[i]);
      ASTERISM_REQUIRE(std::find(to.begin(), to.begin() + std::ptrdiff_t(i), to[i]) == to.begin() + std::ptrdiff_t(i), value,
                       "Channels: rank {} is listed twice.", to[i]);
    }
  });
  ASTERISM_REQUIRE(comm.same_on_all_ranks(max_bytes * 4 + std::int64_t(transport)), value,
                   "Channels: the ranks give different sizes or transports ({} bytes, {} here).", max_bytes, name_of(transport));
  im.comm = comm;
  im.max_bytes = max_bytes;
  im.record.emplace(comm);
  if (comm.size() == 1) return;
  im.tag = comm.new_tag();
  im.handle = comm.handle();
  // a sender's first place goes to the receiver with its name; 0 says that MPI carries this one
  std::vector<Parcel> parcels;
  agree(comm, [&] {
    for (int const rank : to) {
      Target t{rank, nullptr};
      std::uint64_t head = 0;
      if (reach(comm, transport, rank) == TransportKind::shared_memory) {
        t.box = std::make_unique<node::Outbox>(*node::Arena::mine(), &comm.node()->mapping(comm.node()->index_of(rank))->head().bell);
        head = t.box->head();
      }
      Parcel p{rank, {}};
      append<std::uint64_t>(p.data, std::span(&head, 1));
      parcels.push_back(std::move(p));
      im.targets.push_back(std::move(t));
    }
    std::sort(im.targets.begin(), im.targets.end(), [](auto const& x, auto const& y) { return x.rank < y.rank; });
    for (auto const& t : im.targets) im.record->add_target(t.rank, t.box ? TransportKind::shared_memory : TransportKind::point_to_point);
  });
  int by_mpi = 0;
  auto const heads = exchange(comm, std::move(parcels));
  agree(comm, [&] {
    for (auto const& p : heads) {
      auto const head = items_of<std::uint64_t>(p.data)[0];
      Source s;
      s.rank = p.rank;
      if (head) s.box = std::make_unique<node::Inbox>(comm.node()->mapping(comm.node()->index_of(p.rank)), head);
      else ++by_mpi;
      im.sources.push_back(std::move(s));
      im.source_ranks.push_back(p.rank);
    }
  });
  if (std::any_of(im.targets.begin(), im.targets.end(), [](auto const& t) { return !t.box; })) im.sends = mpi()->batch_new();
  if (by_mpi) {
    im.receives = mpi()->batch_new();
    im.landing.resize(std::size_t(posted_receives * by_mpi * max_bytes));
    int receive = 0;
    for (auto& s : im.sources)
      for (int i = 0; !s.box && i < posted_receives; ++i) im.post(s, receive++);
  }
}

Channels::Channels(Channels&&) noexcept = default;
Channels& Channels::operator=(Channels&&) noexcept = default;
Channels::~Channels() = default;

std::string const& Channels::name() const { return impl_->record->name; }
void Channels::set_name(std::string name) { impl_->record->name = std::move(name); }

std::span<int const> Channels::sources() const { return impl_->source_ranks; }

void Channels::put(int rank, std::span<std::byte const> data) {
  auto& im = *impl_;
  auto const bytes = std::int64_t(data.size());
  auto const t = with_rank(im.targets, rank);
  ASTERISM_REQUIRE(t, value, "Channels: rank {} is not one that I said I would send to.", rank);
  ASTERISM_REQUIRE(bytes <= im.max_bytes, shape, "Channels: a message of {} bytes; at most {} were announced.", bytes, im.max_bytes);
  profile::count_message(1, double(bytes));
  im.record->count(std::size_t(t - im.targets.data()), bytes);
  if (t->box) {
    auto const sent = t->box->reserve();
    auto* const room = t->box->room(sent, bytes);
    t->box->write(room, data.data(), bytes);
    t->box->publish(sent, bytes);
    return;
  }
  im.progress_sends();
  auto copy = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(data.size(), 1));
  if (bytes > 0) std::memcpy(copy.get(), data.data(), data.size());
  check_mpi(mpi()->isend(im.sends, im.handle, copy.get(), bytes, rank, im.tag), "MPI_Isend");
  im.sent.push_back(std::move(copy));
}

std::optional<Channels::Arrival> Channels::poll() {
  auto& im = *impl_;
  for (std::size_t i = 0; i < im.sources.size(); ++i) {
    auto const at = im.turn;
    im.turn = at + 1 == im.sources.size() ? 0 : at + 1;
    auto& s = im.sources[at];
    if (s.box) {
      auto* const m = s.box->find(s.next);
      if (!m) continue;
      s.held.push_back(s.next++);
      return Arrival{s.rank, {s.box->data(*m), std::size_t(m->bytes)}, s.held.back()};
    } else if (!s.posted.empty()) {
      int const receive = s.posted.front();
      int done = 0;
      std::int64_t bytes = 0;
      check_mpi(mpi()->test_at(im.receives, receive, &done, &bytes), "MPI_Test");
      if (!done) continue;
      s.posted.pop_front();
      s.held.push_back(std::uint64_t(receive));
      return Arrival{s.rank, {im.place(receive), std::size_t(bytes)}, s.held.back()};
    }
  }
  if (im.sends) im.progress_sends();
  return std::nullopt;
}

Channels::Arrival Channels::wait() {
  auto& im = *impl_;
  ASTERISM_REQUIRE(!im.sources.empty(), comm, "Channels: nobody sends to rank {}; it would wait for ever.", im.comm.rank());
  Wait patience(im.comm, im.receives ? Wait::For::messages : Wait::For::memory);
  while (true) {
    if (auto const a = poll()) return *a;
    patience();
  }
}

void Channels::release(Arrival const& a) {
  auto& im = *impl_;
  auto* const s = with_rank(im.sources, a.rank);
  ASTERISM_REQUIRE(s && std::erase(s->held, a.key) == 1, value,
                   "Channels: the message of rank {} that is released did not arrive here, or was released before.", a.rank);
  if (s->box) s->box->take(a.key);
  else im.post(*s, int(a.key));
}

}  // namespace asterism::comm
