// Timing of triangular solves driven by messages, and of what their model stands on, for `asterism bench`.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/direct/triangular/gpu/gpu_triangular_solver.hpp"
#include "asterism/direct/triangular/triangular_solver.hpp"

namespace asterism::apps {

/// A unit triangle in the pattern of a factor, with numbers by formula: row and column sums are known, so b for x = 1 is too.
class TimedTriangle {
 public:
  /// Collective. `gpu`: cuda, hip, or empty for the host.
  TimedTriangle(comm::Communicator const& comm, std::shared_ptr<direct::BlockPattern const> pattern, direct::ProcessGrid const& grid,
                Dtype dtype, std::string const& gpu = {}, direct::TriangularOptions const& options = {});

  struct Times {
    std::vector<double> seconds;  ///< of the slowest rank, of each solve
    double error = 0;             ///< the largest |x - 1| of the last one
    std::int64_t sent = 0;        ///< messages of all ranks in one solve; 0 on GPUs, which do not count them
  };
  /// Solves with `columns` right-hand sides, each after a barrier; one more comes first and does not count. Collective.
  Times time(direct::Sweep sweep, std::int64_t columns, int repeats);
  /// The same triangle by cuSPARSE's SpSV, one right-hand side, on one rank with a GPU. An error that says why where that is not there.
  Times time_cusparse(direct::Sweep sweep, int repeats) const;

 private:
  std::vector<std::int32_t> const& owned_rows() const { return on_gpu_ ? on_gpu_->owned_rows() : solver_->owned_rows(); }
  template <class T>
  void fill(T* own, direct::Sweep sweep, std::int64_t columns) const;

  comm::Communicator comm_;
  std::shared_ptr<direct::BlockPattern const> pattern_;
  Dtype dtype_;
  std::vector<double> sums_[2];  // of the rows and columns below the diagonal
  double scale_ = 1;
  std::unique_ptr<direct::TriangularSolver> solver_;
  std::unique_ptr<direct::GpuTriangularSolver> on_gpu_;
};

/// What a rank does alone, all ranks at once: seconds of a block without numbers, and bytes per second of large ones, from memory.
/// Collective; the slowest rank counts. Takes half a second or so.
struct SweepRates {
  double task_seconds = 0, bandwidth = 0;
};
SweepRates sweep_rates(comm::Communicator const& comm);

/// Seconds of messages from rank 0 to rank 1 by channels, as they go in a triangular solve: one way of a ping-pong, and each of many
/// that are sent one after the other and answered once. Collective.
struct ChannelTimes {
  double one_way = 0, each = 0;
};
ChannelTimes channel_times(comm::Communicator const& comm, std::int64_t bytes, int repeats, comm::TransportChoice transport);

}  // namespace asterism::apps
