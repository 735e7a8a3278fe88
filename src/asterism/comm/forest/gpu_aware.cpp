#include "asterism/comm/forest/gpu_aware.hpp"

#include <unistd.h>

#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "asterism/base/log.hpp"
#include "asterism/comm/forest/call_check.hpp"
#include "asterism/comm/forest/star_forest.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::comm {
namespace {

std::atomic<GpuAware> chosen{GpuAware::automatic};

using Known = std::map<GpuAware, GpuAwareness>;
constexpr char const* memo_name = "gpu_awareness";

/// Numbers in the GPU's memory, for a moment.
class OnGpu {
 public:
  explicit OnGpu(std::size_t n) : bytes_(n * sizeof(std::int64_t)) { data_ = device::gpu::allocate(bytes_, device::gpu::threads_stream()); }
  ~OnGpu() { device::gpu::release(data_, bytes_); }
  OnGpu(OnGpu const&) = delete;
  OnGpu& operator=(OnGpu const&) = delete;
  void* data() const { return data_; }
  void set(std::vector<std::int64_t> const& values) const {
    device::gpu::wait(device::gpu::threads_stream());  // it is there
    device::gpu::copy_now(data_, values.data(), bytes_);
  }
  std::vector<std::int64_t> values() const {
    std::vector<std::int64_t> v(bytes_ / sizeof(std::int64_t));
    device::gpu::copy_now(v.data(), data_, bytes_);
    return v;
  }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

/// Whether this process may read the GPU's memory without the GPU, as on machines where both have one address space. The system is asked by
/// writing from there into a pipe.
bool host_reads_gpu_memory() {
  device::gpu::OnDevice const here;
  OnGpu const some(1);
  some.set({1});
  int ends[2];
  if (::pipe(ends) != 0) return false;
  bool const readable = ::write(ends[1], some.data(), sizeof(std::int64_t)) == ssize_t(sizeof(std::int64_t));
  ::close(ends[0]), ::close(ends[1]);
  return readable;
}

/// Each rank sends to the next: a short message and a long one, which MPI carries in other ways.
bool messages_arrive(Communicator const& comm) {
  device::gpu::OnDevice const here;
  auto const rank = comm.rank(), before = (rank + comm.size() - 1) % comm.size();
  auto const pattern = [](std::size_t n, std::int64_t seed) {
    std::vector<std::int64_t> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = std::int64_t(i) * 2654435761 + seed;
    return v;
  };
  bool right = true;
  for (std::size_t const n : {std::size_t(16), std::size_t(1) << 17}) {
    std::optional<OnGpu> out, in;
    agree(comm, [&] {
      out.emplace(n), in.emplace(n);
      out->set(pattern(n, rank)), in->set(pattern(n, -1));
    });
    // each rank's leaves are the roots of the one before: contiguous messages, as halos are
    std::vector<RemoteRoot> remote(n);
    for (std::size_t i = 0; i < n; ++i) remote[i] = {before, std::int64_t(i)};
    StarForest const ring(comm, std::int64_t(n), std::nullopt, remote, -1, TransportChoice::p2p);
    try {
      ring.bcast(static_cast<std::int64_t const*>(out->data()), static_cast<std::int64_t*>(in->data()));
    } catch (Error const& e) {
      log::warning("MPI with the GPU's memory: {}", e.what());
      right = false;
    }
    right = right && in->values() == pattern(n, before);
  }
  return comm.min(std::int64_t(right)) == 1;
}

GpuAwareness find_out(Communicator const& comm, GpuAware choice) {
  if (comm.size() == 1) return {false, "one rank"};
  if (choice == GpuAware::no) return {false, "-use_gpu_aware_mpi 0"};
  int says = -1;
  mpi()->gpu_aware(std::string(device::gpu::name()).c_str(), &says);
  auto const all = comm.min(std::int64_t(says));
  if (choice == GpuAware::automatic) {
    if (all < 0) return {false, "MPI does not say whether it takes GPU memory; -use_gpu_aware_mpi 1 if it does"};
    if (all == 0) return {false, "MPI says that it takes no GPU memory"};
  } else if (all == 0) {  // a message would end the process
    bool readable = false;
    agree(comm, [&] { readable = host_reads_gpu_memory(); });
    ASTERISM_REQUIRE(comm.min(std::int64_t(readable)) == 1, comm,
                     "-use_gpu_aware_mpi 1: MPI says that it takes no GPU memory. Leave the option away; the host's memory is used then.");
  }
  bool const right = messages_arrive(comm);
  ASTERISM_REQUIRE(right || choice != GpuAware::yes, comm,
                   "-use_gpu_aware_mpi 1: MPI does not carry messages between GPU memories as it should. Leave the option away; the host's "
                   "memory is used then.");
  if (!right) return {false, "MPI says that it takes GPU memory, but messages did not arrive as they were sent"};
  return {true, "messages have arrived as they were sent"};
}

}  // namespace

void set_gpu_aware(GpuAware choice) { chosen = choice; }

GpuAwareness const* known_gpu_awareness(Communicator const& comm) {
  auto const& memo = comm.memo(memo_name);
  if (!memo) return nullptr;
  auto const& known = *static_cast<Known const*>(memo.get());
  auto const at = known.find(chosen.load());
  return at != known.end() ? &at->second : nullptr;
}

GpuAwareness const& gpu_awareness(Communicator const& comm) {
  auto const mine = std::int64_t(chosen.load()), least = comm.min(mine);
  agree(comm, [&] {
    auto const text = [](std::int64_t c) { return GpuAware(c) == GpuAware::automatic ? "auto" : GpuAware(c) == GpuAware::no ? "0" : "1"; };
    ASTERISM_REQUIRE(mine == least, option, "-use_gpu_aware_mpi is {} on rank {} and {} on another. Give the same on all.", text(mine),
                     comm.rank(), text(least));
  });
  static GpuAwareness const while_checked{false, "-sf_debug reads what is sent"};  // for as long as it is on
  if (call_checks()) return while_checked;
  if (auto const* const known = known_gpu_awareness(comm)) return *known;
  auto& memo = comm.memo(memo_name);
  if (!memo) memo = std::make_shared<Known>();
  auto const choice = chosen.load();
  auto const found = find_out(comm, choice);
  log::info("halos between GPUs {}: {}", found.used ? "are sent from their memory" : "go through the host", found.why);
  return static_cast<Known*>(memo.get())->try_emplace(choice, found).first->second;
}

}  // namespace asterism::comm
