#include "asterism/device/host/helper.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace asterism::device::host {

struct Helper::Impl {
  explicit Impl(std::function<void()> f) : step(std::move(f)), thread([this](std::stop_token const& stop) { run(stop); }) {}

  void run(std::stop_token const& stop) {
    while (!stop.stop_requested()) {
      if (reasons.load() > 0) {
        step();
        std::this_thread::yield();
        continue;
      }
      std::unique_lock lock(mutex);
      wake.wait(lock, stop, [this] { return reasons.load() > 0; });
    }
  }
  std::function<void()> step;
  std::atomic<int> reasons{0};
  std::mutex mutex;
  std::condition_variable_any wake;
  std::jthread thread;  // last: it uses the others
};

Helper::Helper(std::function<void()> step) : impl_(std::make_unique<Impl>(std::move(step))) {}
Helper::~Helper() = default;

void Helper::begin() {
  if (impl_->reasons.fetch_add(1) > 0) return;
  {
    std::lock_guard const lock(impl_->mutex);
  }  // it sleeps, or has not looked yet
  impl_->wake.notify_one();
}

void Helper::end() { impl_->reasons.fetch_sub(1); }

}  // namespace asterism::device::host
