// The functions of NCCL that are used, between processes on emulated devices: a message is a file in /dev/shm, which appears whole.
// ASTERISM_FAKE_NCCL: the name of a function that fails; "wrong": messages arrive with an error; "late": from the 30th call on all fail.
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "cuda_runtime.h"

namespace {

struct Id {
  std::array<char, 128> folder;
};
struct Comm {
  std::string folder;
  int ranks, rank;
  std::vector<std::uint64_t> sent, received;  // by rank
};
struct Message {
  bool sends;
  void* data;
  std::size_t bytes;
  int peer;
  Comm* comm;
};
thread_local bool in_group = false;
thread_local std::vector<Message> group;
thread_local cudaStream_t group_stream = nullptr;

std::string_view wish() {
  auto const* const w = std::getenv("ASTERISM_FAKE_NCCL");
  return w ? w : "";
}
int status(std::string_view function) { return wish() == function ? 5 : 0; }

std::string file(Comm const& c, int from, int to, std::uint64_t number) {
  return c.folder + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
}
void send(Comm& c, int to, void const* data, std::size_t bytes) {
  auto const name = file(c, c.rank, to, c.sent[std::size_t(to)]++);
  std::ofstream(name + ".part", std::ios::binary).write(static_cast<char const*>(data), std::streamsize(bytes));
  std::filesystem::rename(name + ".part", name);
}
void receive(Comm& c, int from, void* data, std::size_t bytes) {
  auto const name = file(c, from, c.rank, c.received[std::size_t(from)]++);
  while (!std::filesystem::exists(name)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (std::filesystem::file_size(name) != bytes) std::abort();  // as NCCL: nobody looks, memory is overwritten
  std::ifstream(name, std::ios::binary).read(static_cast<char*>(data), std::streamsize(bytes));
  if (wish() == "wrong" && bytes > 0) static_cast<char*>(data)[bytes - 1] ^= 1;
  std::filesystem::remove(name);
}
void launch(std::vector<Message> messages, cudaStream_t stream) {
  stream->add([messages = std::move(messages)] {
    for (auto const& m : messages)
      if (m.sends) send(*m.comm, m.peer, m.data, m.bytes);
    for (auto const& m : messages)
      if (!m.sends) receive(*m.comm, m.peer, m.data, m.bytes);
  });
}
void add(Message m, void* stream) {
  group_stream = static_cast<cudaStream_t>(stream);
  if (in_group) group.push_back(m);
  else launch({m}, group_stream);
}

}  // namespace

extern "C" {
int ncclGetUniqueId(Id* id) {
  std::snprintf(id->folder.data(), id->folder.size(), "/dev/shm/fake-nccl-XXXXXX");
  return mkdtemp(id->folder.data()) ? status("ncclGetUniqueId") : 2;
}
int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  std::filesystem::create_directories(id.folder.data());
  if (rank == 0) {
    static std::vector<std::string> folders;
    if (folders.empty())
      std::atexit([] {
        for (auto const& f : folders) std::filesystem::remove_all(f);
      });
    folders.push_back(id.folder.data());
  }
  *comm = new Comm{id.folder.data(), ranks, rank, std::vector<std::uint64_t>(std::size_t(ranks)),
                   std::vector<std::uint64_t>(std::size_t(ranks))};
  return status("ncclCommInitRank");
}
int ncclAllGather(void const* in, void* out, std::size_t count, int type, void* comm, void* stream) {
  if (type != 0) return 4;
  static std::atomic<int> calls{0};
  if (wish() == "late" && ++calls >= 30) return 5;
  auto* const c = static_cast<Comm*>(comm);
  std::vector<Message> messages;
  for (int r = 0; r < c->ranks; ++r) {
    messages.push_back({true, const_cast<void*>(in), count, r, c});
    messages.push_back({false, static_cast<char*>(out) + std::size_t(r) * count, count, r, c});
  }
  launch(std::move(messages), static_cast<cudaStream_t>(stream));
  return status("ncclAllGather");
}
int ncclSend(void const* in, std::size_t count, int type, int peer, void* comm, void* stream) {
  if (type != 0) return 4;
  add({true, const_cast<void*>(in), count, peer, static_cast<Comm*>(comm)}, stream);
  return status("ncclSend");
}
int ncclRecv(void* out, std::size_t count, int type, int peer, void* comm, void* stream) {
  if (type != 0) return 4;
  add({false, out, count, peer, static_cast<Comm*>(comm)}, stream);
  return status("ncclRecv");
}
int ncclGroupStart() { return in_group = true, group.clear(), 0; }
int ncclGroupEnd() {
  in_group = false;
  launch(std::move(group), group_stream);
  group.clear();
  return status("ncclGroupEnd");
}
char const* ncclGetErrorString(int status) { return status == 4 ? "invalid argument" : "it was told to fail"; }
}
