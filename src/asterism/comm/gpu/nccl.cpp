#include "asterism/comm/gpu/nccl.hpp"

#include <array>

#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/gpu/vendor_library.hpp"

namespace asterism::comm {

struct NcclUniqueId {
  std::array<char, 128> data;
};

namespace {

namespace gpu = device::gpu;
using device::Array;

/// The part of NCCL 2 and RCCL that is used (NVIDIA, NCCL documentation, API). tests/cpp/comm/nccl_constants.cpp compares it with NCCL's
/// header.
struct Library {
  using Status = int;
  static constexpr int bytes = 0;  // ncclInt8
  using UniqueId = NcclUniqueId;
  gpu::VendorLibrary library;
  Status (*unique_id)(UniqueId*) = nullptr;
  Status (*init_rank)(void** comm, int ranks, UniqueId id, int rank) = nullptr;
  Status (*all_gather)(void const* in, void* out, std::size_t count, int type, void* comm, void* stream) = nullptr;
  Status (*send)(void const* in, std::size_t count, int type, int peer, void* comm, void* stream) = nullptr;
  Status (*receive)(void* out, std::size_t count, int type, int peer, void* comm, void* stream) = nullptr;
  Status (*group_start)() = nullptr;
  Status (*group_end)() = nullptr;
  char const* (*error_text)(Status) = nullptr;
  std::string why_not;

  Library() : library(names(), "ASTERISM_NCCL") {
    why_not = library.why_not();
    if (!library) return;
    try {
      library.find(unique_id, "ncclGetUniqueId");
      library.find(init_rank, "ncclCommInitRank");
      library.find(all_gather, "ncclAllGather");
      library.find(send, "ncclSend");
      library.find(receive, "ncclRecv");
      library.find(group_start, "ncclGroupStart");
      library.find(group_end, "ncclGroupEnd");
      library.find(error_text, "ncclGetErrorString");
      why_not.clear();
    } catch (Error const& e) {
      why_not = e.what();
    }
  }
  static std::vector<std::string> names() {
    if (gpu::name() == "hip") return {"librccl.so.1", "librccl.so"};
    return {"libnccl.so.2", "libnccl.so"};
  }
  void check(Status status, char const* call) const {
    ASTERISM_REQUIRE(status == 0, comm, "NCCL failed in {}: {} (status {}).", call, error_text(status), status);
  }
};

/// Once a GPU is open.
Library const& nccl() {
  static auto const* const l = new Library;
  return *l;
}

}  // namespace

void Nccl::all_gather(Array const& in, Array const& out) const {
  enqueue(in, out, [bytes = in.bytes(), handle = handle_](device::Executor& executor, std::byte const* from, std::byte* to) {
    nccl().check(nccl().all_gather(from, to, bytes, Library::bytes, handle, executor.stream()), "ncclAllGather");
  });
}

void Nccl::exchange(Parts sends, Parts receives, Array const& in, Array const& out) const {
  if (sends.empty() && receives.empty()) return;
  count(sends);
  enqueue(in, out,
          [sends = std::move(sends), receives = std::move(receives), handle = handle_](device::Executor& executor, std::byte const* from,
                                                                                       std::byte* to) {
            auto const& l = nccl();
            auto* const stream = executor.stream();
            l.check(l.group_start(), "ncclGroupStart");
            Library::Status sent = 0, received = 0;  // a group that was begun must end
            for (auto const& p : sends)
              if (sent == 0) sent = l.send(from + p.first, p.bytes, Library::bytes, p.rank, handle, stream);
            for (auto const& p : receives)
              if (received == 0) received = l.receive(to + p.first, p.bytes, Library::bytes, p.rank, handle, stream);
            auto const ended = l.group_end();
            l.check(sent, "ncclSend"), l.check(received, "ncclRecv"), l.check(ended, "ncclGroupEnd");
          });
}

std::shared_ptr<Nccl const> Nccl::connected(Communicator const& comm) {
  agree(comm, [] { ASTERISM_REQUIRE(nccl().why_not.empty(), unsupported, "it is not found: {}", nccl().why_not); });
  bool const shared = ranks_share_a_gpu(comm);
  ASTERISM_REQUIRE(!shared, unsupported, "ranks share a GPU, which NCCL refuses");
  NcclUniqueId id{};
  agree(comm, [&] {
    if (comm.rank() == 0) nccl().check(nccl().unique_id(&id), "ncclGetUniqueId");
  });
  comm.bcast(&id, sizeof id, 0);
  std::shared_ptr<Nccl> out;
  agree(comm, [&] {
    gpu::OnDevice const here;
    out.reset(new Nccl(comm, device::Queue::gpu()));
    nccl().check(nccl().init_rank(&out->handle_, comm.size(), id, comm.rank()), "ncclCommInitRank");
  });
  return out;
}

}  // namespace asterism::comm
