// The table through which the library calls MPI.
//
// mpi_plugin.cpp fills it, compiled once per MPI ABI (Open MPI, MPICH) against that MPI's mpi.h and
// linked to none: the host program has loaded its libmpi. Handles are opaque 64-bit values, and
// non-blocking calls work on batches that the plug-in owns, so no MPI type appears outside it.
//
// Nothing that a program calls again and again waits inside MPI, but for the epochs of windows: who waits (wait.hpp) also looks for
// errors of other ranks, and does not keep a core that others need.
#pragma once
#include <cstdint>

namespace asterism::comm {

inline constexpr int mpi_api_version = 13;

struct MpiApi {
  int version;      ///< mpi_api_version
  char const* abi;  ///< "openmpi" or "mpich"
  using Comm = std::uint64_t;
  using Batch = void*;
  enum Type : int { byte, int64, float64, uint64 };
  enum Op : int { sum, max, min };

  // every int result is an MPI error code, 0 is success
  int (*error_text)(int code, char* text, int length);
  int (*initialized)(int* flag);
  int (*thread_multiple)(int* flag);
  int (*library_version)(char* text, int length);
  /// Whether it takes addresses of the memory of GPUs of that runtime ("cuda" or "hip"): 1, 0, or -1 where it does not say.
  int (*gpu_aware)(char const* runtime, int* answer);
  /// Our private duplicate of the user's communicator: made once (collective), kept as its attribute.
  int (*duplicate_cached)(Comm parent, Comm* duplicate);
  /// Another one: begun, and, when the batch is done, taken in the place of the first, which is given up with what is under way in it.
  int (*last_tag)(int* tag);  ///< MPI_TAG_UB
  int (*duplicate_anew)(Batch, Comm parent);
  int (*adopt_duplicate)(Batch, Comm parent, Comm* duplicate);
  /// From now on f is called with a duplicate that goes, before it does: when the user frees the communicator, or when MPI ends.
  void (*when_freed)(void (*freed)(Comm duplicate, bool ends), void (*ends)());  ///< ends: before MPI is finalised
  int (*rank_and_size)(Comm, int* rank, int* size);
  /// The ranks on this machine, in the same order, as a communicator of their own. Collective.
  int (*split_node)(Comm, Comm* node);
  int (*comm_free)(Comm);
  /// Lets MPI move its messages.
  int (*progress)(Comm);
  int (*abort)(Comm, int code);

  Batch (*batch_new)();
  void (*batch_free)(Batch);
  int (*isend)(Batch, Comm, void const* data, std::int64_t bytes, int to, int tag);
  int (*issend)(Batch, Comm, void const* data, std::int64_t bytes, int to, int tag);
  int (*irecv)(Batch, Comm, void* data, std::int64_t bytes, int from, int tag);
  /// A receive with a place of its own in the batch, posted again and again; test_at frees the place when it is done.
  int (*irecv_at)(Batch, int place, Comm, void* data, std::int64_t bytes, int from, int tag);
  int (*test_at)(Batch, int place, int* done, std::int64_t* bytes);
  int (*cancel_all)(Batch);
  int (*iallgather)(Batch, Comm, void const* in, void* out, std::int64_t bytes);
  int (*iallreduce)(Batch, Comm, void const* in, void* out, std::int64_t count, Type, Op);
  int (*ibarrier)(Batch, Comm);
  int (*ibcast)(Batch, Comm, void* data, std::int64_t bytes, int root);
  /// Entry r of the sum over all ranks, on rank r.
  int (*ireduce_scatter_sum)(Batch, Comm, std::int64_t const* in, std::int64_t* out);
  /// Collectives of items of `unit` bytes; counts and places are numbers of items, one for each rank.
  int (*iallgatherv)(Batch, Comm, void const* in, int count, void* out, int const* counts, int const* places, std::int64_t unit);
  int (*igatherv)(Batch, Comm, void const* in, int count, void* out, int const* counts, int const* places, std::int64_t unit, int root);
  int (*iscatterv)(Batch, Comm, void const* in, int const* counts, int const* places, void* out, int count, std::int64_t unit, int root);
  int (*ialltoallv)(Batch, Comm, void const* in, int const* in_counts, int const* in_places, void* out, int const* out_counts,
                    int const* out_places, std::int64_t unit);
  int (*testall)(Batch, int* done);  ///< empties the batch when all are

  /// A communicator that knows whom each rank receives from and sends to. Collective.
  int (*graph_comm)(Comm, int from_count, int const* from, int to_count, int const* to, Comm* graph);
  struct Part {
    void* data;
    std::int64_t bytes;
  };
  /// An all-to-all between neighbours of a graph with fixed buffers, persistent where MPI has it; plan and start are collective.
  using NeighborPlan = void*;
  int (*neighbor_plan)(Comm graph, Part const* to, int to_count, Part const* from, int from_count, NeighborPlan*);
  int (*neighbor_start)(NeighborPlan);
  int (*neighbor_test)(NeighborPlan, int* done);
  void (*neighbor_free)(NeighborPlan);

  /// Memory that other ranks write to. Made and freed collectively.
  using Window = void*;
  enum Epoch : int { fence, lock, pscw };
  /// from, to: who writes here and to whom this rank writes.
  int (*window_new)(Comm, std::int64_t bytes, Epoch, int from_count, int const* from, int to_count, int const* to, void** base, Window*);
  int (*window_free)(Window);
  /// Between window_open and window_close; after it what others wrote is there.
  int (*put)(Window, void const* data, std::int64_t bytes, int to, std::int64_t at);
  int (*window_open)(Window);
  int (*window_close)(Window);

  /// Any message with this tag waiting?
  int (*iprobe)(Comm, int tag, int* found, int* source, std::int64_t* bytes);
  /// For benchmarks: rank 0 sends to rank 1 and back, `repeats` times, by MPI_Send and MPI_Recv.
  int (*pingpong)(Comm, void* data, std::int64_t bytes, int repeats);
  /// For benchmarks: a halo exchange of float64 as one writes it by hand, `repeats` times: MPI_Isend and MPI_Irecv of subarray
  /// types, or of buffers that loops pack and unpack. before(context) is called before each and takes no part in the seconds.
  struct HaloPart {
    int rank, send_low[3], receive_low[3], sizes[3];
  };
  int (*halo)(Comm, double* data, int const* sizes, HaloPart const* parts, int count, int packed, int repeats, void (*before)(void*),
              void* context, double* seconds);
};

/// The one symbol that a plug-in exports.
using MpiPluginEntry = MpiApi const* (*)();
inline constexpr char const* mpi_plugin_symbol = "asterism_mpi_plugin";

}  // namespace asterism::comm
