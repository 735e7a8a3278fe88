// The process's one thread team. Only kernels open parallel regions, through parallel.hpp.
//
// A region has a share of the work for each thread. Every thread takes its own share first, so that what it finds in its caches is from
// the last region; then those that nobody has begun: a thread that gets no core costs the others its share, no more. Who waits for a
// share under way, or for the next region, looks for a while and then sleeps (patience.hpp).
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// Threads in the team. Starts as cores allowed (affinity mask) / ranks that share them, at least 1; the environment variable
/// ASTERISM_NUM_THREADS or OMP_NUM_THREADS overrides it.
int team_size();
void set_team_size(int threads);
/// Cores this process may use.
int allowed_cores();

/// The processes of this program on this node.
struct NodeShare {
  int ranks = 1, rank = 0;
  int sharing = 1;  ///< ranks that may use a core of this process, itself included
  int cores = 0;    ///< that any of the ranks may use; 0: not known
};
/// Told once by the comm room.
void set_node_share(NodeShare const& share);
NodeShare const& node_share();

/// body(context, begin, end) over disjoint pieces of [0, n), on every thread of the team; in one piece on the caller's if n <= serial.
/// Returns when all are done; an exception of a thread is rethrown here. Of several threads that call at once one has the team, the others
/// do their work alone; so does a body that calls.
void run_pieces(std::int64_t n, std::int64_t serial, void (*body)(void const* context, std::int64_t begin, std::int64_t end),
                void const* context);

}  // namespace asterism::device::host
