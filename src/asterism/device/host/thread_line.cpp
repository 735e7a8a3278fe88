#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/device/host/line.hpp"
#include "asterism/device/host/team.hpp"

namespace asterism::device::host {
namespace {

std::atomic<std::int64_t> blocked{0};
thread_local bool is_worker = false;

/// Looks for a while, then sleeps until the value changes. Where the processes of this machine have no core for each
/// thread, it sleeps at once: who is waited for needs the core.
class Patience {
 public:
  bool over() {
    if (++looks_ > most_) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return false;
  }

 private:
  int looks_ = 0, most_ = allowed_cores() >= 2 * ranks_on_node() ? 4000 : 0;
};

class ThreadLine final : public Line {
 public:
  ThreadLine() : Line(true), state_(std::make_shared<State>()), worker_([s = state_] { s->run(); }) {}

  ~ThreadLine() override {
    {
      std::lock_guard const lock(state_->mutex);
      state_->closed = true;
    }
    state_->closed_or_added.notify_one();
    // the last holder may be one of its own tasks
    if (std::this_thread::get_id() == worker_.get_id()) worker_.detach();
    else worker_.join();
  }

  std::uint64_t add(Task task) override {
    auto& s = *state_;
    bool asleep = false;
    {
      std::lock_guard const lock(s.mutex);
      s.tasks.push_back(std::move(task));
      asleep = s.asleep;
    }
    auto const number = s.added.fetch_add(1) + 1;
    if (asleep) s.closed_or_added.notify_one();
    return number;
  }

  std::uint64_t last() const override { return state_->added.load(); }
  bool reached(std::uint64_t number) const override { return state_->done.load() >= number; }

  void reach(std::uint64_t number) override {
    if (reached(number)) return;
    ASTERISM_REQUIRE(std::this_thread::get_id() != worker_.get_id(), unsupported,
                     "a task waits for its own queue, which would wait for ever. Read what it needs in the task itself.");
    ++blocked;
    Patience patience;
    while (!reached(number)) {
      if (!patience.over()) continue;
      auto& s = *state_;
      std::unique_lock lock(s.mutex);
      ++s.sleepers;
      s.progressed.wait(lock, [&] { return reached(number); });
      --s.sleepers;
    }
  }

  std::exception_ptr take_error() override {
    std::lock_guard const lock(state_->mutex);
    return std::exchange(state_->error, nullptr);
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable closed_or_added, progressed;
    std::deque<Task> tasks;
    std::exception_ptr error;
    bool closed = false, asleep = false;
    // sequentially consistent: who goes to sleep counts itself and looks once more, who finishes a task stores and then looks
    std::atomic<std::uint64_t> added{0}, done{0};
    std::atomic<int> sleepers{0};

    /// Until there is work; false when there will be none.
    bool fetch(std::deque<Task>& mine, std::uint64_t taken) {
      Patience patience;
      while (added.load() == taken && !patience.over()) {
      }
      std::unique_lock lock(mutex);
      asleep = true;
      closed_or_added.wait(lock, [&] { return closed || !tasks.empty(); });
      asleep = false;
      mine.swap(tasks);
      return !mine.empty();
    }

    void run() {
      is_worker = true;
      Queue q;
      std::deque<Task> mine;
      for (std::uint64_t next = 0; fetch(mine, next); mine.clear())
        for (auto& task : mine) {
          run_one(q, task);
          task = {};  // what it holds goes before anybody learns that it is done
          done.store(++next);
          if (sleepers.load() > 0) {
            std::lock_guard const lock(mutex);
            progressed.notify_all();
          }
        }
    }

    void run_one(Queue& q, Task& task) {
      for (auto const& t : task.elsewhere) t.line->reach(t.number);
      {
        std::lock_guard const lock(mutex);
        if (error) return;
      }
      try {
        profile::QueuedScope const scope(task.event);
        task.work(q);
      } catch (...) {
        std::lock_guard const lock(mutex);
        error = std::current_exception();
      }
    }
  };
  std::shared_ptr<State> state_;
  std::thread worker_;
};

}  // namespace

std::shared_ptr<Line> thread_line() { return std::make_shared<ThreadLine>(); }
bool on_worker() { return is_worker; }
std::int64_t blocking_reaches() { return blocked.load(); }

}  // namespace asterism::device::host
