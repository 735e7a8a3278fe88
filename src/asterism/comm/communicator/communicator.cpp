#include "asterism/comm/communicator/communicator.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/held_tags.hpp"
#include "asterism/comm/communicator/node_collective.hpp"
#include "asterism/comm/communicator/wait.hpp"
#include "asterism/comm/mpi/batch.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/device/host/task_queue.hpp"

namespace asterism::comm {
void load_mpi_plugin(std::string const& path) {
  static int const once = pthread_atfork(nullptr, nullptr, [] { Communicator::made_by_fork = true; });
  (void)once;
  if (open_mpi_plugin(path)) mpi()->when_freed(Communicator::forget, Communicator::program_ends);
}

namespace {
constexpr char const* not_by_fork =
    "a process made by fork cannot communicate by MPI, as its parent does. Start ranks by mpiexec; in a child use no communicator.";
}

struct Communicator::Impl : Core {
  std::uint64_t parent = 0;  // the user's handle
  Failures all_of_failures;
  bool recovering = false;
  std::vector<std::shared_ptr<void const>> given_up;
  std::shared_ptr<node::Node> ranks_here;
  struct Kept {
    std::weak_ptr<void> user;
    std::function<int()> free;
  };
  std::vector<Kept> kept;  // in the same order on all ranks
  std::map<std::string, std::shared_ptr<void>> memos;
  HeldTags held_tags;
  Impl() { failures = &all_of_failures; }
  void join() {  // collective
    ranks_here = node::Node::join(*mpi(), handle, rank);
    node = ranks_here.get();
    failures->watch(size, *node);
  }
};

Communicator::Impl& Communicator::impl() const { return static_cast<Impl&>(*impl_); }

Communicator::Communicator() {
  static auto const self = std::make_shared<Impl>();
  impl_ = self;
}

namespace {
/// Those of MPI's communicators, by our duplicate's handle. Another communicator may have it when this one was freed: then it must be known
/// on no rank, as being made known is collective.
struct MpiGroups {
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<void>> all;
  std::set<std::uint64_t> in_the_making;  // of which a thread asks for our duplicate: the user's handles
  std::condition_variable made;
};
MpiGroups& mpi_groups() {
  static auto* const k = new MpiGroups;
  return *k;
}
}  // namespace

void Communicator::program_ends() {
  if (made_by_fork) return;
  std::lock_guard const lock(mpi_groups().mutex);
  for (auto const& [handle, group] : mpi_groups().all) {
    Communicator c;
    c.impl_ = std::static_pointer_cast<Impl>(group);
    if (c.size() > 1) Failures::report_end(c);
  }
}

void Communicator::forget(std::uint64_t duplicate, bool ends) {
  std::shared_ptr<void> gone;
  {
    std::lock_guard const lock(mpi_groups().mutex);
    auto const at = mpi_groups().all.find(duplicate);
    if (at == mpi_groups().all.end()) return;
    gone = std::move(at->second);
    mpi_groups().all.erase(at);
  }
  auto& impl = *static_cast<Impl*>(gone.get());
  try {
    impl.order_token.settle(device::Access::update, "the end of a communicator");
    if (!ends)
      for (auto const& k : std::exchange(impl.kept, {})) check_mpi(k.free(), "freeing a window or communicator");
  } catch (Error const& e) {
    log::warning("while a communicator was freed: {}", e.what());
  }
  impl.memos.clear();  // some hold the communicator
  impl.freed = true;
}

namespace {
/// The same on all ranks, and hardly that of another group: rank 0's choice.
std::uint64_t number_of_group(MpiApi const& api, MpiApi::Comm comm) {
  std::random_device random;
  std::uint64_t number = (std::uint64_t(random()) << 32 | random()) | 1;
  Batch const batch(api);
  check_mpi(api.ibcast(batch.get(), comm, &number, sizeof number, 0), "MPI_Ibcast");
  batch.finish("MPI_Ibcast");
  return number;
}
}  // namespace

Communicator Communicator::from_handle(std::uint64_t parent) {
  ASTERISM_REQUIRE(mpi(), comm, "a communicator was given, but MPI support is not loaded.");
  int flag = 0;
  mpi()->initialized(&flag);
  ASTERISM_REQUIRE(flag, comm, "a communicator was given, but MPI is not initialised (or finalised already).");
  ASTERISM_REQUIRE(!made_by_fork, comm, "{}", not_by_fork);
  // what follows is collective, so outside of the lock: other threads may make other communicators known, in another order
  auto& groups = mpi_groups();
  {
    std::unique_lock lock(groups.mutex);
    groups.made.wait(lock, [&] { return !groups.in_the_making.contains(parent); });
    groups.in_the_making.insert(parent);
  }
  std::shared_ptr<void> const until_the_end(nullptr, [&](void*) {
    std::lock_guard const lock(groups.mutex);
    groups.in_the_making.erase(parent);
    groups.made.notify_all();
  });
  std::uint64_t mine = 0;
  check_mpi(mpi()->duplicate_cached(parent, &mine), "MPI_Comm_dup");
  std::shared_ptr<Impl> impl;
  {
    std::lock_guard const lock(mpi_groups().mutex);
    if (auto const at = mpi_groups().all.find(mine); at != mpi_groups().all.end()) impl = std::static_pointer_cast<Impl>(at->second);
  }
  if (!impl) {
    impl = std::make_shared<Impl>();
    check_mpi(mpi()->rank_and_size(mine, &impl->rank, &impl->size), "MPI_Comm_size");
    impl->handle = mine;
    impl->parent = parent;
    impl->join();
    impl->failures->communicator = number_of_group(*mpi(), mine);
    std::lock_guard const lock(mpi_groups().mutex);
    if (impl->node->share().ranks > device::host::node_share().ranks) device::host::set_node_share(impl->node->share());
    mpi_groups().all[mine] = impl;
  }
  Communicator c;
  if (impl->size > 1) c.impl_ = std::move(impl);
  return c;
}

device::Array const& Communicator::order_token() const {
  require_living();
  return impl_->order_token;
}
std::shared_ptr<void>& Communicator::memo(std::string const& name) const { return impl().memos[name]; }

void Communicator::require_living() const {
  ASTERISM_REQUIRE(!impl_->freed, comm,
                   "the MPI communicator of this object was freed. Free it after the last use of what was made with it.");
  ASTERISM_REQUIRE(impl_->size == 1 || !made_by_fork, comm, "{}", not_by_fork);
}

void Communicator::wait_for_queued() const {
  require_living();
  // one rank's star forests, too, are used by one operation after the other
  if (!device::host::in_task()) impl_->order_token.settle(device::Access::update, "communication at once");
}

namespace {

/// A collective call of MPI's, begun by start(batch, buffer) and waited for. MPI gets memory of its own, which outlives the call if that is
/// given up.
template <class F>
std::shared_ptr<std::vector<std::byte>> by_mpi(Communicator const& c, std::size_t bytes, char const* name, F const& start,
                                               std::shared_ptr<void const> more = {}) {
  struct Call {
    std::shared_ptr<void const> more;  // memory of the caller that MPI reads
    std::vector<std::byte> buffer;
    Batch batch{*mpi()};
  };
  auto const call = std::make_shared<Call>();
  call->more = std::move(more);
  call->buffer.resize(bytes);
  check_mpi(start(call->batch.get(), call->buffer.data()), name);
  try {
    wait_for(c, call->batch.get(), name);
  } catch (...) {
    c.give_up(call);
    throw;
  }
  return {call, &call->buffer};
}

/// `bytes` of each rank to all, in the order of the ranks.
void gather(Communicator const& c, void const* mine, std::size_t bytes, std::byte* all) {
  auto const own = std::span(static_cast<std::byte const*>(mine), bytes);
  auto const place = [&](int rank) { return all + std::size_t(rank) * bytes; };
  if (NodeCollective::serves(c)) {
    NodeCollective call(c);
    call.send_to_all(own);
    std::memcpy(place(c.rank()), mine, bytes);
    call.receive([&](int rank, std::span<std::byte const> theirs) {
      ASTERISM_REQUIRE(theirs.size() == bytes, comm, "rank {} gives {} bytes to a collective call where this rank, {}, gives {}: {}", rank,
                       theirs.size(), c.rank(), bytes, "the ranks are in different calls, or call with different sizes.");
      if (bytes > 0) std::memcpy(place(rank), theirs.data(), bytes);
    });
    return;
  }
  auto const size = std::size_t(c.size()) * bytes;
  auto const out = by_mpi(c, size + bytes, "MPI_Iallgather", [&](MpiApi::Batch batch, std::byte* buffer) {
    std::memcpy(buffer + size, mine, bytes);
    return mpi()->iallgather(batch, c.handle(), buffer + size, buffer, std::int64_t(bytes));
  });
  std::memcpy(all, out->data(), size);
}

template <class T>
void combine(MpiApi::Op op, T& a, T b) {
  if (op == MpiApi::sum) a += b;
  else if (b != b || (op == MpiApi::max ? b > a : b < a)) a = b;  // NaN wins
}

template <class T>
void all_reduce(Communicator const& c, std::span<T> values, MpiApi::Type type, MpiApi::Op op) {
  if (c.size() == 1 || values.empty()) return;
  c.end_queued();
  profile::count_reduction();
  auto const bytes = values.size_bytes();
  if (NodeCollective::serves(c)) {  // each rank adds in the order of the ranks
    std::vector<T> all(values.size() * std::size_t(c.size()));
    gather(c, values.data(), bytes, reinterpret_cast<std::byte*>(all.data()));
    std::copy_n(all.begin(), values.size(), values.begin());
    for (std::size_t i = values.size(); i < all.size(); ++i) combine(op, values[i % values.size()], all[i]);
    return;
  }
  auto const out = by_mpi(c, 2 * bytes, "MPI_Iallreduce", [&](MpiApi::Batch batch, std::byte* buffer) {
    std::memcpy(buffer + bytes, values.data(), bytes);
    return mpi()->iallreduce(batch, c.handle(), buffer + bytes, buffer, std::int64_t(values.size()), type, op);
  });
  std::memcpy(values.data(), out->data(), bytes);
  if (type == MpiApi::float64 && op == MpiApi::sum) c.bcast(values.data(), std::int64_t(bytes), 0);  // the same bits on all ranks
}

}  // namespace

void Communicator::barrier() const {
  end_queued();
  if (size() == 1) return;
  std::byte nothing{};
  if (NodeCollective::serves(*this)) return gather(*this, &nothing, 0, &nothing);
  by_mpi(*this, 0, "MPI_Ibarrier", [&](MpiApi::Batch batch, std::byte*) { return mpi()->ibarrier(batch, handle()); });
}

std::int64_t Communicator::sum(std::int64_t v) const {
  all_reduce(*this, std::span(&v, 1), MpiApi::int64, MpiApi::sum);
  return v;
}
std::int64_t Communicator::max(std::int64_t v) const {
  all_reduce(*this, std::span(&v, 1), MpiApi::int64, MpiApi::max);
  return v;
}
std::int64_t Communicator::min(std::int64_t v) const {
  all_reduce(*this, std::span(&v, 1), MpiApi::int64, MpiApi::min);
  return v;
}
double Communicator::max(double v) const {
  all_reduce(*this, std::span(&v, 1), MpiApi::float64, MpiApi::max);
  return v;
}
void Communicator::sum(std::span<std::int64_t> v) const { all_reduce(*this, v, MpiApi::int64, MpiApi::sum); }
void Communicator::sum(std::span<double> v) const { all_reduce(*this, v, MpiApi::float64, MpiApi::sum); }
void Communicator::max(std::span<double> v) const { all_reduce(*this, v, MpiApi::float64, MpiApi::max); }

std::int64_t Communicator::exclusive_sum(std::int64_t v) const {
  if (size() == 1) return 0;
  auto const all = all_gather(v);
  return std::accumulate(all.begin(), all.begin() + rank(), std::int64_t(0));
}

std::vector<std::int64_t> Communicator::all_gather(std::int64_t v) const {
  end_queued();
  std::vector<std::int64_t> out(static_cast<std::size_t>(size()), v);
  if (size() > 1) gather(*this, &v, sizeof v, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

void Communicator::bcast(void* data, std::int64_t bytes, int root) const {
  end_queued();
  if (size() == 1 || bytes <= 0) return;
  auto const n = std::size_t(bytes);
  if (NodeCollective::serves(*this)) {
    NodeCollective call(*this, root);
    if (rank() == root) return call.send_to_all({static_cast<std::byte const*>(data), n});
    return call.receive([&](int, std::span<std::byte const> theirs) {
      ASTERISM_REQUIRE(theirs.size() == n, comm, "rank {} sends {} bytes to all where rank {} expects {}.", root, theirs.size(), rank(), n);
      std::memcpy(data, theirs.data(), n);
    });
  }
  auto const out = by_mpi(*this, n, "MPI_Ibcast", [&](MpiApi::Batch batch, std::byte* buffer) {
    std::memcpy(buffer, data, n);
    return mpi()->ibcast(batch, handle(), buffer, bytes, root);
  });
  std::memcpy(data, out->data(), n);
}

std::string Communicator::bcast(std::string text, int root) const {
  if (size() == 1) return text;
  std::int64_t n = std::int64_t(text.size());
  bcast(&n, sizeof n, root);
  text.resize(std::size_t(n));
  bcast(text.data(), n, root);
  return text;
}

std::vector<std::byte> Communicator::all_gather_bytes(std::span<std::byte const> mine, std::vector<std::int64_t>* counts_out) const {
  auto const counts = all_gather(std::int64_t(mine.size()));
  if (counts_out) *counts_out = counts;
  if (size() == 1) return {mine.begin(), mine.end()};
  std::int64_t total = 0;
  auto const parts = std::make_shared<std::pair<std::vector<int>, std::vector<int>>>(counts.size(), counts.size());
  auto& [n, at] = *parts;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    ASTERISM_REQUIRE(counts[r] >= 0, comm, "rank {} gives {} bytes to a collective call: the ranks are in different calls.", r, counts[r]);
    ASTERISM_REQUIRE(total + counts[r] <= std::numeric_limits<int>::max(), memory, "gathering {} bytes on every rank is refused.",
                     total + counts[r]);
    n[r] = int(counts[r]);
    at[r] = int(total);
    total += counts[r];
  }
  if (NodeCollective::serves(*this)) {
    std::vector<std::byte> out(static_cast<std::size_t>(total));
    NodeCollective call(*this);
    call.send_to_all(mine);
    std::copy(mine.begin(), mine.end(), out.begin() + at[std::size_t(rank())]);
    call.receive([&](int r, std::span<std::byte const> theirs) {
      ASTERISM_REQUIRE(std::ssize(theirs) == counts[std::size_t(r)], comm,
                       "rank {} gives {} bytes to a collective call where {} were announced: the ranks are in different calls.", r,
                       theirs.size(), counts[std::size_t(r)]);
      std::ranges::copy(theirs, out.begin() + at[std::size_t(r)]);
    });
    return out;
  }
  auto const out = by_mpi(
      *this, std::size_t(total) + mine.size(), "MPI_Iallgatherv",
      [&](MpiApi::Batch batch, std::byte* buffer) {
        std::copy(mine.begin(), mine.end(), buffer + total);
        return mpi()->iallgatherv(batch, handle(), buffer + total, int(mine.size()), buffer, parts->first.data(), parts->second.data(), 1);
      },
      parts);
  return {out->begin(), out->begin() + total};
}

bool Communicator::same_on_all_ranks(std::int64_t v) const {
  std::int64_t pair[2] = {v, ~v};  // of the opposite order, and there for every number
  all_reduce(*this, std::span<std::int64_t>(pair, 2), MpiApi::int64, MpiApi::max);
  return pair[0] == v && pair[1] == ~v;
}

void Communicator::give_up(std::shared_ptr<void const> of_a_call) const { impl().given_up.push_back(std::move(of_a_call)); }

namespace {
constexpr char const* after_an_error = "this call has failed on other ranks, after an error in the one before. The next one goes on.";
}

void Communicator::recover(bool call_has_failed) const {
  require_living();
  auto& im = impl();
  auto& f = *im.failures;
  try {
    im.order_token.settle(device::Access::update, "recovery from an error");  // queued work that waited has failed too
  } catch (Error const&) {
  }
  Batch const batch(*mpi());
  auto const finish = [&](char const* call) {  // unless a rank will not come
    batch.finish(call, [&] {
      if (!f.alarmed()) return;
      Failures::look(*this, false);
      if (Failures::has_ended(f)) Failures::require_none(*this);
    });
  };
  if (!im.recovering) {
    check_mpi(mpi()->duplicate_anew(batch.get(), im.parent), "MPI_Comm_idup");
    finish("MPI_Comm_idup");
    MpiApi::Comm anew = 0;
    check_mpi(mpi()->adopt_duplicate(batch.get(), im.parent, &anew), "MPI_Comm_set_attr");
    std::lock_guard const lock(mpi_groups().mutex);
    auto const at = mpi_groups().all.find(im.handle);
    ASTERISM_ASSERT(at != mpi_groups().all.end());
    auto self = std::move(at->second);
    mpi_groups().all.erase(at);
    mpi_groups().all[anew] = std::move(self);
    im.handle = anew;
    im.recovering = true;
  }
  // Ranks that had left the failed call before it failed are one call ahead. That one fails on the others as it did there.
  bool failed_somewhere = false;
  for (;;) {
    struct Call {
      std::uint64_t serial, failed;
    };
    struct Calls {
      Call mine;
      std::vector<Call> all;
    };
    auto const calls = std::make_shared<Calls>(Calls{{f.serial, call_has_failed}, std::vector<Call>(static_cast<std::size_t>(im.size))});
    auto const& [mine, all] = *calls;
    check_mpi(mpi()->iallgather(batch.get(), im.handle, &calls->mine, calls->all.data(), sizeof mine), "MPI_Iallgather");
    try {
      finish("MPI_Iallgather");
    } catch (...) {
      im.given_up.push_back(calls);  // as long as MPI may want it
      throw;
    }
    auto const most = std::ranges::max(all, {}, &Call::serial).serial;
    if (mine.serial < most) throw Error(ErrorKind::comm, after_an_error, true);
    if (std::ranges::all_of(all, [&](Call const& c) { return c.serial == most; })) {
      failed_somewhere = std::ranges::any_of(all, &Call::failed);
      break;
    }
  }
  im.given_up.push_back(im.ranks_here);  // operations that were begun and not ended know its mailboxes
  im.join();
  im.memos.clear();
  im.next_tag = 0;
  im.held_tags = {};  // of the new duplicate
  ++im.epoch;
  im.recovering = false;
  std::lock_guard const lock(f.mutex);
  f.last = f.known ? f.known->said() : "";
  f.known.reset();
  f.handled = f.serial - 1;
  f.broken = false;
  f.news = f.ended.has_value();
  if (failed_somewhere) throw Error(ErrorKind::comm, after_an_error, true);
}

std::shared_ptr<int const> Communicator::hold_tags() const { return impl().held_tags.take(*this); }

std::shared_ptr<void> Communicator::keep(std::function<int()> free) const {
  auto& kept = impl().kept;
  std::vector<std::int64_t> dropped(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) dropped[i] = kept[i].user.expired();
  sum(dropped);
  std::vector<Impl::Kept> stay;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (dropped[i] == size()) check_mpi(kept[i].free(), "freeing a window or communicator");
    else stay.push_back(std::move(kept[i]));
  }
  kept = std::move(stay);
  auto const user = std::make_shared<char>();
  kept.push_back({user, std::move(free)});
  return user;
}

void agree_on(Communicator const& comm, std::optional<Error> const& mine) {
  CollectiveCall const call(comm, "a check of input");
  auto const none = std::numeric_limits<std::int64_t>::max();
  bool const by_user = mine && mine->kind() == ErrorKind::interrupted;  // which comes before all others
  auto const first = comm.min(mine ? std::int64_t(comm.rank() + (by_user ? 0 : comm.size())) : none);
  if (first == none) return;
  if (first < 0 || first >= 2 * comm.size())  // no rank: what another one gave to another call
    throw Error(ErrorKind::comm, "the ranks are in different calls: one of them checks its input, and another one does something else.");
  auto const lowest = first % comm.size();
  std::int64_t kind = mine ? std::int64_t(mine->kind()) : 0;
  comm.bcast(&kind, sizeof kind, int(lowest));
  auto const text = comm.bcast(mine ? std::string(mine->what()) : std::string(), int(lowest));
  bool const named = comm.size() > 1 && text.rfind("rank ", 0) != 0;
  throw Error(ErrorKind(kind), named ? format("rank {}: {}", lowest, text) : text, true);
}

void agree(Communicator const& comm, std::function<void()> const& f) {
  std::optional<Error> mine;
  try {
    f();
  } catch (Error const& e) {
    mine = e;
  } catch (std::bad_alloc const&) {
    mine = Error(ErrorKind::memory, "out of memory.");
  }
  agree_on(comm, mine);
}

}  // namespace asterism::comm
