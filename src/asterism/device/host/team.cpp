#include "asterism/device/host/team.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/host/signal.hpp"

namespace asterism::device::host {
namespace {

std::atomic<int> threads{0};  // 0: not decided yet
NodeShare share_of_node;

constexpr int most_threads = 1024;

/// 0: it does not say. A number of OpenMP may be followed by those of nested regions.
int from_environment() {
  for (std::string_view const name : {"ASTERISM_NUM_THREADS", "OMP_NUM_THREADS"}) {
    auto const* const v = std::getenv(name.data());
    if (!v || *v == 0) continue;
    char* end = nullptr;
    long const n = std::strtol(v, &end, 10);
    while (*end == ' ') ++end;
    bool const ends = *end == 0 || (*end == ',' && name.starts_with("OMP"));
    if (ends && n > 0 && n <= most_threads) return int(n);
    static std::atomic<bool> told{false};
    if (!told.exchange(true)) log::warning("{}={} is ignored: it is no number of threads from 1 to {}.", name, v, most_threads);
  }
  return 0;
}

class Team {
 public:
  explicit Team(int size) : size_(size), claimed_(std::make_unique<Claim[]>(std::size_t(size))) {
    for (int t = 1; t < size; ++t) try {
        std::thread([this, t] { work(t); }).detach();  // they end with the process
      } catch (std::system_error const& e) {           // those that are there take all shares
        log::warning("{} of {} threads: the system starts no more ({}). Set ASTERISM_NUM_THREADS to fewer.", t, size, e.what());
        break;
      }
  }
  int size() const { return size_; }

  /// By one caller at a time. f(share) for each of size() shares; it does not throw.
  void run(void (*f)(void* job, int share), void* job) {
    f_ = f;
    job_ = job;
    auto const region = region_.value() + 1;
    done_.store_plain(0);
    region_.set(region);
    take_shares(0, region);
    done_.wait([this](std::uint32_t done) { return done == std::uint32_t(size_); });
  }

 private:
  /// The region that a share was last begun in.
  struct alignas(64) Claim {
    std::atomic<std::uint32_t> region{0};
  };
  struct Count : Signal {
    void store_plain(std::uint32_t v) { set(v); }
  };

  void take_shares(int mine, std::uint32_t region) {
    for (int i = 0; i < size_; ++i) {
      int const s = (mine + i) % size_;
      auto& of_share = claimed_[std::size_t(s)].region;
      auto before = region - 1;  // every share of every region is taken
      if (of_share.load(std::memory_order_relaxed) != before ||
          !of_share.compare_exchange_strong(before, region, std::memory_order_acq_rel))
        continue;
      f_(job_, s);
      done_.add(1);
    }
  }
  void work(int t) {
    profile::name_thread("team " + std::to_string(t));
    for (std::uint32_t seen = 0;;) {
      region_.wait([seen](std::uint32_t now) { return now != seen; });
      seen = region_.value();
      take_shares(t, seen);
    }
  }

  int size_;
  std::unique_ptr<Claim[]> claimed_;
  void (*f_)(void*, int) = nullptr;
  void* job_ = nullptr;
  alignas(64) Signal region_;
  alignas(64) Count done_;
};

thread_local bool in_region = false;
/// One of each size that was asked for. Their threads sleep.
auto* teams = new std::map<int, Team*>;
std::mutex team_mutex;

/// A child of fork has none of the threads, and perhaps a mutex that one of them held.
void forget_team() {
  teams = new std::map<int, Team*>;
  new (&team_mutex) std::mutex;
}

Team& team_of(int size) {
  static int const once = pthread_atfork(nullptr, nullptr, forget_team);
  (void)once;
  auto& team = (*teams)[size];
  if (!team) team = new Team(size);
  return *team;
}

struct Pieces {
  std::int64_t n, step;
  int shares;
  void (*body)(void const*, std::int64_t, std::int64_t);
  void const* context;
  std::mutex mutex;
  std::exception_ptr error;

  // long pieces end on multiples of 8 so that vectorised bodies stay aligned with each other; short ones are a few large shares of work
  std::int64_t cut(int k) const { return k == shares ? n : n * k / shares / step * step; }
  static void run(void* job, int share) {
    auto& p = *static_cast<Pieces*>(job);
    bool const before = std::exchange(in_region, true);
    try {
      if (p.cut(share) < p.cut(share + 1)) p.body(p.context, p.cut(share), p.cut(share + 1));
    } catch (...) {
      std::lock_guard const lock(p.mutex);
      if (!p.error) p.error = std::current_exception();
    }
    in_region = before;
  }
};

}  // namespace

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

void set_node_share(NodeShare const& share) {
  share_of_node = share;
  if (!from_environment()) threads = std::max(1, allowed_cores() / share.sharing);
}

NodeShare const& node_share() { return share_of_node; }

int team_size() {
  if (int const known = threads.load(std::memory_order_relaxed)) return known;
  int const wanted = from_environment();
  threads = wanted ? wanted : std::max(1, allowed_cores() / share_of_node.sharing);
  return threads;
}

void set_team_size(int n) { threads = std::max(1, n); }

void run_pieces(std::int64_t n, std::int64_t serial, void (*body)(void const*, std::int64_t, std::int64_t), void const* context) {
  if (n <= 0) return;
  int const shares = team_size();
  if (n <= serial || shares == 1 || in_region) return body(context, 0, n);
  std::unique_lock const lock(team_mutex, std::try_to_lock);
  if (!lock) return body(context, 0, n);  // another thread's region is under way
  Pieces pieces{n, n / shares >= 64 ? 8 : 1, shares, body, context, {}, nullptr};
  team_of(shares).run(Pieces::run, &pieces);
  if (pieces.error) std::rethrow_exception(pieces.error);
}

}  // namespace asterism::device::host
