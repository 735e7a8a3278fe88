#include "asterism/comm/communicator.hpp"

#include <dlfcn.h>

#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/node/node.hpp"
#include "asterism/device/host/line.hpp"

namespace asterism::comm {
namespace {

MpiApi const* table = nullptr;
std::string table_path;

}  // namespace

void load_mpi_plugin(std::string const& path) {
  if (table) {
    ASTERISM_REQUIRE(path == table_path, comm, "MPI support is loaded from '{}' already; '{}' cannot be loaded beside it.", table_path,
                     path);
    return;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ErrorKind::comm, "MPI support '{}' does not load: {}.", path, dlerror());
  auto const entry = reinterpret_cast<MpiPluginEntry>(dlsym(library, mpi_plugin_symbol));
  ASTERISM_REQUIRE(entry, comm, "'{}' is not an MPI plug-in of this library.", path);
  auto const* api = entry();
  ASTERISM_REQUIRE(api->version == mpi_api_version, comm, "MPI plug-in '{}' has interface version {}, this library needs {}. Reinstall.",
                   path, api->version, mpi_api_version);
  table = api;
  table_path = path;
  table->when_freed(Communicator::forget);
}

MpiApi const* mpi() { return table; }

void require_thread_multiple(char const* what) {
  if (!mpi()) return;
  int multiple = 0;
  check_mpi(mpi()->thread_multiple(&multiple), "MPI_Query_thread");
  ASTERISM_REQUIRE(multiple, comm,
                   "{} needs MPI_THREAD_MULTIPLE, which MPI was not initialised with. mpi4py asks for it by default; a C++ program by "
                   "MPI_Init_thread.",
                   what);
}

void detail::mpi_failed(int code, char const* call) {
  char text[512] = "?";
  if (table) table->error_text(code, text, sizeof text);
  fail(ErrorKind::comm, "MPI failed in {}: {} (code {}).", call, text, code);
}

struct Communicator::Impl {
  int rank = 0, size = 1;
  std::uint64_t handle = 0;
  bool freed = false;
  int next_tag = 0;
  device::Array lane{1};
  std::shared_ptr<node::Node> node;
  struct Kept {
    std::weak_ptr<void> user;
    std::function<int()> free;
  };
  std::vector<Kept> kept;  // in the same order on all ranks
  std::map<std::string, std::shared_ptr<void>> memos;
};

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
};
MpiGroups& mpi_groups() {
  static auto* const k = new MpiGroups;
  return *k;
}
}  // namespace

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
    impl.lane.settle(device::Access::update, "the end of a communicator");
    if (!ends)
      for (auto const& k : std::exchange(impl.kept, {})) check_mpi(k.free(), "freeing a window or communicator");
  } catch (Error const& e) {
    log::warning("while a communicator was freed: {}", e.what());
  }
  impl.memos.clear();  // some hold the communicator
  impl.freed = true;
}

Communicator Communicator::from_handle(std::uint64_t parent) {
  ASTERISM_REQUIRE(table, comm, "a communicator was given, but MPI support is not loaded.");
  int flag = 0;
  table->initialized(&flag);
  ASTERISM_REQUIRE(flag, comm, "a communicator was given, but MPI is not initialised (or finalised already).");
  std::uint64_t mine = 0;
  check_mpi(table->duplicate_cached(parent, &mine), "MPI_Comm_dup");
  std::lock_guard const lock(mpi_groups().mutex);
  auto& found = mpi_groups().all[mine];
  if (!found) {
    auto impl = std::make_shared<Impl>();
    check_mpi(table->rank_and_size(mine, &impl->rank, &impl->size), "MPI_Comm_size");
    impl->handle = mine;
    impl->node = node::Node::join(*table, mine, impl->rank);
    if (impl->node->size() > device::host::ranks_on_node())
      device::host::set_ranks_on_node(impl->node->size(), impl->node->index_of(impl->rank));
    found = std::move(impl);
  }
  auto impl = std::static_pointer_cast<Impl>(found);
  Communicator c;
  if (impl->size > 1) c.impl_ = std::move(impl);
  return c;
}

int Communicator::rank() const { return impl_->rank; }
int Communicator::size() const { return impl_->size; }
std::uint64_t Communicator::handle() const { return impl_->handle; }
node::Node* Communicator::node() const { return impl_->node.get(); }
device::Array const& Communicator::lane() const {
  require_living();
  return impl_->lane;
}
std::shared_ptr<void>& Communicator::memo(std::string const& name) const { return impl_->memos[name]; }

void Communicator::require_living() const {
  ASTERISM_REQUIRE(!impl_->freed, comm,
                   "the MPI communicator of this object was freed. Free it after the last use of what was made with it.");
}

void Communicator::end_queued() const {
  require_living();
  // one rank's star forests, too, are used by one operation after the other
  if (!device::host::in_task()) impl_->lane.settle(device::Access::update, "communication at once");
}

void Communicator::barrier() const {
  end_queued();
  if (size() > 1) check_mpi(table->barrier(handle()), "MPI_Barrier");
}

namespace {
template <class T>
void all_reduce(Communicator const& c, std::span<T> values, MpiApi::Type type, MpiApi::Op op) {
  if (c.size() == 1 || values.empty()) return;
  c.end_queued();
  profile::count_reduction();
  std::vector<T> in(values.begin(), values.end());
  check_mpi(table->allreduce(c.handle(), in.data(), values.data(), std::int64_t(in.size()), type, op), "MPI_Allreduce");
}
}  // namespace

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
  end_queued();
  std::int64_t out = 0;
  check_mpi(table->exscan_sum(handle(), &v, &out, 1), "MPI_Exscan");
  return rank() == 0 ? 0 : out;
}

std::vector<std::int64_t> Communicator::all_gather(std::int64_t v) const {
  end_queued();
  std::vector<std::int64_t> out(static_cast<std::size_t>(size()), v);
  if (size() > 1) check_mpi(table->allgather(handle(), &v, out.data(), sizeof v), "MPI_Allgather");
  return out;
}

void Communicator::bcast(void* data, std::int64_t bytes, int root) const {
  end_queued();
  if (size() > 1 && bytes > 0) check_mpi(table->bcast(handle(), data, bytes, root), "MPI_Bcast");
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
  std::vector<int> n(counts.size()), at(counts.size());
  for (std::size_t r = 0; r < counts.size(); ++r) {
    ASTERISM_REQUIRE(total + counts[r] <= std::numeric_limits<int>::max(), memory, "gathering {} bytes on every rank is refused.",
                     total + counts[r]);
    n[r] = int(counts[r]);
    at[r] = int(total);
    total += counts[r];
  }
  std::vector<std::byte> out(static_cast<std::size_t>(total));
  check_mpi(table->allgatherv(handle(), mine.data(), std::int64_t(mine.size()), out.data(), n.data(), at.data()), "MPI_Allgatherv");
  return out;
}

bool Communicator::same_on_all_ranks(std::int64_t v) const {
  std::int64_t pair[2] = {v, -v};
  all_reduce(*this, std::span<std::int64_t>(pair, 2), MpiApi::int64, MpiApi::max);
  return pair[0] == v && pair[1] == -v;
}

int Communicator::new_tag() const {
  impl_->next_tag = (impl_->next_tag + 1) % 30000;
  return impl_->next_tag;
}

std::shared_ptr<void> Communicator::keep(std::function<int()> free) const {
  auto& kept = impl_->kept;
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
  auto const none = std::numeric_limits<std::int64_t>::max();
  auto const lowest = comm.min(mine ? std::int64_t(comm.rank()) : none);
  if (lowest == none) return;
  std::int64_t kind = mine ? std::int64_t(mine->kind()) : 0;
  comm.bcast(&kind, sizeof kind, int(lowest));
  auto const text = comm.bcast(mine ? std::string(mine->what()) : std::string(), int(lowest));
  bool const named = comm.size() > 1 && text.rfind("rank ", 0) != 0;
  throw Error(ErrorKind(kind), named ? format("rank {}: {}", lowest, text) : text);
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
