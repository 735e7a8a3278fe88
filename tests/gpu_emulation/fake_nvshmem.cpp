// The functions of NVSHMEM that are used, between processes on emulated devices: symmetric memory is a file in /dev/shm for each process.
// ASTERISM_FAKE_NVSHMEM: the name of a function that fails; "wrong": messages arrive with an error; "network": no process has addresses of
// another's memory, and what is sent must lie in symmetric memory.
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "cuda_runtime.h"

namespace {

struct Id {
  int version;
  std::array<char, 124> folder;
};
struct Arguments {
  int version;
  Id* id;
  int rank, ranks;
};
struct Attributes {
  int version;
  void* mpi_comm;
  int arguments_version;
  Arguments id;
};
struct Segment {
  std::size_t bytes;
  std::vector<char*> of;  // by process
};
struct World {
  std::string folder;
  int rank = -1, ranks = 0;
  std::vector<Segment> segments;
  ~World() {
    if (rank == 0) std::filesystem::remove_all(folder);
  }
};
World& world() {
  static World w;
  return w;
}

std::string_view wish() {
  auto const* const w = std::getenv("ASTERISM_FAKE_NVSHMEM");
  return w ? w : "";
}
int status(std::string_view function) { return wish() == function ? 7 : 0; }

Segment const* segment_of(void const* p) {
  auto const& w = world();
  for (auto const& s : w.segments)
    if (auto* const base = s.of[std::size_t(w.rank)]; p >= base && p < base + s.bytes) return &s;
  return nullptr;
}
/// The same place in another process's memory.
template <class T>
T* there(T* here, int pe) {
  auto const* const s = segment_of(here);
  if (!s) std::abort();  // as NVSHMEM: not a symmetric address
  return reinterpret_cast<T*>(s->of[std::size_t(pe)] + (reinterpret_cast<char const*>(here) - s->of[std::size_t(world().rank)]));
}
void set(std::uint64_t* flag, std::uint64_t value) { std::atomic_ref(*flag).store(value); }

}  // namespace

extern "C" {
int nvshmemx_get_uniqueid(Id* id) {
  if (id->version != (1 << 16) + 128) return 4;
  std::snprintf(id->folder.data(), id->folder.size(), "/dev/shm/fake-nvshmem-XXXXXX");
  return mkdtemp(id->folder.data()) ? status("nvshmemx_get_uniqueid") : 2;
}
int nvshmemx_set_attr_uniqueid_args(int rank, int ranks, Id const* id, Attributes* attributes) {
  if (attributes->version != (1 << 16) + 144 || attributes->arguments_version != (1 << 16) + 128) return 4;
  attributes->id = {(1 << 16) + 24, const_cast<Id*>(id), rank, ranks};
  return status("nvshmemx_set_attr_uniqueid_args");
}
int nvshmemx_hostlib_init_attr(unsigned flags, Attributes* attributes) {
  if (flags != 8 || world().ranks > 0) return 4;
  if (int const s = status("nvshmemx_hostlib_init_attr")) return s;
  world().folder = attributes->id.id->folder.data();
  world().rank = attributes->id.rank, world().ranks = attributes->id.ranks;
  std::filesystem::create_directories(world().folder);
  return 0;
}
int nvshmem_my_pe() { return world().rank; }
void* nvshmem_calloc(std::size_t count, std::size_t size) {
  if (status("nvshmem_calloc")) return nullptr;
  auto& w = world();
  auto const bytes = count * size;
  auto const name = [&](int pe) { return w.folder + "/" + std::to_string(w.segments.size()) + "-" + std::to_string(pe); };
  Segment s{bytes, {}};
  {
    std::ofstream(name(w.rank) + ".part").put('\0');
    std::filesystem::resize_file(name(w.rank) + ".part", bytes);
    std::filesystem::rename(name(w.rank) + ".part", name(w.rank));
  }
  for (int pe = 0; pe < w.ranks; ++pe) {
    while (!std::filesystem::exists(name(pe))) std::this_thread::sleep_for(std::chrono::microseconds(50));
    int const f = open(name(pe).c_str(), O_RDWR);
    s.of.push_back(static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0)));
    close(f);
  }
  w.segments.push_back(s);
  return s.of[std::size_t(w.rank)];
}
void* nvshmem_ptr(void const* here, int pe) {
  if (wish() == "network" && pe != world().rank) return nullptr;
  return const_cast<void*>(there(here, pe));
}
void nvshmemx_putmem_signal_on_stream(void* to, void const* from, std::size_t bytes, std::uint64_t* flag, std::uint64_t value, int op,
                                      int pe, cudaStream_t stream) {
  if (op != 9 || (wish() == "network" && !segment_of(from))) std::abort();
  stream->add([=, target = static_cast<char*>(there(to, pe)), signal = there(flag, pe)] {
    std::memcpy(target, from, bytes);
    if (wish() == "wrong" && bytes > 0) target[bytes - 1] ^= 1;
    set(signal, value);
  });
}
void nvshmemx_signal_op_on_stream(std::uint64_t* flag, std::uint64_t value, int op, int pe, cudaStream_t stream) {
  if (op != 9) std::abort();
  stream->add([signal = there(flag, pe), value] { set(signal, value); });
}
void nvshmemx_signal_wait_until_on_stream(std::uint64_t* flag, int comparison, std::uint64_t value, cudaStream_t stream) {
  if (comparison != 5) std::abort();
  if (!segment_of(flag)) std::abort();
  stream->add([flag, value] {
    while (std::atomic_ref(*flag).load() < value) std::this_thread::yield();
  });
}
}
