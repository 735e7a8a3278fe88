#include "asterism/comm/channels/channels.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/channels/ends.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/comm/transport/traffic_record.hpp"

namespace asterism::comm {

using namespace channels;

namespace {

constexpr std::int64_t lend_private_from = 4 << 10;  // below, the system's call costs more than a copy
constexpr int set_aside_at_once = 64;                // messages in one poll

/// By rank and label; throws what is wrong.
std::vector<Channel> checked(Communicator const& comm, std::span<Channel const> given) {
  std::vector<Channel> out(given.begin(), given.end());
  for (auto const& c : out) {
    ASTERISM_REQUIRE(c.rank >= 0 && c.rank < comm.size(), value, "Channels: there is no rank {}; there are {}.", c.rank, comm.size());
    ASTERISM_REQUIRE(c.rank != comm.rank(), value, "Channels: rank {} cannot send to itself.", c.rank);
    ASTERISM_REQUIRE(c.max_bytes >= 1, value, "Channels: messages of at most {} bytes to rank {}; give 1 or more.", c.max_bytes, c.rank);
    ASTERISM_REQUIRE(c.label >= 0, value, "Channels: label {} of a channel to rank {}; labels are 0 or more.", c.label, c.rank);
  }
  auto const key = [](Channel const& c) { return std::pair(c.rank, c.label); };
  std::ranges::sort(out, {}, key);
  auto const twice = std::ranges::adjacent_find(out, {}, key);
  if (twice != out.end())
    fail(ErrorKind::value, "Channels: rank {} is listed twice with label {}. Give each channel to a rank a label of its own.", twice->rank,
         twice->label);
  return out;
}

}  // namespace

struct Channels::Impl {
  Communicator comm;
  std::uint64_t epoch = 0;
  std::vector<Channel> out, in;
  std::optional<MessageRecord> record;
  std::shared_ptr<Requests> requests;  // nothing: no stream by MPI
  std::vector<Target> targets;
  std::vector<Source> sources;
  std::size_t turn = 0;
  unsigned idle = 0;                                  // polls that found nothing
  std::deque<std::pair<Source*, std::uint64_t>> due;  // messages that were set aside and can be delivered
  std::vector<Lent> lent;                             // by ticket
  Ticket tickets = 0;
  Buffers buffers;

  void set_up(TransportChoice transport);
  ~Impl();

  void require_same_epoch() const {
    ASTERISM_REQUIRE(comm.epoch() == epoch, comm, "the channels '{}' were made before the ranks recovered from an error; make new ones.",
                     record->name);
  }
  struct OutEnd {
    Target& target;
    OutChannel& channel;
    std::uint32_t index() const { return std::uint32_t(&channel - target.channels.data()); }
  };
  OutEnd out_end(int rank, int label) {
    auto* const t = with_rank(targets, rank);
    auto* const c = t ? with_label(*t, label) : nullptr;
    ASTERISM_REQUIRE(c, value, "Channels: rank {} with label {} is not one that I said I would send to.", rank, label);
    return {*t, *c};
  }
  OutEnd message_to(int rank, int label, std::size_t bytes);

  Held* found(Source& s);
  Arrival deliver(Source& s, Held& h);
  std::optional<Arrival> poll(Source& s);
  std::optional<Arrival> poll_due();
  /// The first that was set aside is next, if its array is free.
  void advance(Source& s, InChannel& c) {
    if (c.due || c.parked.empty() || (!c.landing.empty() && c.holder != none)) return;
    c.due = true;
    due.emplace_back(&s, c.parked.front());
    c.parked.pop_front();
  }
  /// Where the payload of a message by MPI goes whose envelope was read.
  std::byte* landing_of(Source& s, std::uint32_t channel, std::uint64_t number) {
    auto& c = s.channels[channel];
    if (c.coming++ > 0 || c.landing.empty() || c.holder != none || c.blocks(number)) return nullptr;
    c.holder = number;
    return c.landing.data();
  }
};

Channels::Channels(Communicator const& comm, std::span<Channel const> out, TransportChoice transport) : impl_(std::make_unique<Impl>()) {
  auto& im = *impl_;
  agree(comm, [&] { im.out = checked(comm, out); });
  ASTERISM_REQUIRE(comm.same_on_all_ranks(std::int64_t(transport)), value,
                   "Channels: the ranks give different transports ({} here). Give the same on all ranks.", name_of(transport));
  im.comm = comm;
  im.epoch = comm.epoch();
  im.record.emplace(comm);
  if (comm.size() > 1) im.set_up(transport);
}

void Channels::Impl::set_up(TransportChoice transport) {
  auto const tags = comm.hold_tags();
  // each sender tells the receiver its channels, and before them where its first place is; 0 says that MPI carries this stream
  std::vector<Parcel> parcels;
  agree(comm, [&] {
    for (auto const& c : out) {
      if (targets.empty() || targets.back().rank != c.rank) targets.push_back({c.rank, {}, nullptr, nullptr});
      targets.back().channels.push_back({c, 0});
    }
    for (auto& t : targets) {
      std::uint64_t head = 0;
      auto const kind = reach(comm, transport, t.rank);
      bool const shared = kind == TransportKind::shared_memory;
      if (shared) {
        t.box = std::make_unique<node::Outbox>(*node::Arena::mine(), &comm.node()->mapping(comm.node()->index_of(t.rank))->head().bell);
        head = t.box->head();
      }
      Parcel p{t.rank, {}};
      append<std::uint64_t>(p.data, std::span(&head, 1));
      for (auto const& c : t.channels) append<std::int64_t>(p.data, std::array<std::int64_t, 2>{c.what.label, c.what.max_bytes});
      parcels.push_back(std::move(p));
      record->add_target(t.rank, shared ? TransportKind::shared_memory : TransportKind::point_to_point);
    }
  });
  auto const parts = asterism::comm::exchange(comm, std::move(parcels));
  agree(comm, [&] {
    auto const stream = [&]() -> std::shared_ptr<Requests> const& {
      if (!requests) requests = std::make_shared<Requests>(comm.handle(), tags);
      return requests;
    };
    for (auto& t : targets)
      if (!t.box) t.line = std::make_unique<MpiSender>(stream(), t.rank);
    sources.resize(parts.size());  // they stay where they are
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto& s = sources[i];
      auto const words = items_of<std::int64_t>(parts[i].data);
      s.rank = parts[i].rank;
      for (std::size_t at = 1; at < words.size(); at += 2) {
        in.push_back({s.rank, words[at + 1], int(words[at])});
        s.channels.emplace_back().what = in.back();
      }
      if (auto const head = std::uint64_t(words[0]))
        s.box = std::make_unique<node::Inbox>(comm.node()->mapping(comm.node()->index_of(s.rank)), head);
      else s.line = std::make_unique<MpiReceiver>(stream(), s.rank, [this, &s](auto channel, auto n) { return landing_of(s, channel, n); });
      if (auto* const t = with_rank(targets, s.rank); t && t->line && s.line) {
        t->line->set_back(s.line.get());
        s.line->set_back(t->line.get());
      }
    }
  });
}

Channels::Impl::~Impl() {
  bool const answered = comm.epoch() == epoch;
  int alive = 0;
  if (requests) mpi()->initialized(&alive);
  try {
    if (alive && answered) {
      for (auto const& t : targets)
        if (t.line) t.line->look();
      for (auto const& s : sources)
        if (s.line) s.line->flush();
      requests->progress();
    }
    auto const still_out = std::ranges::count_if(lent, [](Lent const& l) { return !l.returned(); });
    if (still_out > 0) log::warning("Channels '{}' go away while {} lent arrays were not returned.", record->name, still_out);
    if (requests) requests->end(answered);
  } catch (Error const& e) {
    log::warning("while channels went away: {}", e.what());
  }
  if (requests && !answered) comm.give_up(requests);  // MPI may still read what was sent
}

Channels::Channels(Channels&&) noexcept = default;
Channels& Channels::operator=(Channels&&) noexcept = default;
Channels::~Channels() = default;

std::string const& Channels::name() const { return impl_->record->name; }
void Channels::set_name(std::string name) { impl_->record->name = std::move(name); }
std::span<Channel const> Channels::out() const { return impl_->out; }
std::span<Channel const> Channels::in() const { return impl_->in; }
device::Array const& Channels::order_token() const { return impl_->comm.order_token(); }

Channels::Impl::OutEnd Channels::Impl::message_to(int rank, int label, std::size_t bytes) {
  require_same_epoch();
  auto const end = out_end(rank, label);
  ASTERISM_REQUIRE(std::int64_t(bytes) <= end.channel.what.max_bytes, shape,
                   "Channels: a message of {} bytes to rank {} with label {}; at most {} were announced.", bytes, rank, label,
                   end.channel.what.max_bytes);
  profile::count_message(1, double(bytes));
  record->count(std::size_t(&end.target - targets.data()), std::int64_t(bytes));
  return end;
}

namespace {
node::Outbox::Sent place_for(node::Outbox& box, OutChannel& channel) {
  auto const sent = box.reserve();
  sent.place->counter = &channel.under_way;
  ++channel.under_way;
  return sent;
}
node::Outbox::Sent copy_into(node::Outbox& box, std::uint32_t index, OutChannel& channel, std::span<std::byte const> data) {
  auto const sent = place_for(box, channel);
  box.put(sent, index, data.data(), std::int64_t(data.size()));
  return sent;
}
}  // namespace

void Channels::put(int rank, std::span<std::byte const> data, int label) {
  auto const end = impl_->message_to(rank, label, data.size());
  if (end.target.box) copy_into(*end.target.box, end.index(), end.channel, data);
  else end.target.line->send(end.index(), end.channel.under_way, data, false);
}

Channels::Ticket Channels::lend(int rank, std::span<std::byte const> data, int label) {
  auto& im = *impl_;
  auto const end = im.message_to(rank, label, data.size());
  auto& target = end.target;
  auto const bytes = std::int64_t(data.size());
  Lent l{im.tickets, &target, {}, {}};
  if (target.line) {
    l.by_mpi = target.line->send(end.index(), end.channel.under_way, data, true);
  } else {
    bool const shared = node::Arena::mine()->contains(data.data());
    if (bytes > node::Message::small_size && (shared || (bytes >= lend_private_from && im.comm.node()->reads_private()))) {
      l.by_box = place_for(*target.box, end.channel);
      l.by_box.place->message->channel = end.index();
      target.box->lend(l.by_box, shared ? node::Place::block : node::Place::process, data.data(), bytes);
    } else {
      l.by_box = copy_into(*target.box, end.index(), end.channel, data);
    }
  }
  im.lent.push_back(l);
  return im.tickets++;
}

bool Channels::returned(Ticket ticket) {
  auto& im = *impl_;
  ASTERISM_REQUIRE(ticket < im.tickets, value, "Channels: there is no ticket {}; {} were given.", ticket, im.tickets);
  auto const at = std::lower_bound(im.lent.begin(), im.lent.end(), ticket, [](Lent const& l, Ticket t) { return l.ticket < t; });
  if (at == im.lent.end() || at->ticket != ticket) return true;
  im.require_same_epoch();
  if (at->target->line) {
    at->target->line->look();
    im.requests->progress();
  }
  if (!at->returned()) return false;
  im.lent.erase(at);
  return true;
}

bool Channels::all_returned() {
  auto& im = *impl_;
  if (im.lent.empty()) return true;
  im.require_same_epoch();
  for (auto const& t : im.targets)
    if (t.line) t.line->look();
  if (im.requests) im.requests->progress();
  std::erase_if(im.lent, [](Lent const& l) { return l.returned(); });
  return im.lent.empty();
}

std::int64_t Channels::under_way(int rank, int label) {
  auto const end = impl_->out_end(rank, label);
  impl_->require_same_epoch();
  if (end.target.box) end.target.box->collect(end.target.box->under_way());
  else end.target.line->look();
  return end.channel.under_way;
}

void Channels::land_in(int rank, std::span<std::byte> array, int label) {
  auto& im = *impl_;
  im.require_same_epoch();
  auto* const s = with_rank(im.sources, rank);
  auto* const c = s ? with_label(*s, label) : nullptr;
  ASTERISM_REQUIRE(c, value, "Channels: rank {} has no channel with label {} to this rank.", rank, label);
  ASTERISM_REQUIRE(array.empty() || std::int64_t(array.size()) >= c->what.max_bytes, shape,
                   "Channels: an array of {} bytes for messages of up to {} bytes from rank {} with label {}.", array.size(),
                   c->what.max_bytes, rank, label);
  if (s->line && c->holder != none && !s->find(c->holder)) {  // on its way into the array before
    Wait patience(im.comm, Wait::For::messages);
    while (!s->line->divert(c->holder, c->landing.data())) patience();
    c->holder = none;
  }
  c->landing = array;
  im.advance(*s, *c);
}

/// The next message of a sender, with no more than its place; nullptr if there is none.
Held* Channels::Impl::found(Source& s) {
  if (s.box) {
    auto* const m = s.box->find(s.next);
    if (!m) return nullptr;
    auto& h = s.held.emplace_back(s.next++, m);
    h.delivered = false;
    return &h;
  }
  auto m = s.line->next();
  if (!m) return nullptr;
  --s.channels[m->channel].coming;
  return &s.held.emplace_back(s.next++, std::move(*m));
}

Channels::Arrival Channels::Impl::deliver(Source& s, Held& h) {
  auto& c = s.channels[h.channel];
  auto* const landing = c.landing.data();
  std::byte const* data = landing;
  auto const bytes = h.bytes;
  if (s.box && h.message->place == node::Place::process) {
    auto* to = landing;
    if (!to) {
      h.buffer = buffers.take(bytes);
      data = to = h.buffer.data.get();
    }
    s.box->read(*h.message, 0, std::int64_t(bytes), to);
  } else {
    auto const* const from = s.box ? s.box->data(*h.message) : h.buffer.data.get();  // nullptr: it is in the array already
    if (!landing) data = from;
    else if (from && bytes > 0) std::memcpy(landing, from, bytes);
  }
  if (landing) c.holder = h.number;
  h.delivered = true;
  return {s.rank, c.what.label, {data, bytes}, h.number, landing != nullptr};
}

std::optional<Channels::Arrival> Channels::Impl::poll(Source& s) {
  for (int i = 0; i < set_aside_at_once; ++i) {
    auto* const h = found(s);
    if (!h) return std::nullopt;
    auto& c = s.channels[h->channel];
    if (!c.blocks(h->number)) return deliver(s, *h);
    c.parked.push_back(h->number);
  }
  return std::nullopt;
}

/// The first of those that were set aside and can come now; there is one.
std::optional<Channels::Arrival> Channels::Impl::poll_due() {
  auto const [s, number] = due.front();
  due.pop_front();
  auto& held = *s->find(number);
  auto& c = s->channels[held.channel];
  c.due = false;
  if (!c.landing.empty() && c.holder != none) {  // an array was given meanwhile, and is in use
    c.parked.push_front(number);
    return std::nullopt;
  }
  auto const a = deliver(*s, held);
  advance(*s, c);
  return a;
}

std::optional<Channels::Arrival> Channels::poll() {
  auto& im = *impl_;
  if (im.requests) im.require_same_epoch();
  if (im.turn >= im.sources.size()) {  // those that were set aside have a turn too
    im.turn = 0;
    if (!im.due.empty())
      if (auto const a = im.poll_due()) return a;
  }
  for (std::size_t i = 0; i < im.sources.size(); ++i) {
    if (im.turn >= im.sources.size()) im.turn = 0;
    auto& s = im.sources[im.turn++];
    if (s.box) {  // mostly there is nothing, or what nothing stands before
      auto* const m = s.box->find(s.next);
      if (!m) continue;
      auto const& c = s.channels[m->channel];
      if (c.landing.empty() && !c.due && c.parked.empty() && m->place != node::Place::process) {
        s.held.emplace_back(s.next, m);
        return Arrival{s.rank, c.what.label, {s.box->data(*m), std::size_t(m->bytes)}, s.next++, false};
      }
    }
    if (auto const a = im.poll(s)) return a;
  }
  if (!im.due.empty())
    if (auto const a = im.poll_due()) return a;
  im.require_same_epoch();
  if (im.requests) {
    for (auto const& s : im.sources)
      if (s.line) s.line->flush();
    if (++im.idle % 32 == 0) {  // nobody waits for these
      for (auto const& t : im.targets)
        if (t.line) t.line->look();
      im.requests->progress();
    }
  }
  return std::nullopt;
}

Channels::Arrival Channels::wait() {
  auto& im = *impl_;
  ASTERISM_REQUIRE(!im.sources.empty(), comm, "Channels: nobody sends to rank {}; it would wait for ever.", im.comm.rank());
  Wait patience(im.comm, im.requests ? Wait::For::messages : Wait::For::memory);
  while (true) {
    if (auto const a = poll()) return *a;
    patience();
  }
}

void Channels::release(Arrival const& a) {
  auto& im = *impl_;
  if (im.requests) im.require_same_epoch();
  auto* const s = with_rank(im.sources, a.rank);
  auto* const h = s ? s->find(a.key) : nullptr;
  ASTERISM_REQUIRE(h && h->delivered, value,
                   "Channels: the message of rank {} that is released did not arrive here, or was released before.", a.rank);
  auto& c = s->channels[h->channel];
  if (c.holder == a.key) c.holder = none;
  if (s->box) s->box->take(a.key);
  else s->line->release(a.key, h->lent);
  if (h->buffer.data) (s->box ? im.buffers : im.requests->buffers).give(std::move(h->buffer));
  if (h == &s->held.back()) s->held.pop_back();
  else s->held.erase(s->held.begin() + (h - s->held.data()));
  im.advance(*s, c);
}

}  // namespace asterism::comm
