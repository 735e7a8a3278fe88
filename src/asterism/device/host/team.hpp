// The process's one thread team. Only kernels open parallel regions, through parallel.hpp.
#pragma once
#include <functional>

namespace asterism::device::host {

/// Threads in the team. Starts as cores allowed (affinity mask) / ranks on this node, at least 1;
/// the environment variable ASTERISM_NUM_THREADS or OMP_NUM_THREADS overrides it.
int team_size();
void set_team_size(int threads);
/// Cores this process may use.
int allowed_cores();
/// Told once by the comm room: processes of this program on this node.
void set_ranks_on_node(int ranks);
int ranks_on_node();

using TeamBody = void (*)(void* body, int thread, int threads);
/// body(context, thread, threads) on every thread of the team; returns when all are done.
/// An exception of a thread is rethrown here.
void run_team_erased(TeamBody body, void* context);

template <class F>
void run_team(F const& f) {
  run_team_erased([](void* c, int t, int n) { (*static_cast<F const*>(c))(t, n); }, const_cast<F*>(&f));
}

}  // namespace asterism::device::host
