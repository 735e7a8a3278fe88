#include "asterism/comm/gpu/nvshmem.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>

#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/gpu/vendor_library.hpp"

namespace asterism::comm {

/// Of symmetric memory: at the same place in all processes. Allocated and freed by all of them together, so it stays when its messenger
/// goes, with its numbers of pieces, for the next one.
struct Nvshmem::Window {
  std::byte* base = nullptr;
  std::vector<Counts> counts;  // by process
  bool taken = false;
};

namespace {

namespace gpu = device::gpu;
using device::Executor;

/// The part of NVSHMEM 3 that is used (NVIDIA, NVSHMEM documentation, API). tests/cpp/comm/nvshmem_constants.cpp compares it with its
/// headers.
struct NvshmemLibrary {
  static constexpr int signal_set = 9;         // NVSHMEM_SIGNAL_SET
  static constexpr int greater_or_equal = 5;   // NVSHMEM_CMP_GE
  static constexpr unsigned by_unique_id = 8;  // NVSHMEMX_INIT_WITH_UNIQUEID
  template <class T>
  static constexpr int version_1 = (1 << 16) + int(sizeof(T));
  struct UniqueId {
    int version = version_1<UniqueId>;
    std::array<char, 124> data{};
  };
  struct UniqueIdArguments {
    int version = version_1<UniqueIdArguments>;
    UniqueId* id = nullptr;
    int rank = 0, ranks = 0;
  };
  struct InitArguments {
    int version = version_1<InitArguments>;
    UniqueIdArguments id;
    std::array<char, 96> unused{};
  };
  struct InitAttributes {
    int version = version_1<InitAttributes>;
    void* mpi_comm = nullptr;
    InitArguments arguments;
  };
  static_assert(sizeof(UniqueId) == 128 && sizeof(UniqueIdArguments) == 24 && sizeof(InitArguments) == 128 &&
                sizeof(InitAttributes) == 144);

  gpu::VendorLibrary library;
  int (*unique_id)(UniqueId*) = nullptr;
  int (*set_unique_id)(int rank, int ranks, UniqueId const*, InitAttributes*) = nullptr;
  int (*init)(unsigned flags, InitAttributes*) = nullptr;
  int (*my_pe)() = nullptr;
  void* (*allocate)(std::size_t count, std::size_t size) = nullptr;
  void* (*address_of)(void const*, int pe) = nullptr;
  void (*put_signal)(void* there, void const* here, std::size_t bytes, std::uint64_t* flag, std::uint64_t value, int op, int pe,
                     void* stream) = nullptr;
  void (*signal)(std::uint64_t* flag, std::uint64_t value, int op, int pe, void* stream) = nullptr;
  void (*wait)(std::uint64_t* flag, int comparison, std::uint64_t value, void* stream) = nullptr;
  std::string why_not;
  mutable std::mutex mutex;  // started as for calls of one thread at a time

  NvshmemLibrary() : library({"libnvshmem_host.so.3", "libnvshmem_host.so"}, "ASTERISM_NVSHMEM") {
    why_not = library.why_not();
    if (!library) return;
    try {
      library.find(unique_id, "nvshmemx_get_uniqueid");
      library.find(set_unique_id, "nvshmemx_set_attr_uniqueid_args");
      library.find(init, "nvshmemx_hostlib_init_attr");
      library.find(my_pe, "nvshmem_my_pe");
      library.find(allocate, "nvshmem_calloc");
      library.find(address_of, "nvshmem_ptr");
      library.find(put_signal, "nvshmemx_putmem_signal_on_stream");
      library.find(signal, "nvshmemx_signal_op_on_stream");
      library.find(wait, "nvshmemx_signal_wait_until_on_stream");
      why_not.clear();
    } catch (Error const& e) {
      why_not = e.what();
    }
  }
};

/// Once a GPU is open.
NvshmemLibrary const& nvshmem() {
  static auto const* const l = new NvshmemLibrary;
  return *l;
}

/// This process's start, which cannot be undone: finalizing is collective, and communicators go when Python lets them.
struct NvshmemStart {
  static constexpr std::int64_t failed = -1;
  std::int64_t id = 0;  // the same in all its processes; 0: not started
  int processes = 0;
};

void start_nvshmem(Communicator const& comm, NvshmemStart& mine) {
  auto const& l = nvshmem();
  NvshmemLibrary::UniqueId id;
  mine.id = NvshmemStart::failed;  // unless it comes to the end
  agree(comm, [&] {
    if (comm.rank() > 0) return;
    int const status = l.unique_id(&id);
    ASTERISM_REQUIRE(status == 0, comm, "NVSHMEM failed in nvshmemx_get_uniqueid (status {}).", status);
  });
  comm.bcast(&id, sizeof id, 0);
  agree(comm, [&] {
    gpu::OnDevice const here;
    NvshmemLibrary::InitAttributes attributes;
    int status = l.set_unique_id(comm.rank(), comm.size(), &id, &attributes);
    ASTERISM_REQUIRE(status == 0, comm, "NVSHMEM failed in nvshmemx_set_attr_uniqueid_args (status {}).", status);
    status = l.init(NvshmemLibrary::by_unique_id, &attributes);
    ASTERISM_REQUIRE(status == 0, comm, "NVSHMEM failed in nvshmemx_hostlib_init_attr (status {}).", status);
  });
  std::uint64_t sum = 1469598103934665603U;  // FNV-1a
  for (auto const byte : std::as_bytes(std::span(&id, 1))) sum = (sum ^ std::uint64_t(byte)) * 1099511628211U;
  mine.id = std::int64_t(sum >> 1) | 1;
  mine.processes = comm.size();
}

}  // namespace

std::shared_ptr<Nvshmem const> Nvshmem::connected(Communicator const& comm) {
  static NvshmemStart mine;
  static auto& windows = *new std::vector<std::unique_ptr<Window>>;  // in the order of their allocation, which is that of all processes
  auto const& l = nvshmem();
  agree(comm, [&] { ASTERISM_REQUIRE(l.why_not.empty(), unsupported, "it is not found: {}", l.why_not); });
  bool const shared = ranks_share_a_gpu(comm);
  ASTERISM_REQUIRE(!shared, unsupported, "ranks share a GPU, which NVSHMEM does not do");
  auto const least = comm.min(mine.id), most = comm.max(mine.id);
  if (least == 0 && most == 0) start_nvshmem(comm, mine);
  else
    ASTERISM_REQUIRE(least == most && least > 0 && mine.processes == comm.size(), unsupported, "{}",
                     least == NvshmemStart::failed ? "its start has failed before" : "it was started for other ranks");
  // of a messenger that is gone on all ranks, or new
  std::size_t at = 0;
  for (; at < windows.size(); ++at)
    if (comm.max(std::int64_t(windows[at]->taken)) == 0) break;
  constexpr std::size_t all_slots = std::size_t(64) << 20;
  auto const slot = std::clamp(all_slots / std::size_t(comm.size()) / line * line, std::size_t(4096), most_slot_bytes);
  std::shared_ptr<Nvshmem> out;
  agree(comm, [&] { out.reset(new Nvshmem(comm, device::Queue::gpu(), slot)); });  // before anything that all ranks must do
  agree(comm, [&] {
    gpu::OnDevice const here;
    if (at == windows.size()) {
      windows.push_back(std::make_unique<Window>());
      windows[at]->counts.resize(std::size_t(comm.size()));
      std::lock_guard const lock(l.mutex);
      windows[at]->base = static_cast<std::byte*>(l.allocate(std::size_t(comm.size()), out->of_process()));
    }
    windows[at]->taken = true;  // for good, where there was no memory
    ASTERISM_REQUIRE(windows[at]->base, memory, "NVSHMEM has no {} bytes of symmetric memory; NVSHMEM_SYMMETRIC_SIZE says how much it has.",
                     std::size_t(comm.size()) * out->of_process());
    out->window_ = windows[at].get();
  });
  int const me = l.my_pe();
  auto const numbers = comm.all_gather_bytes(std::as_bytes(std::span(&me, 1)));
  for (int r = 0; r < comm.size(); ++r) {
    int process = 0;
    std::memcpy(&process, numbers.data() + std::size_t(r) * sizeof process, sizeof process);
    out->peers_.push_back({process, l.address_of(out->window_->base, process) != nullptr});
    out->counts()[std::size_t(r)] = out->window_->counts[std::size_t(process)];
  }
  return out;
}

Nvshmem::~Nvshmem() {
  finish();
  if (!window_) return;
  for (std::size_t r = 0; r < peers_.size(); ++r) window_->counts[std::size_t(peers_[r].process)] = counts()[r];
  window_->taken = false;
}

std::byte* Nvshmem::with(int process) const { return window_->base + std::size_t(process) * of_process(); }

std::byte const* Nvshmem::slot_from(int rank) const { return with(peers_[std::size_t(rank)].process) + slot_at; }

void Nvshmem::put(Executor& executor, int rank, std::byte const* from, std::size_t bytes, std::uint64_t piece) const {
  auto const [process, mapped] = peers_[std::size_t(rank)];
  auto* const there = with(peers_[std::size_t(comm().rank())].process);  // an address here stands for the same place there
  if (!mapped) {                                                         // networks send from symmetric memory only
    auto* const staging = with(process) + slot_at + slot_bytes();
    gpu::copy(staging, from, bytes, executor.stream());
    from = staging;
  }
  std::lock_guard const lock(nvshmem().mutex);
  nvshmem().put_signal(there + slot_at, from, bytes, filled(there), piece, NvshmemLibrary::signal_set, process, executor.stream());
}

void Nvshmem::await_filled(Executor& executor, int rank, std::uint64_t piece) const {
  std::lock_guard const lock(nvshmem().mutex);
  nvshmem().wait(filled(with(peers_[std::size_t(rank)].process)), NvshmemLibrary::greater_or_equal, piece, executor.stream());
}

void Nvshmem::await_emptied(Executor& executor, int rank, std::uint64_t piece) const {
  std::lock_guard const lock(nvshmem().mutex);
  nvshmem().wait(emptied(with(peers_[std::size_t(rank)].process)), NvshmemLibrary::greater_or_equal, piece, executor.stream());
}

void Nvshmem::tell_emptied(Executor& executor, int rank, std::uint64_t piece) const {
  auto* const there = with(peers_[std::size_t(comm().rank())].process);
  std::lock_guard const lock(nvshmem().mutex);
  nvshmem().signal(emptied(there), piece, NvshmemLibrary::signal_set, peers_[std::size_t(rank)].process, executor.stream());
}

}  // namespace asterism::comm
