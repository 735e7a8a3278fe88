// How a format is handed to its kernel. It offers
//   view<T, V>(memory)     what the kernel reads: addresses in that memory; values are held as V, and T is computed with
//   each_array(memory, f)  calls f for each array that this is taken from
#pragma once
#include <memory>
#include <vector>

#include "asterism/base/bfloat16.hpp"
#include "asterism/device/array.hpp"
#include "asterism/la/formats/format.hpp"

namespace asterism::la {

/// An argument of submit() that resolves to a view.
template <class F, class T, class V = T>
struct FormatArgument {
  F const& format;
};

/// f(Tag<T>{}, Tag<V>{}) with the type of arithmetic, and that in which values are held.
template <class F>
void with_stored(Dtype dtype, bool bfloat16, F const& f) {
  if (bfloat16) f(Tag<float>{}, Tag<Bfloat16>{});
  else with_dtype(dtype, [&](auto tag) { f(tag, tag); });
}

/// On the host.
template <class F>
std::size_t total_bytes(F const& format) {
  std::size_t bytes = 0;
  format.each_array(device::Memory::host, [&](Array const& a) { bytes += a.bytes(); });
  return bytes;
}

}  // namespace asterism::la

namespace asterism::device::detail {
template <class F, class T, class V>
struct Argument<asterism::la::FormatArgument<F, T, V>> {
  using Passed = asterism::la::FormatArgument<F, T, V>;
  // queued work holds the format; at once, the caller's hold is enough
  struct Held {
    std::shared_ptr<F const> format;
    Memory memory;
  };
  static bool ready(Passed const&) { return true; }
  // nobody else's work writes to these arrays, but for an assembly on a queue
  static void settle(Passed const& a) {
    if (auto const* const values = a.format.shared_values()) values->settle(Access::read, "a matrix's values");
  }
  static Held hold(Passed const& a, Queue const&, Memory m) { return {std::static_pointer_cast<F const>(a.format.shared_from_this()), m}; }
  static void collect(Held const& h, std::vector<Intent>& v) {
    if (h.memory == Memory::host) {
      auto const* const values = h.format->shared_values();
      if (values && values->buffer() && values->buffer()->involved()) values->intend(Access::read, v);
      return;
    }
    h.format->each_array(h.memory, [&](Array const& a) {
      if (a.bytes() > 0) a.intend(Access::read, v);
    });
  }
  static auto resolve(Passed const& a, Memory m) { return a.format.template view<T, V>(m); }
  static auto resolve(Held const& h, Memory m) { return h.format->template view<T, V>(m); }
};
}  // namespace asterism::device::detail

namespace asterism::la {

/// run() by one kernel: kernel(executor, view, epilogue, k, x, y, b, w).
template <class T, class V, class F, class Kernel>
void submit_product(Kernel kernel, F const& format, device::Queue const& queue, Epilogue e, std::int64_t k, Array const& x, Array const& y,
                    Array const& b, Array const& w) {
  device::submit(queue, kernel, FormatArgument<F, T, V>{format}, e, k, device::read<T>(x),
                 device::ArrayArgument<T>{y, written_by(e) == Writes::all_rows ? device::Access::write : device::Access::update},
                 device::read<T>(b), device::read<T>(w));
}

}  // namespace asterism::la
