// A word that threads wait for to change.
#pragma once
#include <atomic>
#include <cstdint>

#include "asterism/device/host/futex.hpp"
#include "asterism/device/host/patience.hpp"

namespace asterism::device::host {

/// Who waits looks for a while and then sleeps (patience.hpp). A waker that finds nobody asleep makes no call of the system.
class Signal {
 public:
  std::uint32_t value() const { return word_.load(std::memory_order_acquire); }
  void set(std::uint32_t value) {
    word_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(word_);
  }
  void add(std::uint32_t by) {
    word_.fetch_add(by, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(word_);
  }
  /// Until reached(value()).
  template <class F>
  void wait(F const& reached) {
    Patience patience;
    while (!reached(value()))
      if (patience.over()) return sleep(reached);
  }
  /// Until it is not `value`, but asleep for at most so many nanoseconds: for who waits for something else too.
  void wait_shortly(std::uint32_t value, std::int64_t nanoseconds) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    futex_wait(word_, value, nanoseconds);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  template <class F>
  void sleep(F const& reached) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    for (auto v = word_.load(std::memory_order_seq_cst); !reached(v); v = word_.load(std::memory_order_seq_cst))
      futex_wait(word_, v, 60'000'000'000);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  std::atomic<std::uint32_t> word_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace asterism::device::host
