#include "asterism/comm/channels/mpi_ends.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/base/log.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/mpi/batch.hpp"

namespace asterism::comm::channels {
namespace {
constexpr int together = 32;     // sends that are tested together
constexpr int credit_batch = 8;  // releases of which the sender is told together
constexpr std::uint32_t below_mask = 0x7fffffff;
constexpr int look_after = 8;  // sends, for what was sent and for credits
}  // namespace

Requests::Requests(MpiApi::Comm handle, std::shared_ptr<int const> first_tag)
    : handle_(handle), first_tag_(std::move(first_tag)), receives_(mpi()->batch_new()) {
  mpi_carries_messages();  // a rank whose channels are gone moves what the other still sends
}

Requests::~Requests() {
  for (auto const& load : loads_) mpi()->batch_free(load.batch);
  for (auto const& load : spare_) mpi()->batch_free(load.batch);
  mpi()->batch_free(receives_);
}

void Requests::end(bool answered) {
  int alive = 0;
  mpi()->initialized(&alive);  // an interpreter may end MPI before its last objects
  if (!alive) return;
  bool said = false;
  auto const start = std::chrono::steady_clock::now();
  auto const say = [&] {
    if (said || std::chrono::steady_clock::now() - start < std::chrono::milliseconds(10)) return;
    said = true;
    log::warning("Channels go away before everything that was put is taken; they wait for it.");
  };
  for (progress(); !loads_.empty() && answered; progress()) test_until_done(*mpi(), loads_.front().batch, say);
  mpi()->cancel_all(receives_);
}

std::uint64_t Requests::send(void const* data, std::int64_t bytes, int to, Tag tag, Buffer kept) {
  if (loads_.empty() || loads_.back().sends >= together) {
    if (spare_.empty()) spare_.push_back({mpi()->batch_new(), 0, {}});
    loads_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  auto& load = loads_.back();
  check_mpi(mpi()->isend(load.batch, handle_, data, bytes, to, *first_tag_ + tag), "MPI_Isend");
  ++load.sends;
  if (kept.capacity) load.kept.push_back(std::move(kept));
  return first_load_ + loads_.size() - 1;
}

void Requests::progress() {
  for (int done = 1; !loads_.empty(); ++first_load_) {
    auto& load = loads_.front();
    check_mpi(mpi()->testall(load.batch, &done), "MPI_Testall");
    if (!done) return;
    for (auto& b : load.kept) buffers.give(std::move(b));
    load.kept.clear();
    load.sends = 0;
    spare_.push_back(std::move(load));
    loads_.pop_front();
  }
}

int Requests::place() {
  if (free_places_.empty()) return places_++;
  int const out = free_places_.back();
  free_places_.pop_back();
  return out;
}

void Requests::receive(int place, void* to, std::int64_t bytes, int from, Tag tag) {
  check_mpi(mpi()->irecv_at(receives_, place, handle_, to, bytes, from, *first_tag_ + tag), "MPI_Irecv");
}

bool Requests::test(int place) {
  int done = 0;
  std::int64_t bytes = 0;
  check_mpi(mpi()->test_at(receives_, place, &done, &bytes), "MPI_Test");
  return done;
}

MpiSender::MpiSender(std::shared_ptr<Requests> requests, int to)
    : requests_(std::move(requests)), to_(to), credits_(*requests_, to, Requests::credit) {}

MpiSender::Sent MpiSender::send(std::uint32_t channel, std::int64_t& counter, std::span<std::byte const> data, bool lend) {
  auto const bytes = std::int64_t(data.size());
  if (++sent_ % look_after == 0) {
    requests_->progress();
    look();
  }
  auto buffer = requests_->buffers.take(sizeof(Envelope));
  auto* const e = new (buffer.data.get()) Envelope;
  e->channel = channel;
  e->lent = lend;
  e->bytes = bytes;
  if (back_) e->below = back_->carried() & below_mask;
  bool const small = bytes <= Envelope::small_size;
  if (small && bytes > 0) std::memcpy(e->small, data.data(), data.size());
  Sent out{unreleased_.send(&counter), 0};
  ++counter;
  out.load = requests_->send(e, sizeof(Envelope), to_, Requests::envelope, std::move(buffer));
  if (small) return out;
  Buffer copy;
  if (!lend) {
    copy = requests_->buffers.take(data.size());
    std::memcpy(copy.data.get(), data.data(), data.size());
  }
  auto const* const from = lend ? data.data() : copy.data.get();
  out.load = requests_->send(from, bytes, to_, Requests::payload, std::move(copy));
  return out;
}

void MpiSender::look() {
  while (auto const c = credits_.next()) unreleased_.take(*c, [](std::int64_t* counter) { --*counter; });
}

void MpiSender::take_carried(std::uint32_t below) {
  auto const first = unreleased_.first();
  auto const more = (below - std::uint32_t(first)) & below_mask;  // a credit that was overtaken looks like very many
  if (more > 0 && more <= below_mask / 2) unreleased_.take({first + more, 0, {}}, [](std::int64_t* counter) { --*counter; });
}

MpiReceiver::MpiReceiver(std::shared_ptr<Requests> requests, int from, Landing landing)
    : requests_(std::move(requests)),
      from_(from),
      landing_(std::move(landing)),
      envelopes_(*requests_, from, Requests::envelope),
      line_{*requests_, from},
      releases_(line_, credit_batch) {}

void MpiReceiver::Line::send(Credit const& c) const {
  auto buffer = requests.buffers.take(sizeof c);
  auto* const data = new (buffer.data.get()) Credit(c);
  requests.send(data, sizeof c, to, Requests::credit, std::move(buffer));
}

void MpiReceiver::look() {
  while (coming_.size() < ahead) {
    auto const e = envelopes_.next();
    if (!e) return;
    if (back_) back_->take_carried(e->below);
    Message m{count_++, e->channel, e->lent != 0, e->bytes, {}, -1};
    auto* to = landing_(m.channel, m.number);
    bool const small = m.bytes <= Envelope::small_size;
    if (!to) {
      m.buffer = requests_->buffers.take(std::size_t(m.bytes));
      to = m.buffer.data.get();
    }
    if (small) {
      std::memcpy(to, e->small, std::size_t(m.bytes));
    } else {
      m.place = requests_->place();
      requests_->receive(m.place, to, m.bytes, from_, Requests::payload);
    }
    coming_.push_back(std::move(m));
    if (small) return;  // what follows is not waited for; a long one's successors may travel meanwhile
  }
}

bool MpiReceiver::complete(Message& m) {
  if (m.place < 0) return true;
  if (!requests_->test(m.place)) return false;
  requests_->free_place(std::exchange(m.place, -1));
  return true;
}

std::optional<MpiReceiver::Message> MpiReceiver::next() {
  if (coming_.empty() || coming_.front().place >= 0) look();
  if (coming_.empty() || !complete(coming_.front())) return std::nullopt;
  auto out = std::move(coming_.front());
  coming_.pop_front();
  return out;
}

bool MpiReceiver::divert(std::uint64_t number, std::byte const* array) {
  auto const m = std::find_if(coming_.begin(), coming_.end(), [&](Message const& c) { return c.number == number; });
  if (m == coming_.end() || m->buffer.capacity) return true;
  if (!complete(*m)) return false;
  m->buffer = requests_->buffers.take(std::size_t(m->bytes));
  if (m->bytes > 0) std::memcpy(m->buffer.data.get(), array, std::size_t(m->bytes));
  return true;
}

}  // namespace asterism::comm::channels
