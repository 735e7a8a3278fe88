// Factors in the memory of each rank's GPU, and solves with them there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/array.hpp"
#include "asterism/device/queue.hpp"
#include "asterism/direct/multifrontal/factors.hpp"
#include "asterism/direct/multifrontal/multifrontal.kernels.hpp"
#include "asterism/direct/triangular/gpu/gpu_triangular_solver.hpp"
#include "asterism/direct/triangular/local_triangle.hpp"

namespace asterism::direct {

/// Factors that message-driven solves take: a rank's own fronts, and its blocks of a top that ranks share. Nothing is kept of it.
struct GpuFactorsSource {
  NumericFactors const& fronts;
  PivotPlaces places;
  // of the top; none on one rank
  std::shared_ptr<BlockPattern const> top;
  LocalTriangle const *lower = nullptr, *upper = nullptr;
  device::Array pivots;                     ///< of L D L^H: D's diagonal and what is below it, by diagonal blocks of this rank
  Outside outside;                          ///< for each supernode of the top, whose fronts have entries there
  std::vector<std::int32_t> place_of_rows;  ///< of the numbers beyond the fronts' pivots: the top's, which begin after those
};

/// Copies of L and of U (or of L alone) on the GPUs, with the plans of their solves. An answer differs from that of the factors on the host
/// by rounding, and has the same bits every time.
class GpuFactors {
 public:
  /// Collective. Errors on all ranks: unsupported, as of GpuTriangularSolver; memory. Cost: on the host, while it runs, the memory of the
  /// factors once more.
  GpuFactors(comm::Communicator const& comm, Dtype dtype, GpuFactorsSource const& source);

  /// y = A^-1 x, A^-T x ('T') or A^-H x ('C') as work of a queue on the GPU: rows of k numbers, at PivotPlaces. y may be x. Collective, in
  /// the order of the program.
  void submit(device::Queue const& queue, char trans, std::int64_t k, device::Array const& x, device::Array const& y) const;
  /// Pivots of this rank.
  std::int64_t owned() const { return owned_; }
  /// Of the device.
  std::size_t memory_bytes() const;

 private:
  Dtype dtype_;
  FactorKind kind_;
  std::int64_t owned_ = 0;
  std::unique_ptr<GpuTriangularSolver> lower_, upper_;       // upper: of LU
  device::Array rows_, columns_, row_scale_, column_scale_;  // as PivotPlaces
  device::Array diagonal_, below_;                           // of D
};

}  // namespace asterism::direct
