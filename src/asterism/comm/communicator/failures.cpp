#include "asterism/comm/communicator/failures.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "asterism/comm/node/node.hpp"
#include "asterism/device/host/patience.hpp"

namespace asterism::comm {
namespace {

constexpr int failure_tag = Communicator::failure_tag;
/// A report of an earlier call, of which this rank was through, is waited for so long: what is waited for may still come.
constexpr std::int64_t grace = 200'000'000;

/// As a message.
struct Letter {
  std::uint64_t serial;
  std::int32_t rank, kind, ended;
  char text[1000];
};

void copy_text(char (&to)[1000], std::string const& text) {
  auto const n = std::min(text.size(), sizeof to - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

node::Head* head() {
  auto* const arena = node::Arena::mine();
  return arena ? &arena->head() : nullptr;
}

}  // namespace

void Failures::watch(int ranks, node::Node const& here) {
  far = here.size() < ranks || !here.shares_memory();
  auto const* const mine = head();
  alarms = mine ? &mine->alarms : nullptr;
}

std::string Failures::Report::said() const { return text.starts_with("rank ") ? text : format("rank {}: {}", rank, text); }

namespace {

void take_news(Failures& f, Failures::Report report) {
  if (report.ended) {
    if (!f.ended || report.serial < f.ended->serial) f.ended = std::move(report);
    f.news = true;
    return;
  }
  if (report.serial <= f.handled) return;
  if (f.known && (f.known->serial < report.serial || (f.known->serial == report.serial && f.known->rank <= report.rank))) return;
  report.seen = device::host::now();
  f.known = std::move(report);
  f.news = true;
}

void tell_neighbours(Communicator const& comm, Letter const& letter) {
  auto* const mine = head();
  auto* const node = comm.node();
  if (!mine || !node->shares_memory()) return;
  static std::atomic<unsigned> next{0};
  auto& slot = mine->failures[next++ % std::size(mine->failures)];
  slot.communicator.store(0, std::memory_order_release);
  slot.serial = letter.serial;
  slot.rank = letter.rank;
  slot.kind = letter.kind;
  slot.ended = letter.ended;
  std::memcpy(slot.text, letter.text, sizeof slot.text);
  slot.communicator.store(comm.failures().communicator, std::memory_order_release);
  for (int i = 0; i < node->size(); ++i) {
    if (i == node->index_of(comm.rank())) continue;
    auto& theirs = node->mapping(i)->head();
    theirs.alarms.fetch_add(1, std::memory_order_seq_cst);
    theirs.bell.ring();
  }
}

void tell_others_by_messages(Communicator const& comm, Letter const& letter) {
  if (!comm.failures().far) return;
  auto* const kept = new Letter(letter);  // as long as MPI may want it
  auto const batch = mpi()->batch_new();
  for (int r = 0; r < comm.size(); ++r)
    if (r != comm.rank() && comm.node()->index_of(r) < 0) mpi()->isend(batch, comm.handle(), kept, sizeof *kept, r, failure_tag);
  int done = 0;
  mpi()->testall(batch, &done);
}

void look_in_memory(Communicator const& comm, Failures& f) {
  auto* const node = comm.node();
  if (!node->shares_memory()) return;
  for (int i = 0; i < node->size(); ++i) {
    if (i == node->index_of(comm.rank())) continue;
    for (auto const& slot : node->mapping(i)->head().failures)
      if (slot.communicator.load(std::memory_order_acquire) == f.communicator)
        take_news(f, {slot.serial, slot.rank, ErrorKind(slot.kind), slot.text, slot.ended != 0, 0});
  }
}

void look_for_letters(Communicator const& comm, Failures& f) {
  for (;;) {
    int found = 0, source = 0;
    std::int64_t bytes = 0;
    if (mpi()->iprobe(comm.handle(), failure_tag, &found, &source, &bytes) != 0 || !found || bytes != sizeof(Letter)) return;
    auto letter = std::make_unique<Letter>();
    auto const batch = mpi()->batch_new();
    int done = mpi()->irecv(batch, comm.handle(), letter.get(), bytes, source, failure_tag) != 0;
    while (!done)
      if (mpi()->testall(batch, &done) != 0) return;
    mpi()->batch_free(batch);
    take_news(f, {letter->serial, letter->rank, ErrorKind(letter->kind), letter->text, false, 0});
  }
}

}  // namespace

void Failures::report(Communicator const& comm, ErrorKind kind, std::string const& text) noexcept {
  try {
    auto& f = comm.failures();
    f.break_off();
    Letter letter{f.serial, comm.rank(), std::int32_t(kind), 0, {}};
    copy_text(letter.text, text);
    tell_neighbours(comm, letter);
    tell_others_by_messages(comm, letter);
  } catch (...) {  // the error that is under way is the one to be told
  }
}

void Failures::report_end(Communicator const& comm) noexcept {
  try {
    Letter letter{CollectiveCall::next_after(comm.failures().serial), comm.rank(), std::int32_t(ErrorKind::comm), 1, {}};
    copy_text(letter.text,
              format("rank {} has ended its program, while other ranks go on with calls that all ranks make together.", comm.rank()));
    tell_neighbours(comm, letter);
  } catch (...) {  // it ends
  }
}

void Failures::look(Communicator const& comm, bool far) {
  auto& f = comm.failures();
  std::lock_guard const lock(f.mutex);
  if (f.alarms) {
    auto const alarms = f.alarms->load(std::memory_order_seq_cst);
    if (alarms != f.alarms_seen) look_in_memory(comm, f);
    f.alarms_seen = alarms;
  }
  if (far && f.far) look_for_letters(comm, f);
}

bool Failures::known_since(Communicator const& comm, std::uint64_t serial) {
  auto& f = comm.failures();
  look_for_news(comm);
  if (!f.news) return false;
  std::lock_guard const lock(f.mutex);
  return f.broken || (f.known && f.known->serial >= serial && f.known->serial <= f.serial);
}

void Failures::require_none(Communicator const& comm) {
  auto& f = comm.failures();
  std::lock_guard const lock(f.mutex);
  if (f.ended && f.serial >= f.ended->serial) {
    f.break_off();
    throw Error(f.ended->kind, f.ended->text, true);
  }
  if (!f.known) return;
  auto const& k = *f.known;
  if (k.serial != f.serial && device::host::now() - k.seen < grace) return;
  f.break_off();
  f.late = k.serial != f.serial;
  throw Error(k.kind, k.said(), true);
}

std::atomic<std::uint64_t> CollectiveCall::last_begun{0};

void CollectiveCall::throw_second_thread(char const* name) {
  throw Error(ErrorKind::unsupported,
              format("{}: another thread is in a call that all ranks make together. On several ranks threads have no common order: let one "
                     "thread make all of them, or give each a communicator of its own.",
                     name),
              true);
}

/// Recovers, or throws what has been reported of this very call, which others were in first.
void CollectiveCall::attend_to_news(Communicator const& comm, bool look) try {
  auto& f = comm.failures();
  if (look) Failures::look_for_news(comm);
  if (!f.news.load(std::memory_order_relaxed)) return;
  auto const of_call = [&] {  // that the first report is of, or 0
    std::lock_guard const lock(f.mutex);
    return f.known ? f.known->serial : 0;
  };
  if (Failures::has_ended(f)) Failures::require_none(comm);
  if (auto const failed = of_call(); f.broken || (failed > 0 && failed < f.serial)) comm.recover();
  if (of_call() > 0) Failures::require_none(comm);
} catch (...) {
  comm.failures().thread.store(0, std::memory_order_release);
  throw;
}

void CollectiveCall::recover_late() const {
  comm_->failures().late = false;
  try {
    comm_->recover(true);
  } catch (Error const&) {  // the error that ends this call is on its way
  }
}

void CollectiveCall::failed(std::exception_ptr const& error) const noexcept {
  if (!comm_) return;
  try {
    std::rethrow_exception(error);
  } catch (Error const& e) {
    if (!e.shared()) failed(e.kind(), e.what());
  } catch (std::bad_alloc const&) {
    failed(ErrorKind::memory, "out of memory.");
  } catch (std::exception const& e) {
    failed(ErrorKind::value, e.what());
  } catch (...) {
    failed(ErrorKind::internal, "an unknown error");
  }
}

void CollectiveCall::failed(ErrorKind kind, std::string const& text) const noexcept {
  if (comm_) Failures::report(*comm_, kind, text);
}

}  // namespace asterism::comm
