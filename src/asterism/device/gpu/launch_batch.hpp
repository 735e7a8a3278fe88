// Launches given to a GPU together: a piece of work that comes again and again as a graph.
//
// Where kernels are short their launches take longer than they; a graph of many is launched as one (NVIDIA, CUDA Programming Guide, graphs;
// not measured here yet). A piece is known by its kernels. When it comes for the second time a graph is made of it, one kernel after the
// other; from then on only the kernels whose arguments differ from the last time are told so.
#pragma once
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "asterism/device/gpu/launch.hpp"

namespace asterism::device::gpu {

/// Since the process began.
struct GraphCounts {
  std::int64_t made = 0, replayed = 0;
  std::int64_t kernels = 0;  ///< in those replayed
  std::int64_t changed = 0;  ///< of these, with other arguments than the last time
  std::int64_t alone = 0;    ///< kernels that were collected, but launched one by one
};
GraphCounts graph_counts();

class LaunchBatch final : public Collector {
 public:
  LaunchBatch();
  ~LaunchBatch();
  LaunchBatch(LaunchBatch const&) = delete;
  LaunchBatch& operator=(LaunchBatch const&) = delete;
  void open(void* stream) { stream_ = stream; }
  /// Everything to the stream. Any thread may ask for it.
  void launch();
  /// Without the graphs; what was collected is launched.
  void close() noexcept;

 private:
  static constexpr std::size_t least = 3, most = 4096;  // kernels of a graph
  static constexpr std::size_t most_pieces = 64;
  struct Kernel {
    void const* function;
    unsigned blocks, threads;
    std::size_t shared;
    std::size_t first;  // of its arguments
    int count;
    friend bool operator==(Kernel const&, Kernel const&) = default;
  };
  struct Kernels {
    std::vector<Kernel> all;
    std::vector<std::size_t> sizes, places;  // of all arguments, in bytes
    std::vector<std::byte> bytes;
    void clear();
    Launch launch(std::size_t i, std::vector<void*>& arguments) const;
    bool same_arguments(Kernels const& other, std::size_t i) const;
    bool same_functions(Kernels const& other) const;
  };
  struct Piece {
    Kernels kernels;  // as they are in the graph
    void* graph = nullptr;
  };

  void collect(Launch const& launch);
  void launch_locked();
  bool replay(Piece& piece);  // false: it cannot
  bool without_graphs(int code);
  void forget_pieces() noexcept;

  std::mutex mutex_;
  void* stream_ = nullptr;
  Kernels collected_;
  std::uint64_t hash_ = 0;  // of its functions
  std::unordered_map<std::uint64_t, Piece> pieces_;
  bool graphs_work_ = true;
  std::vector<void*> arguments_;
};

}  // namespace asterism::device::gpu
