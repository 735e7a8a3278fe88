// A GPU without a GPU: as much of CUDA's runtime as the plug-in uses, on threads of the host, so that the plug-in's own source, queues,
// copies and kernels run in every test run. A stream is a thread. What it cannot show: nvcc's code, and speed.
//
// Fresh device memory is NaN. With ASTERISM_EMULATED_DELAYS=1 streams dawdle at random, so that an order that nobody asked for is not
// kept by luck. Blocks have ASTERISM_EMULATED_BLOCK threads (1 if not set; a power of two), and ASTERISM_EMULATED_RESIDENT of them run at
// the same time (1 if not set).
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#define __global__
#define __device__
#define __host__

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 600, cudaErrorNotSupported = 801 };

namespace emulated {
struct Index {
  unsigned x;
};
}  // namespace emulated
inline thread_local emulated::Index threadIdx{0}, blockIdx{0}, blockDim{1}, gridDim{1};

namespace emulated {

inline thread_local std::barrier<>* block_barrier = nullptr;
inline thread_local unsigned char* block_memory = nullptr;

inline int block_threads() {
  static int const n = [] {
    auto const* const e = std::getenv("ASTERISM_EMULATED_BLOCK");
    return e ? std::atoi(e) : 1;
  }();
  return n;
}

struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  std::uint64_t added = 0, done = 0;
  bool closed = false;
  std::thread worker;

  Stream()
      : worker([this] {
          bool const dawdles = std::getenv("ASTERISM_EMULATED_DELAYS") != nullptr;
          std::mt19937 random(7);
          for (;;) {
            std::function<void()> next;
            {
              std::unique_lock lock(mutex);
              changed.wait(lock, [&] { return closed || !work.empty(); });
              if (work.empty()) return;
              next = std::move(work.front());
              work.pop_front();
            }
            if (dawdles && random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
            next();
            next = nullptr;
            std::lock_guard const lock(mutex);
            ++done;
            changed.notify_all();
          }
        }) {}
  ~Stream() {
    {
      std::lock_guard const lock(mutex);
      closed = true;
      changed.notify_all();
    }
    worker.join();
  }
  std::uint64_t add(std::function<void()> f) {
    std::lock_guard const lock(mutex);
    work.push_back(std::move(f));
    changed.notify_all();
    return ++added;
  }
  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done >= number; });
  }
};

/// What an event stands for is kept while somebody waits for it, also where it is recorded anew meanwhile.
struct Event {
  std::mutex mutex;
  std::shared_ptr<std::atomic<bool>> reached = std::make_shared<std::atomic<bool>>(true);
};

inline Stream& default_stream() {
  static auto* const s = new Stream;
  return *s;
}
inline Stream& of(void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 1 ? default_stream() : *static_cast<Stream*>(stream);
}

inline unsigned resident_blocks() {
  auto const* const e = std::getenv("ASTERISM_EMULATED_RESIDENT");
  return e ? unsigned(std::atoi(e)) : 1;
}

/// Blocks in the order of their numbers, as many at once as are resident. `concurrent`: threads of a block may wait for each other. The
/// threads of a place stay for all its blocks: new ones for each block take minutes under the sanitizers.
template <class F>
void run_grid(unsigned blocks, unsigned threads, std::size_t shared, bool concurrent, unsigned resident, F const& f) {
  std::atomic<unsigned> next{0};
  auto const place = [&] {
    std::vector<unsigned char> memory(shared + 64);
    unsigned b = next++;
    auto const one = [&](unsigned t, std::barrier<>* barrier) {
      threadIdx = {t}, blockIdx = {b}, blockDim = {threads}, gridDim = {blocks};
      block_barrier = barrier;
      block_memory = memory.data() + (16 - reinterpret_cast<std::uintptr_t>(memory.data()) % 16);
      f();
      if (barrier) barrier->arrive_and_drop();
    };
    if (!concurrent || threads == 1) {
      for (; b < blocks; b = next++)
        for (unsigned t = 0; t < threads; ++t) one(t, nullptr);
      return;
    }
    std::optional<std::barrier<>> within(std::ptrdiff_t{threads});
    auto const turn = [&]() noexcept {
      b = next++;
      within.emplace(std::ptrdiff_t{threads});  // threads that were done early have left the one before
    };
    std::barrier between(std::ptrdiff_t{threads}, turn);
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (; b < blocks; between.arrive_and_wait()) one(t, &*within);
      });
  };
  if (resident = std::min(resident, blocks); resident <= 1) return place();
  std::vector<std::thread> places;
  for (unsigned p = 0; p < resident; ++p) places.emplace_back(place);
  for (auto& p : places) p.join();
}
template <class F>
void run_grid(unsigned blocks, unsigned threads, std::size_t shared, F const& f) {
  run_grid(blocks, threads, shared, shared > 0, resident_blocks(), f);
}

/// The runtime knows a kernel by an address, and its arguments by theirs: what it takes of them, to be called later.
using Call = std::function<void()>;
struct Kernel {
  std::function<Call(void**)> bind;
};
struct Kernels {
  std::mutex mutex;
  std::map<void const*, Kernel> all;
};
inline Kernels& kernels() {
  static auto* const k = new Kernels;
  return *k;
}
template <class... P>
void const* entry(void (*kernel)(P...)) {
  auto& k = kernels();
  std::lock_guard const lock(k.mutex);
  auto const at = k.all.try_emplace(reinterpret_cast<void const*>(kernel)).first;
  if (!at->second.bind) at->second.bind = [kernel](void** arguments) -> Call {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> Call {
      return [kernel, held = std::tuple<P...>(*static_cast<P*>(arguments[I])...)] { std::apply(kernel, held); };
    }(std::index_sequence_for<P...>());
  };
  return &at->second;
}
inline Call bind(void const* kernel, void** arguments) { return static_cast<Kernel const*>(kernel)->bind(arguments); }

}  // namespace emulated

#define ASTERISM_ENTRY(kernel) emulated::entry(kernel)
#define ASTERISM_GPU_BLOCK emulated::block_threads()
#define ASTERISM_SHARED(T, name) T* const name = reinterpret_cast<T*>(emulated::block_memory)

inline void __syncthreads() {
  if (emulated::block_barrier) emulated::block_barrier->arrive_and_wait();
}
inline void __nanosleep(unsigned) { std::this_thread::yield(); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline unsigned atomicAdd(unsigned* at, unsigned by) { return std::atomic_ref(*at).fetch_add(by); }
inline unsigned atomicSub(unsigned* at, unsigned by) { return std::atomic_ref(*at).fetch_sub(by); }

struct dim3 {
  unsigned x, y = 1, z = 1;
  dim3(unsigned n = 1) : x(n) {}
};
using cudaStream_t = emulated::Stream*;
using cudaEvent_t = emulated::Event*;
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int multiProcessorCount, major, minor;
};
enum { cudaMemAttachGlobal = 1, cudaDevAttrConcurrentManagedAccess = 89 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaMemcpyDefault = 4, cudaHostAllocPortable = 1, cudaMemPoolAttrReleaseThreshold = 4 };
using cudaMemPool_t = int;

inline char const* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : e == cudaErrorMemoryAllocation ? "out of memory" : "emulated error"; }
inline cudaError_t cudaGetDeviceCount(int* n) { return *n = std::getenv("ASTERISM_EMULATED_NONE") ? 0 : 1, cudaSuccess; }
/// A process's own, unless the environment says that there is one for all.
inline cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int) {
  return std::snprintf(text, std::size_t(length), "%ld", std::getenv("ASTERISM_EMULATED_SHARED") ? 0L : long(getpid())), cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* d) { return *d = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int d) { return d == 0 ? cudaSuccess : cudaErrorInvalidValue; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  std::strcpy(p->name, "emulated on the host");
  p->totalGlobalMem = std::size_t(1) << 30, p->multiProcessorCount = 1, p->major = p->minor = 0;
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) { return *free = *total = std::size_t(1) << 30, cudaSuccess; }
struct cudaPointerAttributes {
  int device;
};
/// All memory is the device's, but for what the environment names.
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, void const*) {
  auto const* const e = std::getenv("ASTERISM_EMULATED_POINTERS");
  return a->device = e ? std::atoi(e) : 0, cudaSuccess;
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* p, int) { return *p = 0, cudaSuccess; }
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, int, void*) { return cudaSuccess; }

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return *s = new emulated::Stream, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t s) { return delete s, cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  auto& stream = emulated::of(s);
  std::uint64_t last;
  {
    std::lock_guard const lock(stream.mutex);
    last = stream.added;
  }
  stream.wait(last);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return *e = new emulated::Event, cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t e) { return delete e, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  auto reached = std::make_shared<std::atomic<bool>>(false);
  {
    std::lock_guard const lock(e->mutex);
    e->reached = reached;
  }
  emulated::of(s).add([reached] { reached->store(true), reached->notify_all(); });
  return cudaSuccess;
}
inline std::shared_ptr<std::atomic<bool>> emulated_state(cudaEvent_t e) {
  std::lock_guard const lock(e->mutex);
  return e->reached;
}
inline cudaError_t cudaEventQuery(cudaEvent_t e) { return emulated_state(e)->load() ? cudaSuccess : cudaErrorNotReady; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t e) { return emulated_state(e)->wait(false), cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  emulated::of(s).add([reached = emulated_state(e)] { reached->wait(false); });
  return cudaSuccess;
}

inline cudaError_t cudaLaunchKernel(void const* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared, cudaStream_t s) {
  emulated::of(s).add([=, call = emulated::bind(kernel, arguments)] { emulated::run_grid(grid.x, block.x, shared, call); });
  return cudaSuccess;
}

// kernels of files: shared objects of tests/gpu_emulation/nvcc, whose function runs all lanes of all warps
using cudaLibrary_t = void*;
using cudaKernel_t = emulated::Kernel*;
#define CUDART_VERSION 13000
inline cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, char const* path, void*, void*, unsigned, void*, void*, unsigned) {
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *library ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, char const* name) {
  auto const run = reinterpret_cast<int (*)(void const*, int, int)>(dlsym(library, "emulated_launch"));
  auto const* const bytes = static_cast<std::size_t const*>(dlsym(library, "emulated_bytes"));
  if (!dlsym(library, name) || !run || !bytes) return cudaErrorInvalidValue;
  *kernel = new emulated::Kernel{[run, bytes = *bytes](void** arguments) -> emulated::Call {
    auto const* const argument = static_cast<unsigned char const*>(arguments[0]);
    return [run, held = std::vector<unsigned char>(argument, argument + bytes)] {
      if (threadIdx.x != 0 || blockIdx.x != 0) return;
      static std::mutex one_at_a_time;  // lanes have one place to exchange what they have
      std::lock_guard const lock(one_at_a_time);
      if (run(held.data(), int(gridDim.x), int(blockDim.x)) == 0) return;
      std::fprintf(stderr, "lanes of a warp were not in lock-step\n");
      std::abort();
    };
  }};
  return cudaSuccess;
}

/// All blocks at once.
inline cudaError_t cudaLaunchCooperativeKernel(void const* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared, cudaStream_t s) {
  emulated::of(s).add([=, call = emulated::bind(kernel, arguments)] { emulated::run_grid(grid.x, block.x, shared, true, grid.x, call); });
  return cudaSuccess;
}

// graphs; nodes without an order between them run in any
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};
namespace emulated {
struct Node {
  std::vector<Node*> before;
  Call call;
  void set(cudaKernelNodeParams const& p) {
    call = [p, bound = bind(p.func, p.kernelParams)] { run_grid(p.gridDim.x, p.blockDim.x, p.sharedMemBytes, bound); };
  }
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};
struct ReadyGraph {
  std::vector<Node*> keys;
  std::vector<Node> nodes;  // copies: what was changed here is not in the graph
};
}  // namespace emulated
using cudaGraph_t = emulated::Graph*;
using cudaGraphNode_t = emulated::Node*;
using cudaGraphExec_t = emulated::ReadyGraph*;
inline cudaError_t cudaGraphCreate(cudaGraph_t* g, unsigned) { return *g = new emulated::Graph, cudaSuccess; }
inline cudaError_t cudaGraphDestroy(cudaGraph_t g) { return delete g, cudaSuccess; }
inline cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t g, cudaGraphNode_t const* before, std::size_t count, cudaKernelNodeParams const* p) {
  if (std::getenv("ASTERISM_EMULATED_NO_GRAPHS")) return cudaErrorNotSupported;
  g->nodes.push_back(std::make_unique<emulated::Node>());
  *node = g->nodes.back().get();
  for (std::size_t i = 0; i < count; ++i) (*node)->before.push_back(before[i]);
  return (*node)->set(*p), cudaSuccess;
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t g, unsigned long long) {
  *out = new emulated::ReadyGraph;
  for (auto const& n : g->nodes) (*out)->keys.push_back(n.get()), (*out)->nodes.push_back(*n);
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) { return delete g, cudaSuccess; }
inline cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t g, cudaGraphNode_t node, cudaKernelNodeParams const* p) {
  for (std::size_t i = 0; i < g->keys.size(); ++i)
    if (g->keys[i] == node) return g->nodes[i].set(*p), cudaSuccess;
  return cudaErrorInvalidValue;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) {
  emulated::of(s).add([ready = *g] {
    std::vector<bool> done(ready.nodes.size());
    std::mt19937 random(11);
    for (std::size_t left = done.size(); left > 0; --left) {
      std::vector<std::size_t> able;
      for (std::size_t i = 0; i < done.size(); ++i) {
        bool const waits = std::any_of(ready.nodes[i].before.begin(), ready.nodes[i].before.end(), [&](auto const* b) {
          return !done[std::size_t(std::find(ready.keys.begin(), ready.keys.end(), b) - ready.keys.begin())];
        });
        if (!done[i] && !waits) able.push_back(i);
      }
      auto const next = able[random() % able.size()];
      ready.nodes[next].call();
      done[next] = true;
    }
  });
  return cudaSuccess;
}

inline cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t) {
  if (bytes > (std::size_t(1) << 30)) return cudaErrorMemoryAllocation;
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*p, 0xff, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, int, int) { return *value = !std::getenv("ASTERISM_EMULATED_NO_UNIFIED"), cudaSuccess; }
inline cudaError_t cudaMallocManaged(void** p, std::size_t bytes, unsigned) { return cudaMallocAsync(p, bytes, nullptr); }

// memory that other processes may map: a file without a name, so that a killed process leaves none to a later one of its number
struct cudaIpcMemHandle_t {
  char reserved[64];
};
enum { cudaIpcMemLazyEnablePeerAccess = 1 };
namespace emulated {
struct Window {
  std::size_t bytes;
  int file;  // < 0: another process's
};
struct Windows {
  std::mutex mutex;
  std::map<void*, Window> all;
};
inline Windows& windows() {
  static Windows w;
  return w;
}
inline void* map(int file, std::size_t bytes, bool own) {
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (!own || p == MAP_FAILED) close(file);
  if (p == MAP_FAILED) return nullptr;
  std::lock_guard const lock(windows().mutex);
  windows().all[p] = {bytes, own ? file : -1};
  return p;
}
inline bool unmap(void* p) {
  std::lock_guard const lock(windows().mutex);
  auto const at = windows().all.find(p);
  if (at == windows().all.end()) return false;
  munmap(p, at->second.bytes);
  if (at->second.file >= 0) close(at->second.file);
  windows().all.erase(at);
  return true;
}
}  // namespace emulated
inline cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  int const f = memfd_create("emulated-gpu", MFD_CLOEXEC);
  if (f < 0) return cudaErrorMemoryAllocation;
  if (ftruncate(f, off_t(bytes)) != 0) return close(f), cudaErrorMemoryAllocation;
  *p = emulated::map(f, bytes, true);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaMemset(void* p, int v, std::size_t bytes) { return std::memset(p, v, bytes), cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaFree(void* p) {
  if (!emulated::unmap(p)) std::free(p);
  return cudaSuccess;
}
inline cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* h, void* p) {
  if (std::getenv("ASTERISM_EMULATED_NO_IPC")) return cudaErrorNotSupported;
  std::lock_guard const lock(emulated::windows().mutex);
  std::snprintf(h->reserved, sizeof h->reserved, "/proc/%ld/fd/%d", long(getpid()), emulated::windows().all.at(p).file);
  return cudaSuccess;
}
inline cudaError_t cudaIpcOpenMemHandle(void** p, cudaIpcMemHandle_t h, unsigned) {
  int const f = open(h.reserved, O_RDWR | O_CLOEXEC);
  *p = f < 0 ? nullptr : emulated::map(f, std::size_t(lseek(f, 0, SEEK_END)), false);
  return *p ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaIpcCloseMemHandle(void* p) { return emulated::unmap(p) ? cudaSuccess : cudaErrorInvalidValue; }
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return std::free(p), cudaSuccess; }
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, int, cudaStream_t s) {
  emulated::of(s).add([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* p, int v, std::size_t bytes, cudaStream_t s) {
  emulated::of(s).add([=] { std::memset(p, v, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) { return *p = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), cudaSuccess; }
inline cudaError_t cudaFreeHost(void* p) { return std::free(p), cudaSuccess; }
