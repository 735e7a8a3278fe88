#include "asterism/device/host/team.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace asterism::device::host {
namespace {

int threads = 0;  // 0: not decided yet
int node_ranks = 1, node_rank = 0;

int from_environment() {
  for (auto const* name : {"ASTERISM_NUM_THREADS", "OMP_NUM_THREADS"})
    if (auto const* v = std::getenv(name); v && std::atoi(v) > 0) return std::atoi(v);
  return 0;
}

}  // namespace

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

void set_ranks_on_node(int ranks, int rank) {
  node_ranks = std::max(1, ranks);
  node_rank = rank;
  if (!from_environment()) threads = std::max(1, allowed_cores() / node_ranks);
}

int ranks_on_node() { return node_ranks; }
int rank_on_node() { return node_rank; }

int team_size() {
  if (threads == 0) {
    int const wanted = from_environment();
    threads = wanted ? wanted : std::max(1, allowed_cores() / node_ranks);
  }
  return threads;
}

void set_team_size(int n) { threads = std::max(1, n); }

void run_pieces(std::int64_t n, std::int64_t serial, void (*body)(void const*, std::int64_t, std::int64_t), void const* context) {
  if (n <= 0) return;
  int const shares = team_size();
  if (n <= serial || shares == 1) return body(context, 0, n);
  // long pieces end on multiples of 8 so that vectorised bodies stay aligned with each other; short ones are a few large shares of work
  std::int64_t const step = n / shares >= 64 ? 8 : 1;
  auto const cut = [&](int k) { return k == shares ? n : n * k / shares / step * step; };
  std::exception_ptr error;
  std::mutex mutex;
  auto const guarded = [&](int t) {
    try {
      if (cut(t) < cut(t + 1)) body(context, cut(t), cut(t + 1));
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
#if defined(_OPENMP) && !defined(ASTERISM_STD_THREADS)
#pragma omp parallel num_threads(shares)
  {
    // a runtime that grants fewer threads than asked must still run every share
    for (int t = omp_get_thread_num(); t < shares; t += omp_get_num_threads()) guarded(t);
  }
#else
  // the thread-sanitizer build: it cannot see g++'s OpenMP barriers
  std::vector<std::thread> helpers;
  for (int t = 1; t < shares; ++t) helpers.emplace_back(guarded, t);
  guarded(0);
  for (auto& h : helpers) h.join();
#endif
  if (error) std::rethrow_exception(error);
}

}  // namespace asterism::device::host
