#include "asterism/comm/nccl.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/gpu/vendor_library.hpp"

namespace asterism::comm {

struct NcclUniqueId {
  std::array<char, 128> data;
};

namespace {

namespace gpu = device::gpu;
using device::Access;
using device::Array;
using device::Context;
using device::Memory;

std::atomic<NcclChoice> chosen_nccl{NcclChoice::automatic};

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

/// Whether no two ranks have one GPU between them: NCCL refuses that.
bool each_has_its_own(Communicator const& comm) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  auto const mine = std::string(host) + " " + gpu::identity();
  std::vector<std::int64_t> counts;
  auto const all = comm.all_gather_bytes(std::as_bytes(std::span(mine)), &counts);
  std::set<std::string> names;
  std::size_t at = 0;
  for (auto const n : counts) {
    names.emplace(reinterpret_cast<char const*>(all.data()) + at, std::size_t(n));
    at += std::size_t(n);
  }
  return names.size() == counts.size();
}

using KnownNccl = std::map<NcclChoice, NcclUse>;

}  // namespace

void set_nccl(NcclChoice choice) { chosen_nccl = choice; }

void Nccl::enqueue(Array const& in, Array const& out, std::function<void(void*, std::byte const*, std::byte*)> work) const {
  std::vector<device::Intent> intents{{comm_.lane().buffer().get(), Access::update, true, Memory::host}};
  in.intend(Access::read, intents);
  out.intend(Access::write, intents);
  queue_.enqueue(std::move(intents), [in, out, lane = comm_.lane(), work = std::move(work)](device::Queue& q) {
    work(q.stream(), in.as<std::byte>(Memory::gpu), out.as<std::byte>(Memory::gpu));
  });
}

void Nccl::all_gather(Array const& in, Array const& out) const {
  enqueue(in, out, [bytes = in.bytes(), handle = handle_](void* stream, std::byte const* from, std::byte* to) {
    nccl().check(nccl().all_gather(from, to, bytes, Library::bytes, handle, stream), "ncclAllGather");
  });
}

void Nccl::exchange(std::vector<Part> sends, std::vector<Part> receives, Array const& in, Array const& out) const {
  if (sends.empty() && receives.empty()) return;
  double bytes = 0;
  for (auto const& s : sends) bytes += double(s.bytes);
  profile::count_message(std::int64_t(sends.size()), bytes);
  enqueue(in, out,
          [sends = std::move(sends), receives = std::move(receives), handle = handle_](void* stream, std::byte const* from, std::byte* to) {
            auto const& l = nccl();
            l.check(l.group_start(), "ncclGroupStart");
            for (auto const& p : sends) l.check(l.send(from + p.first, p.bytes, Library::bytes, p.rank, handle, stream), "ncclSend");
            for (auto const& p : receives) l.check(l.receive(to + p.first, p.bytes, Library::bytes, p.rank, handle, stream), "ncclRecv");
            l.check(l.group_end(), "ncclGroupEnd");
          });
}

/// Collective steps of making one.
struct NcclMaker {
  static std::shared_ptr<Nccl> connected(Communicator const& comm) {
    Library::UniqueId id{};
    agree(comm, [&] {
      if (comm.rank() == 0) nccl().check(nccl().unique_id(&id), "ncclGetUniqueId");
    });
    comm.bcast(&id, sizeof id, 0);
    auto out = std::make_shared<Nccl>();
    agree(comm, [&] {
      gpu::OnDevice const here;
      nccl().check(nccl().init_rank(&out->handle_, comm.size(), id, comm.rank()), "ncclCommInitRank");
      out->comm_ = comm;
      out->queue_ = Context::gpu();
    });
    return out;
  }

  /// Both kinds of messages, as they will be used: each rank sends its number to all, and twice as much to the next.
  static bool messages_arrive(Nccl const& n) {
    auto const rank = n.comm().rank(), size = n.comm().size();
    std::size_t const length = 1000;
    bool right = true;
    std::size_t const bytes = length * sizeof(std::int64_t);
    Array mine, all, before;
    agree(n.comm(), [&] {
      mine = Array(bytes), all = Array(bytes * std::size_t(size)), before = Array(bytes);
      for (std::size_t i = 0; i < length; ++i) mine.as<std::int64_t>()[i] = std::int64_t(i) * 7919 + rank;
    });
    // one after the other: a rank that cannot leaves no other waiting for the second
    agree(n.comm(), [&] {
      n.all_gather(mine, all);
      all.settle(Access::read, "check of NCCL");
    });
    agree(n.comm(), [&] {
      n.exchange({{(rank + 1) % size, 0, bytes}}, {{(rank + size - 1) % size, 0, bytes}}, mine, before);
      before.settle(Access::read, "check of NCCL");
      for (std::size_t i = 0; i < length; ++i) {
        for (int r = 0; r < size; ++r) right = right && all.as<std::int64_t>()[std::size_t(r) * length + i] == std::int64_t(i) * 7919 + r;
        right = right && before.as<std::int64_t>()[i] == std::int64_t(i) * 7919 + (rank + size - 1) % size;
      }
    });
    return n.comm().min(std::int64_t(right)) == 1;
  }

  static NcclUse found(Communicator const& comm, NcclChoice choice) {
    if (comm.size() == 1) return {nullptr, "one rank"};
    if (choice == NcclChoice::no) return {nullptr, "-use_nccl 0"};
    auto const lacking = comm.min(nccl().why_not.empty() ? std::int64_t(comm.size()) : std::int64_t(comm.rank()));
    if (lacking < comm.size()) return {nullptr, "no NCCL: " + comm.bcast(nccl().why_not, int(lacking))};
    if (!each_has_its_own(comm)) return {nullptr, "ranks share a GPU, which NCCL does not allow"};
    try {
      auto const made = connected(comm);
      if (!messages_arrive(*made)) return {nullptr, "NCCL's messages did not arrive as they were sent"};
      return {made, "messages have arrived as they were sent"};
    } catch (Error const& e) {  // the same on all ranks
      return {nullptr, e.what()};
    }
  }
};

NcclUse const& nccl_use(Communicator const& comm) {
  auto const choice = chosen_nccl.load();
  auto const mine = std::int64_t(choice), least = comm.min(mine);
  agree(comm, [&] { ASTERISM_REQUIRE(mine == least, option, "-use_nccl differs between the ranks. Give the same on all."); });
  auto& memo = comm.memo("nccl");
  if (!memo) memo = std::make_shared<KnownNccl>();
  auto& known = *static_cast<KnownNccl*>(memo.get());
  auto at = known.find(choice);
  if (at == known.end()) {
    at = known.try_emplace(choice, NcclMaker::found(comm, choice)).first;
    log::info("messages between GPUs {} by NCCL: {}", at->second.nccl ? "go" : "do not go", at->second.why);
  }
  ASTERISM_REQUIRE(at->second.nccl || choice != NcclChoice::yes || comm.size() == 1, comm, "-use_nccl 1: {}.", at->second.why);
  return at->second;
}

bool known_nccl(Communicator const& comm) {
  auto const& memo = comm.memo("nccl");
  if (!memo) return false;
  auto const& known = *static_cast<KnownNccl const*>(memo.get());
  return std::any_of(known.begin(), known.end(), [](auto const& k) { return bool(k.second.nccl); });
}

void send_by(std::shared_ptr<Nccl const> nccl, Context const& ctx) { ctx.set_peers(std::move(nccl)); }

std::shared_ptr<Nccl const> sent_by(Context const& ctx, Communicator const& comm) {
  if (ctx.memory() != Memory::gpu || comm.size() == 1) return nullptr;
  auto found = std::static_pointer_cast<Nccl const>(ctx.peers());
  return found && found->comm() == comm ? found : nullptr;
}

}  // namespace asterism::comm
