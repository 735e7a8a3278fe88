#include "asterism/device/gpu/launch_batch.hpp"

#include <atomic>
#include <cstring>

#include "asterism/base/log.hpp"
#include "asterism/device/gpu/api.hpp"
#include "asterism/device/gpu/gpu.hpp"

namespace asterism::device::gpu {
namespace {

struct Counters {
  std::atomic<std::int64_t> made{0}, replayed{0}, kernels{0}, changed{0}, alone{0};
};
Counters counters;

constexpr std::size_t alignment = alignof(std::max_align_t);

}  // namespace

GraphCounts graph_counts() { return {counters.made, counters.replayed, counters.kernels, counters.changed, counters.alone}; }

void LaunchBatch::Kernels::clear() {
  all.clear();
  sizes.clear();
  places.clear();
  bytes.clear();
}

Launch LaunchBatch::Kernels::launch(std::size_t i, std::vector<void*>& arguments) const {
  auto const& k = all[i];
  arguments.clear();
  for (std::size_t a = k.first; a < k.first + std::size_t(k.count); ++a)
    arguments.push_back(const_cast<std::byte*>(bytes.data()) + places[a]);  // the runtime's interface; it copies them
  return {k.function, k.blocks, k.threads, k.shared, arguments.data(), sizes.data() + k.first, k.count};
}

bool LaunchBatch::Kernels::same_functions(Kernels const& other) const {
  if (all.size() != other.all.size() || sizes != other.sizes) return false;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].function != other.all[i].function) return false;
  return true;
}

/// Of pieces with the same functions.
bool LaunchBatch::Kernels::same_arguments(Kernels const& other, std::size_t i) const {
  auto const& k = all[i];
  if (k != other.all[i]) return false;
  if (k.count == 0) return true;
  auto const last = k.first + std::size_t(k.count) - 1, begin = places[k.first], end = places[last] + sizes[last];
  return std::memcmp(bytes.data() + begin, other.bytes.data() + begin, end - begin) == 0;
}

LaunchBatch::LaunchBatch()
    : Collector{[](Collector& self, Launch const& l) { static_cast<LaunchBatch&>(self).collect(l); },
                [](Collector& self) { static_cast<LaunchBatch&>(self).launch(); }} {}

LaunchBatch::~LaunchBatch() { close(); }

void LaunchBatch::collect(Launch const& l) {
  std::lock_guard const lock(mutex_);
  auto& c = collected_;
  c.all.push_back({l.kernel, l.blocks, l.threads, l.shared, c.sizes.size(), l.count});
  for (int a = 0; a < l.count; ++a) {
    auto const place = (c.bytes.size() + alignment - 1) / alignment * alignment;
    c.bytes.resize(place + l.sizes[a]);  // what lies between is zero
    std::memcpy(c.bytes.data() + place, l.arguments[a], l.sizes[a]);
    c.places.push_back(place);
    c.sizes.push_back(l.sizes[a]);
  }
  hash_ = (hash_ ^ reinterpret_cast<std::uintptr_t>(l.kernel)) * 0x9e3779b97f4a7c15u;
  hash_ ^= hash_ >> 29;
  if (c.all.size() == most) launch_locked();
}

void LaunchBatch::launch() {
  std::lock_guard const lock(mutex_);
  launch_locked();
}

void LaunchBatch::launch_locked() {
  if (collected_.all.empty()) return;
  OnDevice const here;
  struct Cleared {  // also after an error
    LaunchBatch& b;
    ~Cleared() {
      b.collected_.clear();
      b.hash_ = 0;
    }
  } const cleared{*this};
  auto const n = collected_.all.size();
  if (n >= least && graphs_work_) {
    auto const at = pieces_.find(hash_);
    if (at != pieces_.end() && at->second.kernels.same_functions(collected_)) {
      if (replay(at->second)) return;
    } else {
      if (at != pieces_.end() || pieces_.size() >= most_pieces) forget_pieces();  // two with one hash, or too many
      pieces_.try_emplace(hash_, Piece{collected_, nullptr});
    }
  }
  counters.alone += std::int64_t(n);
  for (std::size_t i = 0; i < n; ++i) check(api()->launch(collected_.launch(i, arguments_), stream_), "launching a kernel");
}

bool LaunchBatch::replay(Piece& piece) {
  auto const n = collected_.all.size();
  if (!piece.graph) {
    std::vector<std::vector<void*>> arguments(n);
    std::vector<Launch> launches;
    for (std::size_t i = 0; i < n; ++i) launches.push_back(collected_.launch(i, arguments[i]));
    if (int const code = api()->graph_new(&piece.graph, launches.data(), int(n))) return without_graphs(code);
    ++counters.made;
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      if (collected_.same_arguments(piece.kernels, i)) continue;
      if (int const code = api()->graph_change(piece.graph, int(i), collected_.launch(i, arguments_))) return without_graphs(code);
      ++counters.changed;
    }
  }
  std::swap(piece.kernels, collected_);
  check(api()->graph_launch(piece.graph, stream_), "launching a graph");
  ++counters.replayed;
  counters.kernels += std::int64_t(n);
  return true;
}

bool LaunchBatch::without_graphs(int code) {
  log::warning("the GPU makes no graph of {} kernels ({}): they are launched one by one", collected_.all.size(), api()->error_text(code));
  (void)api()->launch_error();
  return graphs_work_ = false;
}

void LaunchBatch::forget_pieces() noexcept {
  if (pieces_.empty()) return;
  api()->stream_wait(stream_);  // none of them runs
  for (auto& [hash, piece] : pieces_)
    if (piece.graph) api()->graph_free(piece.graph);
  pieces_.clear();
}

void LaunchBatch::close() noexcept {
  std::lock_guard const lock(mutex_);
  try {
    launch_locked();
  } catch (...) {  // it shows in the next call of the runtime
  }
  forget_pieces();
}

}  // namespace asterism::device::gpu
