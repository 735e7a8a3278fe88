#include "asterism/comm/progress.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "asterism/comm/communicator.hpp"

namespace asterism::comm {
namespace {

class Helper {
 public:
  explicit Helper(MpiApi const* api) : api_(api), thread_([this](std::stop_token const& stop) { run(stop); }) {}

  void begin(MpiApi::Comm comm) {
    comm_ = comm;
    if (under_way_.fetch_add(1) > 0) return;
    { std::lock_guard const lock(mutex_); }  // it is either waiting or has not looked yet
    work_.notify_one();
  }
  void end() { under_way_.fetch_sub(1); }

 private:
  void run(std::stop_token const& stop) {
    while (!stop.stop_requested()) {
      if (under_way_.load() > 0) {
        api_->progress(comm_);
        std::this_thread::yield();
        continue;
      }
      std::unique_lock lock(mutex_);
      work_.wait(lock, stop, [this] { return under_way_.load() > 0; });
    }
  }
  MpiApi const* api_;
  std::atomic<MpiApi::Comm> comm_{0};
  std::atomic<int> under_way_{0};
  std::mutex mutex_;
  std::condition_variable_any work_;
  std::jthread thread_;  // last: it uses the others
};

std::atomic<Helper*> helper{nullptr};

}  // namespace

bool progress_thread() { return helper.load() != nullptr; }

void set_progress_thread(bool on) {
  if (on == progress_thread()) return;
  if (!on) {
    delete helper.exchange(nullptr);
    return;
  }
  ASTERISM_REQUIRE(mpi(), comm, "a progress thread was asked for, but MPI is not loaded.");
  int multiple = 0;
  check_mpi(mpi()->thread_multiple(&multiple), "MPI_Query_thread");
  ASTERISM_REQUIRE(multiple, comm, "a progress thread needs MPI_THREAD_MULTIPLE, which MPI was not initialised with.");
  helper = new Helper(mpi());
}

void detail::operation_begins(unsigned long long communicator) {
  if (auto* const h = helper.load(std::memory_order_relaxed)) h->begin(communicator);
}
void detail::operation_ends() {
  if (auto* const h = helper.load(std::memory_order_relaxed)) h->end();
}

}  // namespace asterism::comm
