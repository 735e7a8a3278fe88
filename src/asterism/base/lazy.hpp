// A value that is made when it is first asked for, by whichever thread asks first.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

namespace asterism {

/// Looking at it later costs one load. Copies copy the value if there is one.
template <class T>
class Lazy {
 public:
  Lazy() = default;
  Lazy(Lazy const& other) { take(other); }
  Lazy& operator=(Lazy const& other) {
    if (this != &other) take(other);
    return *this;
  }
  ~Lazy() = default;

  /// nullptr as long as nobody has asked.
  T const* get() const { return made_.load(std::memory_order_acquire); }
  T* get() { return made_.load(std::memory_order_acquire); }
  explicit operator bool() const { return get() != nullptr; }
  T const& operator*() const { return *get(); }
  T const* operator->() const { return get(); }

  /// make() is called once; if it throws, again for the next who asks.
  template <class F>
  T& made_by(F const& make) {
    if (auto* const there = get()) return *there;
    std::lock_guard const lock(mutex_);
    if (!value_) {
      value_ = std::make_unique<T>(make());
      made_.store(value_.get(), std::memory_order_release);
    }
    return *value_;
  }

 private:
  void take(Lazy const& other) {
    auto const* const there = other.get();
    value_ = there ? std::make_unique<T>(*there) : nullptr;
    made_.store(value_.get(), std::memory_order_release);
  }
  std::mutex mutex_;
  std::unique_ptr<T> value_;
  std::atomic<T*> made_{nullptr};
};

}  // namespace asterism
