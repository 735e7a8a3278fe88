// The table of api.hpp on CUDA or HIP.
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/parallel_gpu.hpp"

namespace asterism::device::gpu {
namespace {

using Stream = ASTERISM_GPU(Stream_t);
using Event = ASTERISM_GPU(Event_t);
// where the two differ in more than the prefix
#if defined(__HIPCC__)
using DeviceProperties = hipDeviceProp_t;
using PointerAttributes = hipPointerAttribute_t;
constexpr auto hosts_may_work = hipDeviceAttributeConcurrentManagedAccess;
int pin(void** data, std::size_t bytes) { return int(hipHostMalloc(data, bytes, hipHostMallocPortable)); }
#else
using DeviceProperties = cudaDeviceProp;
using PointerAttributes = cudaPointerAttributes;
constexpr auto hosts_may_work = cudaDevAttrConcurrentManagedAccess;
int pin(void** data, std::size_t bytes) { return int(cudaHostAlloc(data, bytes, cudaHostAllocPortable)); }
#endif

template <class T>
T as(void* handle) {
  return static_cast<T>(handle);
}

int allocate_unified(void** data, std::size_t bytes, int device) {
  int able = 0;
  if (auto const e = ASTERISM_GPU(DeviceGetAttribute)(&able, hosts_may_work, device)) return int(e);
  return able ? int(ASTERISM_GPU(MallocManaged)(data, bytes, ASTERISM_GPU(MemAttachGlobal))) : int(ASTERISM_GPU(ErrorNotSupported));
}

static_assert(sizeof(ASTERISM_GPU(IpcMemHandle_t)) == window_name_bytes);
int new_window(void** data, std::size_t bytes) {  // of its own: IPC shares whole allocations, and not those of pools
  if (auto const e = ASTERISM_GPU(Malloc)(data, bytes)) return int(e);
  if (auto const e = ASTERISM_GPU(Memset)(*data, 0, bytes)) return int(e);
  return int(ASTERISM_GPU(DeviceSynchronize)());
}

int keep_freed(int device) {
  ASTERISM_GPU(MemPool_t) pool;
  if (auto const e = ASTERISM_GPU(DeviceGetDefaultMemPool)(&pool, device)) return int(e);
  std::uint64_t all = ~std::uint64_t(0);
  return int(ASTERISM_GPU(MemPoolSetAttribute)(pool, ASTERISM_GPU(MemPoolAttrReleaseThreshold), &all));
}

struct Graph {
  ASTERISM_GPU(Graph_t) graph = nullptr;
  ASTERISM_GPU(GraphExec_t) exec = nullptr;
  std::vector<ASTERISM_GPU(GraphNode_t)> nodes;
  ~Graph() {
    if (exec) (void)ASTERISM_GPU(GraphExecDestroy)(exec);
    if (graph) (void)ASTERISM_GPU(GraphDestroy)(graph);
  }
};

/// HIP launches such kernels by another function; CUDA has this one since 12.8.
int load_kernel([[maybe_unused]] char const* path, [[maybe_unused]] char const* name, [[maybe_unused]] void const** kernel) {
#if defined(CUDART_VERSION) && CUDART_VERSION >= 12080
  cudaLibrary_t library = nullptr;
  if (auto const e = cudaLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0)) return int(e);
  cudaKernel_t found = nullptr;
  auto const e = cudaLibraryGetKernel(&found, library, name);
  *kernel = reinterpret_cast<void const*>(found);
  return int(e);
#else
  return int(ASTERISM_GPU(ErrorNotSupported));
#endif
}

ASTERISM_GPU(KernelNodeParams) node_of(Launch const& l) {
  ASTERISM_GPU(KernelNodeParams) p{};
  p.func = const_cast<void*>(l.kernel);
  p.gridDim = dim3(l.blocks);
  p.blockDim = dim3(l.threads);
  p.sharedMemBytes = unsigned(l.shared);
  p.kernelParams = l.arguments;
  return p;
}

int graph_new(Api::Graph* out, Launch const* kernels, int count) {
  auto g = std::make_unique<Graph>();
  if (auto const e = ASTERISM_GPU(GraphCreate)(&g->graph, 0)) return int(e);
  for (int i = 0; i < count; ++i) {
    auto const params = node_of(kernels[i]);
    ASTERISM_GPU(GraphNode_t) node = nullptr;
    if (auto const e = ASTERISM_GPU(GraphAddKernelNode)(&node, g->graph, i > 0 ? &g->nodes.back() : nullptr, i > 0 ? 1 : 0, &params))
      return int(e);
    g->nodes.push_back(node);
  }
  if (auto const e = ASTERISM_GPU(GraphInstantiateWithFlags)(&g->exec, g->graph, 0)) return int(e);
  *out = g.release();
  return 0;
}

Api const table = {
    api_version,
#if defined(__HIPCC__)
    "hip",
#else
    "cuda",
#endif
    [](int code) -> char const* { return ASTERISM_GPU(GetErrorString)(ASTERISM_GPU(Error_t)(code)); },
    [](int* devices) { return int(ASTERISM_GPU(GetDeviceCount)(devices)); },
    [](int device, char* text, int length) {
      DeviceProperties p;
      if (auto const e = ASTERISM_GPU(GetDeviceProperties)(&p, device)) return int(e);
      std::snprintf(text, std::size_t(length), "%s, %.0f GiB, %d multiprocessors, compute capability %d.%d", p.name,
                    double(p.totalGlobalMem) / (1 << 30), p.multiProcessorCount, p.major, p.minor);
      return 0;
    },
    [](int device, char* text, int length) { return int(ASTERISM_GPU(DeviceGetPCIBusId)(text, length, device)); },
    [](int device, char* text, int length) {
      DeviceProperties p;
      if (auto const e = ASTERISM_GPU(GetDeviceProperties)(&p, device)) return int(e);
#if defined(__HIPCC__)
      std::snprintf(text, std::size_t(length), "%s", p.gcnArchName);
#else
      std::snprintf(text, std::size_t(length), "sm_%d%d", p.major, p.minor);
#endif
      return 0;
    },
    [](int* device) { return int(ASTERISM_GPU(GetDevice)(device)); },
    [](int device) { return int(ASTERISM_GPU(SetDevice)(device)); },
    [](std::size_t* free, std::size_t* total) { return int(ASTERISM_GPU(MemGetInfo)(free, total)); },
    [](void const* data, int* device) {
      PointerAttributes a{};
      bool const known = ASTERISM_GPU(PointerGetAttributes)(&a, data) == ASTERISM_GPU(Success);
      *device = known ? a.device : -1;  // of the host's own memory: an error, or -2
      if (!known) (void)ASTERISM_GPU(GetLastError)();
      return 0;
    },
    [](Api::Stream* s) {
      Stream made = nullptr;
      auto const e = ASTERISM_GPU(StreamCreateWithFlags)(&made, ASTERISM_GPU(StreamNonBlocking));
      *s = made;
      return int(e);
    },
    [](Api::Stream s) { return int(ASTERISM_GPU(StreamDestroy)(as<Stream>(s))); },
    [](Api::Stream s) { return int(ASTERISM_GPU(StreamSynchronize)(as<Stream>(s))); },
    [](Api::Stream s, Api::Event e) { return int(ASTERISM_GPU(StreamWaitEvent)(as<Stream>(s), as<Event>(e), 0)); },
    [](Api::Event* e) {
      Event made = nullptr;
      auto const code = ASTERISM_GPU(EventCreateWithFlags)(&made, ASTERISM_GPU(EventDisableTiming));
      *e = made;
      return int(code);
    },
    [](Api::Event e) { return int(ASTERISM_GPU(EventDestroy)(as<Event>(e))); },
    [](Api::Event e, Api::Stream s) { return int(ASTERISM_GPU(EventRecord)(as<Event>(e), as<Stream>(s))); },
    [](Api::Event e, int* done) {
      auto const code = ASTERISM_GPU(EventQuery)(as<Event>(e));
      *done = code == ASTERISM_GPU(Success);
      if (code != ASTERISM_GPU(ErrorNotReady)) return int(code);
      (void)ASTERISM_GPU(GetLastError)();  // an answer, not an error: launch_error() must not find it
      return 0;
    },
    [](Api::Event e) { return int(ASTERISM_GPU(EventSynchronize)(as<Event>(e))); },
    [] { return int(ASTERISM_GPU(GetLastError)()); },
    keep_freed,
    [](void** data, std::size_t bytes, Api::Stream s) { return int(ASTERISM_GPU(MallocAsync)(data, bytes, as<Stream>(s))); },
    [](void* data, Api::Stream s) { return int(ASTERISM_GPU(FreeAsync)(data, as<Stream>(s))); },
    allocate_unified,
    [](void* data) { return int(ASTERISM_GPU(Free)(data)); },
    [](void* to, void const* from, std::size_t bytes, Api::Stream s) {
      return int(ASTERISM_GPU(MemcpyAsync)(to, from, bytes, ASTERISM_GPU(MemcpyDefault), as<Stream>(s)));
    },
    [](void* data, std::size_t bytes, Api::Stream s) { return int(ASTERISM_GPU(MemsetAsync)(data, 0, bytes, as<Stream>(s))); },
    pin,
    new_window,
    [](void* data) { return int(ASTERISM_GPU(Free)(data)); },
    [](void* data, void* name) { return int(ASTERISM_GPU(IpcGetMemHandle)(static_cast<ASTERISM_GPU(IpcMemHandle_t)*>(name), data)); },
    [](void const* name, void** data) {
      ASTERISM_GPU(IpcMemHandle_t) handle;
      std::memcpy(&handle, name, sizeof handle);
      return int(ASTERISM_GPU(IpcOpenMemHandle)(data, handle, ASTERISM_GPU(IpcMemLazyEnablePeerAccess)));
    },
    [](void* data) { return int(ASTERISM_GPU(IpcCloseMemHandle)(data)); },
    load_kernel,
    [](Launch const& l, Api::Stream s) {
      return int(ASTERISM_GPU(LaunchKernel)(l.kernel, dim3(l.blocks), dim3(l.threads), l.arguments, l.shared, as<Stream>(s)));
    },
    graph_new,
    [](Api::Graph g) {
      delete as<Graph*>(g);
      return 0;
    },
    [](Api::Graph g, int kernel, Launch const& l) {
      auto const params = node_of(l);
      return int(ASTERISM_GPU(GraphExecKernelNodeSetParams)(as<Graph*>(g)->exec, as<Graph*>(g)->nodes[std::size_t(kernel)], &params));
    },
    [](Api::Graph g, Api::Stream s) { return int(ASTERISM_GPU(GraphLaunch)(as<Graph*>(g)->exec, as<Stream>(s))); },
};

}  // namespace
}  // namespace asterism::device::gpu

extern "C" __attribute__((visibility("default"))) asterism::device::gpu::Api const* asterism_gpu_api() {
  return &asterism::device::gpu::table;
}
