// The process's one thread team. Only kernels open parallel regions, through parallel.hpp.
#pragma once
#include <cstdint>

namespace asterism::device::host {

/// Threads in the team. Starts as cores allowed (affinity mask) / ranks on this node, at least 1;
/// the environment variable ASTERISM_NUM_THREADS or OMP_NUM_THREADS overrides it.
int team_size();
void set_team_size(int threads);
/// Cores this process may use.
int allowed_cores();
/// Told once by the comm room: processes of this program on this node.
void set_ranks_on_node(int ranks, int rank);
int ranks_on_node();
int rank_on_node();

/// body(context, begin, end) over disjoint pieces of [0, n), on every thread of the team; in one piece on the caller's if n <= serial.
/// Returns when all are done; an exception of a thread is rethrown here.
void run_pieces(std::int64_t n, std::int64_t serial, void (*body)(void const* context, std::int64_t begin, std::int64_t end),
                void const* context);

}  // namespace asterism::device::host
