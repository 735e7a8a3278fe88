// Arrays, and the way to run a kernel on them:
//
//   submit(queue, kernel, read<T>(a), update<T>(b), write<T>(c), value<T>(s), plain...)
//
// From the declared intents a queue derives the order that must be kept (queue.hpp). `write` means all of the array. A view
// of a part leaves the rest as it is. submit_on_host() is for work that has no form for devices: it finds its data on the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/ledger.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/device/queue.hpp"

namespace asterism::device {

/// A range of a buffer. Copies share the memory.
class Array {
 public:
  Array() = default;
  /// Uninitialised; aligned to 64 bytes, on huge pages where large.
  explicit Array(std::size_t bytes) : buffer_(std::make_shared<Buffer>(bytes)), bytes_(bytes) {}
  static Array wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner);
  /// In memory that the host and the GPU both address, moved by pages as they touch it: nothing is copied, and it may be larger than the
  /// GPU's own. An error where the device cannot share it with a host at work.
  static Array unified(std::size_t bytes);
  static Array wrap_gpu(void* data, std::size_t bytes, std::shared_ptr<void> owner);
  template <class T>
  static Array of(std::span<T const> values) {
    Array a(values.size_bytes());
    std::copy(values.begin(), values.end(), static_cast<std::remove_const_t<T>*>(a.raw()));
    return a;
  }
  Array view(std::size_t offset_bytes, std::size_t bytes) const;
  /// Divides all of it into parts of these sizes; no task has used it. From now on a view within a part is ordered after tasks on that part
  /// alone, and whatever spans several parts after those of each. For data whose parts different tasks use at the same time.
  void divide(std::vector<std::size_t> const& bytes) const;
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return buffer_ != nullptr; }
  std::shared_ptr<Buffer> const& buffer() const { return buffer_; }
  /// Adds that to the intents of a task.
  void intend(Access access, std::vector<Intent>& intents) const;
  /// The address. Whoever uses it has waited for the queue (settle()), or is inside submitted work.
  void* raw(Memory m = Memory::host) const { return buffer_ ? static_cast<std::byte*>(buffer_->data(m)) + offset_ : nullptr; }
  template <class T>
  T* as(Memory m = Memory::host) const {
    return static_cast<T*>(raw(m));
  }
  /// For a queue to fill: what it holds now is nobody's, so tasks that fill it part by part, or may not be run, copy nothing. The host may
  /// use it after settle().
  static Array fresh(Queue const& queue, std::size_t bytes) {
    Array a(bytes);
    a.discard(queue);
    return a;
  }
  void discard(Queue const& queue) const {
    if (!queue.runs_inline()) discard();
  }
  /// What it holds is nobody's any more, wherever that is.
  void discard() const {
    each_buffer([](Buffer& b, bool) { Ledger::discard(b); });
  }
  /// Before the host's own access to raw(): waits for work in its way (counted under `reason`) and brings the newest values back.
  /// `access` update or write: what a queue has apart is not the newest any more.
  void settle(Access access, char const* reason) const {
    each_buffer([&](Buffer& b, bool) {
      if (b.involved()) Ledger::settle(b, access, reason);
    });
  }
  /// Whether settle() has to ask anybody.
  bool involved() const {
    bool any = false;
    each_buffer([&](Buffer& b, bool) { any |= b.involved(); });
    return any;
  }

 private:
  /// f(buffer, whether all of it): its own, or the parts that it touches.
  template <class F>
  void each_buffer(F const& f) const {
    if (!buffer_) return;
    if (buffer_->parts().empty()) return f(*buffer_, bytes_ == buffer_->bytes());
    for (auto const& part : buffer_->parts()) {
      auto const first = part->offset(), end = first + part->bytes();
      if (first < offset_ + bytes_ && offset_ < end) f(*part, offset_ <= first && end <= offset_ + bytes_);
    }
  }
  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0, bytes_ = 0;
};

/// An array argument of submit(): resolves to T const* or T*. Lives no longer than the call; what is queued holds the array.
template <class T>
struct ArrayArgument {
  Array const& array;
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
  static void settle(A const&) {}
  static A hold(A const& a, Queue const&, Memory) { return a; }
  static void collect(A const&, std::vector<Intent>&) {}
  static A const& resolve(A const& a, Memory) { return a; }
};

template <class T>
struct HeldArray {
  Array array;
  Access access;
};
template <class T>
struct Argument<ArrayArgument<T>> {
  static bool ready(ArrayArgument<T> const&) { return true; }
  static void settle(ArrayArgument<T> const& a) { a.array.settle(a.access, "work at once on what a queue uses"); }
  static HeldArray<T> hold(ArrayArgument<T> const& a, Queue const&, Memory) { return {a.array, a.access}; }
  static void collect(HeldArray<T> const& a, std::vector<Intent>& v) { a.array.intend(a.access, v); }
  template <class A>  // the argument, or what is held of it
  static T* resolve(A const& a, Memory m) {
    return static_cast<T*>(a.array.raw(m));
  }
};

template <class K, class... A>
void submit(Queue const& queue, Queue::Form form, K kernel, A const&... args) {
  if (queue.runs_inline() && (Argument<A>::ready(args) && ...)) {
    (Argument<A>::settle(args), ...);
    Executor executor;
    kernel(executor, Argument<A>::resolve(args, Memory::host)...);
    return;
  }
  if (form == Queue::Form::any && queue.memory() == Memory::gpu) {
    void* found = nullptr;
    if constexpr (std::is_pointer_v<K>) {
      found = gpu::form_of(reinterpret_cast<void*>(kernel));
      if (found) kernel = reinterpret_cast<K>(found);
    }
    if (!found) form = Queue::Form::host, gpu::count_without_form();
  }
  auto const memory = form == Queue::Form::host ? Memory::host : queue.memory();
  std::tuple<decltype(Argument<A>::hold(args, queue, memory))...> held{Argument<A>::hold(args, queue, memory)...};
  std::vector<Intent> intents;
  intents.reserve(8);
  std::apply([&](auto const&... h) { (Argument<A>::collect(h, intents), ...); }, held);
  queue.enqueue(
      std::move(intents),
      [kernel, memory, held = std::move(held)](Executor& executor) {
        std::apply([&](auto const&... h) { kernel(executor, Argument<A>::resolve(h, memory)...); }, held);
      },
      form);
}
}  // namespace detail

/// Runs or enqueues kernel(queue, resolved arguments...). On a GPU's queue, a kernel that is a function runs there if the plug-in
/// has its form; anything else runs on the host with the newest data, which is counted (gpu::without_form()).
template <class K, class... A>
void submit(Queue const& queue, K kernel, A const&... args) {
  detail::submit(queue, Queue::Form::any, std::move(kernel), args...);
}

/// The same for work that needs its data on the host, as MPI does.
template <class K, class... A>
void submit_on_host(Queue const& queue, K kernel, A const&... args) {
  detail::submit(queue, Queue::Form::host, std::move(kernel), args...);
}

/// The same for work that has no form for a GPU, which is counted.
template <class K, class... A>
void submit_without_form(Queue const& queue, K kernel, A const&... args) {
  if (queue.memory() == Memory::gpu) gpu::count_without_form();
  detail::submit(queue, Queue::Form::host, std::move(kernel), args...);
}

}  // namespace asterism::device
