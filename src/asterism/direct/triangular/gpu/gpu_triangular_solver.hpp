// Triangular solves on GPUs whose kernels send the messages themselves.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/array.hpp"
#include "asterism/device/queue.hpp"
#include "asterism/direct/triangular/local_triangle.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"

namespace asterism::direct {

/// As TriangularSolver, with the triangles in the memory of each rank's GPU. On one rank a solve is one kernel; on several ranks each GPU
/// runs two, SOLVE and WAIT (Ding et al. 2021, Algorithm 1), which write into mapped memory of the other GPUs: those are of one machine.
/// Sums have one order, so the bits are the same every time.
class GpuTriangularSolver {
 public:
  /// Collective, with a GPU open on each rank. The triangles have one pattern, the rank and as many ranks as comm. outside: as of
  /// plan_sweep(). An error of kind unsupported on all ranks where a rank cannot write into the memory of another one's GPU. Cost: a copy
  /// of the triangles, and tables of the order of their blocks and rows; a slot in a window for each message of a solve.
  GpuTriangularSolver(comm::Communicator const& comm, std::vector<std::shared_ptr<LocalTriangle const>> triangles,
                      Outside const& outside = {});
  ~GpuTriangularSolver();
  GpuTriangularSolver(GpuTriangularSolver const&) = delete;
  GpuTriangularSolver& operator=(GpuTriangularSolver const&) = delete;

  /// Rows of x on this rank: its diagonal supernodes one after the other.
  std::int64_t owned() const;
  std::vector<std::int32_t> const& owned_rows() const;
  /// x becomes T^-1 x, or T^-T x (backward), for triangle t; rows of `columns` numbers, eight at a time. Collective: on several ranks it
  /// waits for the end, on one it is queued. After an error the solver is of no use.
  void solve(std::size_t t, Sweep sweep, std::int64_t columns, device::Array const& x);
  /// The same as work of a queue on the GPU, whose worker waits on several ranks. Collective, in the order of the program.
  void submit(device::Queue const& queue, std::size_t t, Sweep sweep, std::int64_t columns, device::Array const& x) const;
  /// Until all solves so far have ended.
  void wait() const;
  /// Of the device.
  std::size_t memory_bytes() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;          // work of queues has a share, and may be the last: it waits for no queue
  std::optional<device::Queue> queue_;  // of solve()
};

}  // namespace asterism::direct
