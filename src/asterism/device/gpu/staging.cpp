// Copies between the host's own memory and the GPU's. Long ones go through pieces of memory that the GPU reads and writes by itself:
// threads of the host fill and empty these, while others are under way. The runtime's own copies of such memory take one thread, which also
// has to wait for pages of the host that nobody has touched yet.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::device::gpu {
namespace {

constexpr std::size_t piece = std::size_t(4) << 20;
constexpr std::size_t pieces = 4;

/// Made when first wanted; they stay with the process.
class Stages {
 public:
  static Stages& all() {
    static auto* const s = new Stages;  // queues may end after static destruction began
    return *s;
  }
  /// For one caller at a time: nothing for others, for short copies, and where there is no such memory.
  std::unique_lock<std::mutex> taken(std::size_t bytes) {
    if (bytes < piece) return {};
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && !made_) make();
    return lock && there_ ? std::move(lock) : std::unique_lock<std::mutex>();
  }
  /// The n-th piece of a copy, when what was in it is through.
  std::byte* room(std::size_t n) {
    wait(n);
    return static_cast<std::byte*>(memory_[n % pieces]);
  }
  void wait(std::size_t n) {
    if (auto& used = used_[n % pieces]; used) {
      check(api()->event_wait(events_[n % pieces]), "waiting for a copy");
      used = false;
    }
  }
  void copy_piece(std::size_t n, void* to, void const* from, std::size_t bytes, void* stream) {
    check(api()->copy(to, from, bytes, stream), "a copy");
    check(api()->event_record(events_[n % pieces], stream), "recording an event");
    used_[n % pieces] = true;
  }

 private:
  void make() {
    made_ = true;
    OnDevice const here;
    for (std::size_t i = 0; i < pieces; ++i)
      if (api()->pin(&memory_[i], piece) || api()->event_new(&events_[i])) return;
    there_ = true;
  }
  std::mutex mutex_;
  void* memory_[pieces] = {};
  Api::Event events_[pieces] = {};
  bool used_[pieces] = {}, made_ = false, there_ = false;
};

void copy_by_threads(void* to, void const* from, std::size_t bytes) {
  constexpr std::size_t share = std::size_t(64) << 10;
  Executor executor;
  parallel_ranges(
      executor, std::int64_t((bytes + share - 1) / share),
      [=](std::int64_t begin, std::int64_t end) {
        auto const first = std::size_t(begin) * share, last = std::min(std::size_t(end) * share, bytes);
        std::memcpy(static_cast<std::byte*>(to) + first, static_cast<std::byte const*>(from) + first, last - first);
      },
      4);
}

}  // namespace

void copy_in(void* to, void const* from, std::size_t bytes, void* stream) {
  auto& stages = Stages::all();
  auto const lock = stages.taken(bytes);
  if (!lock) return copy(to, from, bytes, stream);
  for (std::size_t at = 0, n = 0; at < bytes; at += piece, ++n) {
    auto const length = std::min(piece, bytes - at);
    auto* const room = stages.room(n);
    copy_by_threads(room, static_cast<std::byte const*>(from) + at, length);
    stages.copy_piece(n, static_cast<std::byte*>(to) + at, room, length, stream);
  }
}

void copy_out(void* to, void const* from, std::size_t bytes, void* stream) {
  auto& stages = Stages::all();
  auto const lock = stages.taken(bytes);
  if (!lock) {
    copy(to, from, bytes, stream);
    return wait(stream);
  }
  auto const count = (bytes + piece - 1) / piece;
  auto const length = [bytes](std::size_t n) { return std::min(piece, bytes - n * piece); };
  auto const begin = [&](std::size_t n) {
    auto* const room = stages.room(n);
    stages.copy_piece(n, room, static_cast<std::byte const*>(from) + n * piece, length(n), stream);
  };
  for (std::size_t n = 0; n < std::min(pieces, count); ++n) begin(n);
  for (std::size_t n = 0; n < count; ++n) {
    copy_by_threads(static_cast<std::byte*>(to) + n * piece, stages.room(n), length(n));
    if (n + pieces < count) begin(n + pieces);
  }
}

}  // namespace asterism::device::gpu
