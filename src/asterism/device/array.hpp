// Memory with a ledger of who last wrote and read it, and the queues that work is submitted to.
//
// submit(ctx, kernel, read<T>(a), update<T>(b), write<T>(c), value<T>(s), plain...) is the way to
// run a kernel: from the declared intents a queue derives the order that must be kept. The inline
// queue runs work at once; the shuffle queue runs it when somebody waits, in a random order that
// the intents allow, so that a missing intent shows as a wrong answer in a test.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "asterism/device/host/memory.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::device {

enum class Access : std::uint8_t { read, update, write };

/// Counted memory; enqueued work holds a count, so a buffer outlives its last user.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes);
  /// Foreign memory, kept alive by owner.
  Buffer(void* data, std::size_t bytes, std::shared_ptr<void> owner) : data_(data), bytes_(bytes), owner_(std::move(owner)) {}
  ~Buffer();
  Buffer(Buffer const&) = delete;
  Buffer& operator=(Buffer const&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  struct Ledger {
    std::uint64_t writer = 0;            ///< task that wrote last
    std::vector<std::uint64_t> readers;  ///< tasks that read since
    std::uint64_t queue = 0;             ///< serial number of the queue those tasks are on
  } ledger;

 private:
  host::Block block_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<void> owner_;
};

struct Intent {
  std::shared_ptr<Buffer> buffer;
  Access access;
};

struct WaitCount {
  std::string reason;
  std::int64_t count;
};

/// A shared handle to an ordered queue.
class Context {
 public:
  /// Runs work at once on the caller's thread and team. The default.
  static Context const& host();
  /// One thread, any legal order, repeatable for a seed. For tests.
  static Context shuffle(std::uint64_t seed);

  bool runs_inline() const { return impl_ == nullptr; }
  void enqueue(std::vector<Intent> intents, std::function<void(Queue&)> work) const;
  /// Until all submitted work is done. Errors of queued work are thrown here, once.
  void wait(char const* reason) const;
  /// Waits of the host so far, by reason.
  std::vector<WaitCount> waits() const;
  friend bool operator==(Context const& a, Context const& b) { return a.impl_ == b.impl_; }

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A range of a buffer. Copies share the memory.
class Array {
 public:
  Array() = default;
  /// Uninitialised; aligned to 64 bytes, on huge pages where large.
  explicit Array(std::size_t bytes) : buffer_(std::make_shared<Buffer>(bytes)), bytes_(bytes) {}
  static Array wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner);
  template <class T>
  static Array of(std::span<T const> values) {
    Array a(values.size_bytes());
    std::copy(values.begin(), values.end(), static_cast<std::remove_const_t<T>*>(a.raw()));
    return a;
  }
  Array view(std::size_t offset_bytes, std::size_t bytes) const;
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return buffer_ != nullptr; }
  std::shared_ptr<Buffer> const& buffer() const { return buffer_; }
  /// The host address. Whoever uses it has waited for the queue, or is inside submitted work.
  void* raw() const { return buffer_ ? static_cast<std::byte*>(buffer_->data()) + offset_ : nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(raw());
  }

 private:
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0, bytes_ = 0;
};

/// An array argument of submit(): resolves to T const* or T*.
template <class T>
struct ArrayArgument {
  Array array;
  Access access;
};
template <class T>
ArrayArgument<T const> read(Array const& a) {
  return {a, Access::read};
}
template <class T>
ArrayArgument<T> update(Array const& a) {
  return {a, Access::update};
}
template <class T>
ArrayArgument<T> write(Array const& a) {
  return {a, Access::write};
}

namespace detail {
template <class A>
struct Argument {  // plain values pass through
  static bool ready(A const&) { return true; }
  static void collect(A const&, std::vector<Intent>&) {}
  static A const& resolve(A const& a) { return a; }
};
template <class T>
struct Argument<ArrayArgument<T>> {
  static bool ready(ArrayArgument<T> const&) { return true; }
  static void collect(ArrayArgument<T> const& a, std::vector<Intent>& v) {
    if (a.array.buffer()) v.push_back({a.array.buffer(), a.access});
  }
  static T* resolve(ArrayArgument<T> const& a) { return static_cast<T*>(a.array.raw()); }
};
}  // namespace detail

/// Runs or enqueues kernel(queue, resolved arguments...).
template <class K, class... A>
void submit(Context const& ctx, K kernel, A const&... args) {
  if (ctx.runs_inline() && (detail::Argument<A>::ready(args) && ...)) {
    Queue q;
    kernel(q, detail::Argument<A>::resolve(args)...);
    return;
  }
  std::vector<Intent> intents;
  (detail::Argument<A>::collect(args, intents), ...);
  ctx.enqueue(std::move(intents), [kernel, ... held = args](Queue& q) { kernel(q, detail::Argument<A>::resolve(held)...); });
}

}  // namespace asterism::device
