// The functions of mpi_api.hpp. Built as a module that is not linked to libmpi; only its files include mpi.h.
#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "asterism/comm/mpi/mpi_plugin.hpp"

namespace {

using namespace asterism::comm::plugin;
using asterism::comm::MpiApi;
using Batch = MpiApi::Batch;

struct Requests {
  std::vector<MPI_Request> list;
  MPI_Comm anew = MPI_COMM_NULL;  // of duplicate_anew
};

MPI_Datatype datatype(MpiApi::Type t) {
  switch (t) {
    case MpiApi::int64: return MPI_INT64_T;
    case MpiApi::float64: return MPI_DOUBLE;
    case MpiApi::uint64: return MPI_UINT64_T;
    default: return MPI_BYTE;
  }
}

MPI_Op operation(MpiApi::Op op) { return op == MpiApi::sum ? MPI_SUM : op == MpiApi::max ? MPI_MAX : MPI_MIN; }

int keyval = MPI_KEYVAL_INVALID;
void (*tell_freed)(Comm, bool) = nullptr;
void (*tell_end)() = nullptr;
void when_freed(void (*freed)(Comm, bool), void (*ends)()) {
  tell_freed = freed;
  tell_end = ends;
}

int finalizes(MPI_Comm, int, void*, void*) {
  if (tell_end) tell_end();
  return MPI_SUCCESS;
}
/// MPI_Finalize deletes the attributes of MPI_COMM_SELF before all else (MPI 4.1, 11.2.4).
int notice_the_end() {
  int self = MPI_KEYVAL_INVALID;
  if (int const e = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizes, &self, nullptr)) return e;
  return MPI_Comm_set_attr(MPI_COMM_SELF, self, nullptr);
}

int free_duplicate(MPI_Comm parent, int, void* value, void*) {
  auto* d = static_cast<MPI_Comm*>(value);
  if (tell_freed) tell_freed(handle(*d), parent == MPI_COMM_WORLD || parent == MPI_COMM_SELF);  // which nobody frees
  MPI_Comm_free(d);
  delete d;
  return MPI_SUCCESS;
}

int error_text(int code, char* text, int length) {
  char full[MPI_MAX_ERROR_STRING];
  int n = 0;
  MPI_Error_string(code, full, &n);
  std::strncpy(text, full, std::size_t(length) - 1);
  text[length - 1] = 0;
  return 0;
}

int initialized(int* flag) {
  int finalized = 0;
  MPI_Initialized(flag);
  if (*flag) MPI_Finalized(&finalized);
  if (finalized) *flag = 0;
  return 0;
}

int thread_multiple(int* flag) {
  int level = 0;
  int const e = MPI_Query_thread(&level);
  *flag = level == MPI_THREAD_MULTIPLE;
  return e;
}

// By name at run time: older libraries have no such functions.
int gpu_aware(char const* runtime, int* answer) {
  bool const cuda = std::strcmp(runtime, "cuda") == 0;
  *answer = -1;
#if defined(OPEN_MPI)
  auto const query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, cuda ? "MPIX_Query_cuda_support" : "MPIX_Query_rocm_support"));
  if (query) *answer = query() == 1;
#else
  constexpr int type_cuda = 0, type_hip = 2;  // MPIX_GPU_SUPPORT_CUDA, MPIX_GPU_SUPPORT_HIP
  auto const query = reinterpret_cast<int (*)(int, int*)>(dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"));
  int supported = 0;
  if (query && query(cuda ? type_cuda : type_hip, &supported) == MPI_SUCCESS) *answer = supported != 0;
#endif
  return MPI_SUCCESS;
}

int library_version(char* text, int length) {
  char full[MPI_MAX_LIBRARY_VERSION_STRING];
  int n = 0;
  int const e = MPI_Get_library_version(full, &n);
  std::strncpy(text, full, std::size_t(length) - 1);
  text[length - 1] = 0;
  return e;
}

int duplicate_cached(Comm parent, Comm* duplicate) {
  {
    static std::mutex first;
    std::lock_guard const lock(first);
    if (keyval == MPI_KEYVAL_INVALID) {
      if (int const e = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_duplicate, &keyval, nullptr)) return e;
      if (int const e = notice_the_end()) return e;
    }
  }
  void* found = nullptr;
  int flag = 0;
  if (int const e = MPI_Comm_get_attr(comm(parent), keyval, &found, &flag)) return e;
  if (!flag) {
    auto* d = new MPI_Comm;
    if (int const e = MPI_Comm_dup(comm(parent), d)) return delete d, e;
    MPI_Comm_set_errhandler(*d, MPI_ERRORS_RETURN);
    if (int const e = MPI_Comm_set_attr(comm(parent), keyval, d)) return e;
    found = d;
  }
  *duplicate = handle(*static_cast<MPI_Comm*>(found));
  return MPI_SUCCESS;
}

int last_tag(int* tag) {
  void* found = nullptr;
  int flag = 0;
  int const e = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag);
  *tag = flag ? *static_cast<int*>(found) : 32767;  // which every MPI has
  return e;
}

int duplicate_anew(Batch b, Comm parent);
int adopt_duplicate(Batch b, Comm parent, Comm* duplicate) {
  auto const anew = static_cast<Requests*>(b)->anew;
  void* found = nullptr;
  int flag = 0;
  if (int const e = MPI_Comm_get_attr(comm(parent), keyval, &found, &flag)) return e;
  if (!flag) return MPI_ERR_COMM;
  MPI_Comm_set_errhandler(anew, MPI_ERRORS_RETURN);
  *static_cast<MPI_Comm*>(found) = anew;
  *duplicate = handle(anew);
  return MPI_SUCCESS;
}

int rank_and_size(Comm c, int* rank, int* size) {
  int const e = MPI_Comm_rank(comm(c), rank);
  return e ? e : MPI_Comm_size(comm(c), size);
}

int split_node(Comm c, Comm* node) {
  MPI_Comm n;
  int const e = MPI_Comm_split_type(comm(c), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &n);
  if (!e) *node = handle(n);
  return e;
}
int comm_free(Comm c) {
  MPI_Comm own = comm(c);
  return MPI_Comm_free(&own);
}
int progress(Comm c) {
  int flag = 0;
  return MPI_Iprobe(MPI_ANY_SOURCE, 0, comm(c), &flag, MPI_STATUS_IGNORE);
}

int abort_all(Comm c, int code) { return MPI_Abort(comm(c), code); }

Batch batch_new() { return new Requests; }
void batch_free(Batch b) { delete static_cast<Requests*>(b); }
MPI_Request* slot(Batch b) { return &static_cast<Requests*>(b)->list.emplace_back(MPI_REQUEST_NULL); }

int isend(Batch b, Comm c, void const* p, std::int64_t bytes, int to, int tag) {
  Message const m(bytes);
  return MPI_Isend(p, m.count, m.type, to, tag, comm(c), slot(b));
}
int issend(Batch b, Comm c, void const* p, std::int64_t bytes, int to, int tag) {
  Message const m(bytes);
  return MPI_Issend(p, m.count, m.type, to, tag, comm(c), slot(b));
}
int irecv(Batch b, Comm c, void* p, std::int64_t bytes, int from, int tag) {
  Message const m(bytes);
  return MPI_Irecv(p, m.count, m.type, from, tag, comm(c), slot(b));
}
int irecv_at(Batch b, int place, Comm c, void* p, std::int64_t bytes, int from, int tag) {
  auto& list = static_cast<Requests*>(b)->list;
  if (std::size_t(place) >= list.size()) list.resize(std::size_t(place) + 1, MPI_REQUEST_NULL);
  Message const m(bytes);
  return MPI_Irecv(p, m.count, m.type, from, tag, comm(c), &list[std::size_t(place)]);
}
int test_at(Batch b, int place, int* done, std::int64_t* bytes) {
  MPI_Status s;
  int const e = MPI_Test(&static_cast<Requests*>(b)->list[std::size_t(place)], done, &s);
  if (e || !*done) return e;
  MPI_Count n = 0;
  int const e2 = MPI_Get_elements_x(&s, MPI_BYTE, &n);
  *bytes = n;
  return e2;
}
int cancel_all(Batch b) {
  auto& list = static_cast<Requests*>(b)->list;
  for (auto& r : list)
    if (r != MPI_REQUEST_NULL) MPI_Cancel(&r);
  return MPI_Waitall(int(list.size()), list.data(), MPI_STATUSES_IGNORE);
}
int iallgather(Batch b, Comm c, void const* in, void* out, std::int64_t bytes) {
  return MPI_Iallgather(in, int(bytes), MPI_BYTE, out, int(bytes), MPI_BYTE, comm(c), slot(b));
}
int iallreduce(Batch b, Comm c, void const* in, void* out, std::int64_t n, MpiApi::Type t, MpiApi::Op op) {
  return MPI_Iallreduce(in, out, int(n), datatype(t), operation(op), comm(c), slot(b));
}
int ibarrier(Batch b, Comm c) { return MPI_Ibarrier(comm(c), slot(b)); }
int ibcast(Batch b, Comm c, void* data, std::int64_t bytes, int root) {
  Message const m(bytes);
  return MPI_Ibcast(data, m.count, m.type, root, comm(c), slot(b));
}
int ireduce_scatter_sum(Batch b, Comm c, std::int64_t const* in, std::int64_t* out) {
  return MPI_Ireduce_scatter_block(in, out, 1, MPI_INT64_T, MPI_SUM, comm(c), slot(b));
}
int duplicate_anew(Batch b, Comm parent) { return MPI_Comm_idup(comm(parent), &static_cast<Requests*>(b)->anew, slot(b)); }
/// Items of `unit` bytes.
class Unit {
 public:
  explicit Unit(std::int64_t unit) {
    Message const one(unit);
    MPI_Type_contiguous(one.count, one.type, &type);
    MPI_Type_commit(&type);
  }
  ~Unit() { MPI_Type_free(&type); }
  Unit(Unit const&) = delete;
  MPI_Datatype type;
};

int iallgatherv(Batch b, Comm c, void const* in, int n, void* out, int const* counts, int const* places, std::int64_t unit) {
  Unit const u(unit);
  return MPI_Iallgatherv(in, n, u.type, out, counts, places, u.type, comm(c), slot(b));
}
int igatherv(Batch b, Comm c, void const* in, int n, void* out, int const* counts, int const* places, std::int64_t unit, int root) {
  Unit const u(unit);
  return MPI_Igatherv(in, n, u.type, out, counts, places, u.type, root, comm(c), slot(b));
}
int iscatterv(Batch b, Comm c, void const* in, int const* counts, int const* places, void* out, int n, std::int64_t unit, int root) {
  Unit const u(unit);
  return MPI_Iscatterv(in, counts, places, u.type, out, n, u.type, root, comm(c), slot(b));
}
int ialltoallv(Batch b, Comm c, void const* in, int const* in_counts, int const* in_places, void* out, int const* out_counts,
               int const* out_places, std::int64_t unit) {
  Unit const u(unit);
  return MPI_Ialltoallv(in, in_counts, in_places, u.type, out, out_counts, out_places, u.type, comm(c), slot(b));
}
int testall(Batch b, int* done) {
  auto& list = static_cast<Requests*>(b)->list;
  // the call for one costs less
  int const e = list.size() == 1 ? MPI_Test(list.data(), done, MPI_STATUS_IGNORE)
                                 : MPI_Testall(int(list.size()), list.data(), done, MPI_STATUSES_IGNORE);
  if (*done) list.clear();
  return e;
}
int graph_comm(Comm c, int from_count, int const* from, int to_count, int const* to, Comm* graph) {
  MPI_Comm g;
  int const e =
      MPI_Dist_graph_create_adjacent(comm(c), from_count, from, MPI_UNWEIGHTED, to_count, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g);
  if (e) return e;
  MPI_Comm_set_errhandler(g, MPI_ERRORS_RETURN);
  *graph = handle(g);
  return MPI_SUCCESS;
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
constexpr bool has_persistent_collectives = true;
#else
constexpr bool has_persistent_collectives = false;
#define MPI_Neighbor_alltoallw_init(a, b, c, d, e, f, g, h, comm, info, request) ((void)(info), MPI_ERR_UNSUPPORTED_OPERATION)
#endif

struct Neighbor {
  // one side of the exchange, by addresses
  struct Half {
    Half(MpiApi::Part const* parts, int n) {
      for (int i = 0; i < n; ++i) {
        auto const& m = *messages.emplace_back(std::make_unique<Message>(parts[i].bytes));
        lengths.push_back(m.count);
        types.push_back(m.type);
        MPI_Get_address(parts[i].data, &places.emplace_back());
      }
    }
    std::vector<std::unique_ptr<Message>> messages;
    std::vector<int> lengths;
    std::vector<MPI_Datatype> types;
    std::vector<MPI_Aint> places;
  };
  Half to, from;
  MPI_Comm graph;
  MPI_Request request = MPI_REQUEST_NULL;
};

int neighbor_plan(Comm graph, MpiApi::Part const* to, int to_count, MpiApi::Part const* from, int from_count, MpiApi::NeighborPlan* out) {
  auto p = std::unique_ptr<Neighbor>(new Neighbor{{to, to_count}, {from, from_count}, comm(graph)});
  if constexpr (has_persistent_collectives) {
    int const e = MPI_Neighbor_alltoallw_init(MPI_BOTTOM, p->to.lengths.data(), p->to.places.data(), p->to.types.data(), MPI_BOTTOM,
                                              p->from.lengths.data(), p->from.places.data(), p->from.types.data(), p->graph, MPI_INFO_NULL,
                                              &p->request);
    if (e) return e;
  }
  *out = p.release();
  return MPI_SUCCESS;
}
int neighbor_start(MpiApi::NeighborPlan plan) {
  auto* p = static_cast<Neighbor*>(plan);
  if constexpr (has_persistent_collectives) return MPI_Start(&p->request);
  return MPI_Ineighbor_alltoallw(MPI_BOTTOM, p->to.lengths.data(), p->to.places.data(), p->to.types.data(), MPI_BOTTOM,
                                 p->from.lengths.data(), p->from.places.data(), p->from.types.data(), p->graph, &p->request);
}
int neighbor_test(MpiApi::NeighborPlan plan, int* done) {
  return MPI_Test(&static_cast<Neighbor*>(plan)->request, done, MPI_STATUS_IGNORE);
}
void neighbor_free(MpiApi::NeighborPlan plan) {
  auto* p = static_cast<Neighbor*>(plan);
  if (p->request != MPI_REQUEST_NULL) MPI_Request_free(&p->request);
  delete p;
}

struct RmaWindow {
  MPI_Win win = MPI_WIN_NULL;
  MpiApi::Epoch epoch;
  MPI_Comm comm;
  MPI_Group from = MPI_GROUP_NULL, to = MPI_GROUP_NULL;
};

int window_new(Comm c, std::int64_t bytes, MpiApi::Epoch epoch, int from_count, int const* from, int to_count, int const* to, void** base,
               MpiApi::Window* out) {
  auto w = std::make_unique<RmaWindow>();
  w->epoch = epoch;
  w->comm = comm(c);
  if (int const e = MPI_Win_allocate(MPI_Aint(bytes), 1, MPI_INFO_NULL, w->comm, base, &w->win)) return e;
  MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
  MPI_Group all;
  MPI_Comm_group(w->comm, &all);
  MPI_Group_incl(all, from_count, from, &w->from);
  MPI_Group_incl(all, to_count, to, &w->to);
  MPI_Group_free(&all);
  if (epoch == MpiApi::lock)
    if (int const e = MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win)) return e;
  *out = w.release();
  return MPI_SUCCESS;
}
int window_free(MpiApi::Window window) {
  std::unique_ptr<RmaWindow> const w(static_cast<RmaWindow*>(window));
  if (w->epoch == MpiApi::lock) MPI_Win_unlock_all(w->win);
  for (auto* g : {&w->from, &w->to})
    if (*g != MPI_GROUP_EMPTY) MPI_Group_free(g);
  return MPI_Win_free(&w->win);
}
int put(MpiApi::Window window, void const* data, std::int64_t bytes, int to, std::int64_t at) {
  Message const m(bytes);
  return MPI_Put(data, m.count, m.type, to, MPI_Aint(at), m.count, m.type, static_cast<RmaWindow*>(window)->win);
}
int window_open(MpiApi::Window window) {
  auto* w = static_cast<RmaWindow*>(window);
  if (w->epoch == MpiApi::fence) return MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
  if (w->epoch == MpiApi::lock) {
    MPI_Win_sync(w->win);
    return MPI_Barrier(w->comm);  // what lay there has been taken
  }
  int const e = MPI_Win_post(w->from, 0, w->win);
  return e ? e : MPI_Win_start(w->to, 0, w->win);
}
int window_close(MpiApi::Window window) {
  auto* w = static_cast<RmaWindow*>(window);
  if (w->epoch == MpiApi::fence) return MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
  if (w->epoch == MpiApi::lock) {
    if (int const e = MPI_Win_flush_all(w->win)) return e;
    if (int const e = MPI_Barrier(w->comm)) return e;
    return MPI_Win_sync(w->win);
  }
  int const e = MPI_Win_complete(w->win);
  return e ? e : MPI_Win_wait(w->win);
}
int iprobe(Comm c, int tag, int* found, int* source, std::int64_t* bytes) {
  MPI_Status s;
  int const e = MPI_Iprobe(MPI_ANY_SOURCE, tag, comm(c), found, &s);
  if (e || !*found) return e;
  MPI_Count n = 0;
  *source = s.MPI_SOURCE;
  int const e2 = MPI_Get_elements_x(&s, MPI_BYTE, &n);
  *bytes = n;
  return e2;
}
constexpr MpiApi api = {asterism::comm::mpi_api_version,
#if defined(OPEN_MPI)
                        "openmpi",
#else
                        "mpich",
#endif
                        error_text,
                        initialized,
                        thread_multiple,
                        library_version,
                        gpu_aware,
                        duplicate_cached,
                        last_tag,
                        duplicate_anew,
                        adopt_duplicate,
                        when_freed,
                        rank_and_size,
                        split_node,
                        comm_free,
                        progress,
                        abort_all,
                        batch_new,
                        batch_free,
                        isend,
                        issend,
                        irecv,
                        irecv_at,
                        test_at,
                        cancel_all,
                        iallgather,
                        iallreduce,
                        ibarrier,
                        ibcast,
                        ireduce_scatter_sum,
                        iallgatherv,
                        igatherv,
                        iscatterv,
                        ialltoallv,
                        testall,
                        graph_comm,
                        neighbor_plan,
                        neighbor_start,
                        neighbor_test,
                        neighbor_free,
                        window_new,
                        window_free,
                        put,
                        window_open,
                        window_close,
                        iprobe,
                        pingpong,
                        halo};

}  // namespace

extern "C" __attribute__((visibility("default"))) MpiApi const* asterism_mpi_plugin() { return &api; }
