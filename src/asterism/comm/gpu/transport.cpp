#include "asterism/comm/gpu/transport.hpp"

#include <algorithm>
#include <atomic>
#include <map>

#include "asterism/base/log.hpp"
#include "asterism/comm/gpu/ipc.hpp"
#include "asterism/comm/gpu/nccl.hpp"
#include "asterism/comm/gpu/nvshmem.hpp"

namespace asterism::comm {
namespace {

std::atomic<GpuTransport> chosen_gpu_transport{GpuTransport::automatic};
using KnownTransports = std::map<GpuTransport, GpuTransportUse>;
constexpr char const* transports_memo = "gpu_transport";

/// Adds to `why`, the same on all ranks, where it cannot be used.
template <class M>
std::shared_ptr<GpuMessenger const> proven(Communicator const& comm, char const* name, std::string& why) {
  auto const not_since = [&](std::string_view reason) {
    if (reason.ends_with('.')) reason.remove_suffix(1);
    why += format("{}{}: {}", why.empty() ? "" : "; ", name, reason);
    return nullptr;
  };
  try {
    auto const made = M::connected(comm);
    if (messages_arrive(*made)) return made;
    return not_since("messages did not arrive as they were sent");
  } catch (Error const& e) {  // the same on all ranks
    return not_since(e.what());
  }
}

GpuTransportUse found(Communicator const& comm, GpuTransport choice) {
  if (comm.size() == 1) return {nullptr, "one rank"};
  if (choice == GpuTransport::mpi) return {nullptr, "-gpu_transport mpi"};
  std::string why;
  std::shared_ptr<GpuMessenger const> m;
  if (choice == GpuTransport::nvshmem) m = proven<Nvshmem>(comm, "nvshmem", why);
  if (choice == GpuTransport::nccl || choice == GpuTransport::automatic) m = proven<Nccl>(comm, "nccl", why);
  // on a shared GPU a kernel that waits would take the time that the others need; not measured
  if (!m && choice == GpuTransport::automatic && ranks_share_a_gpu(comm))
    return {nullptr, why + "; ipc: on a GPU that ranks share only where it is asked for"};
  if (choice == GpuTransport::ipc || (!m && choice == GpuTransport::automatic)) m = proven<GpuIpc>(comm, "ipc", why);
  return {m, m ? "messages have arrived as they were sent" : why};
}

}  // namespace

std::vector<std::string> gpu_transport_names() { return {"auto", "nccl", "ipc", "nvshmem", "mpi"}; }

void set_gpu_transport(std::string_view name) {
  auto const names = gpu_transport_names();
  auto const at = std::find(names.begin(), names.end(), name);
  ASTERISM_REQUIRE(at != names.end(), option, "gpu_transport '{}' is not one of auto, nccl, ipc, nvshmem, mpi.", name);
  chosen_gpu_transport = GpuTransport(at - names.begin());
}

GpuTransportUse const& gpu_transport(Communicator const& comm) {
  auto const choice = chosen_gpu_transport.load();
  auto const mine = std::int64_t(choice), least = comm.min(mine);
  agree(comm, [&] {
    ASTERISM_REQUIRE(mine == least, option, "-gpu_transport is {} on rank {}, another elsewhere. Give the same on all.",
                     gpu_transport_names()[std::size_t(mine)], comm.rank());
  });
  auto const& use = gpu_transport(comm, choice);
  bool const chosen = choice != GpuTransport::automatic && choice != GpuTransport::mpi;
  if (!use.messenger && chosen && comm.size() > 1) throw Error(ErrorKind::comm, format("-gpu_transport {}.", use.why), true);  // on all
  return use;
}

GpuTransportUse const& gpu_transport(Communicator const& comm, GpuTransport choice) {
  auto& memo = comm.memo(transports_memo);
  if (!memo) memo = std::make_shared<KnownTransports>();
  auto& known = *static_cast<KnownTransports*>(memo.get());
  auto at = known.find(choice);
  if (at == known.end()) {
    at = known.try_emplace(choice, found(comm, choice)).first;
    auto const& use = at->second;
    log::info("sums and halos between GPUs: by {} ({})", use.messenger ? use.messenger->name() : "MPI", use.why);
  }
  return at->second;
}

bool has_gpu_messenger(Communicator const& comm) {
  auto const& memo = comm.memo(transports_memo);
  if (!memo) return false;
  auto const& known = *static_cast<KnownTransports const*>(memo.get());
  return std::any_of(known.begin(), known.end(), [](auto const& k) { return bool(k.second.messenger); });
}

}  // namespace asterism::comm
