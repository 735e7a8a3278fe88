// Solves with a distributed triangle, by messages between ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "asterism/comm/channels/channels.hpp"
#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/direct/triangular/local_triangle.hpp"
#include "asterism/direct/triangular/sweep_plan.hpp"

namespace asterism::direct {

struct TriangularOptions {
  bool checksums = false;  ///< a lost or corrupted message is an error that names it; costs 16 bytes a message
  comm::TransportChoice transport = comm::default_transport();
};

/// Triangles of one pattern, such as L and U^T, with the trees and channels of both sweeps, made once. A solve is collective and begins
/// without a barrier: a rank may be in the next one while another is in this one. The bits of the solution are the same every time,
/// however late messages are. Threads of the team take part where the triangle is large. Cost of a solve: each number of the triangle is
/// read once for up to 8 columns; messages as predicted_messages() lists them.
class TriangularSolver {
 public:
  /// Collective. The triangles have the rank and as many ranks as comm.
  TriangularSolver(comm::Communicator const& comm, std::vector<std::shared_ptr<LocalTriangle const>> triangles,
                   TriangularOptions const& options = {}, Outside outside = {});
  ~TriangularSolver();
  TriangularSolver(TriangularSolver&&) noexcept;

  /// Rows of x on this rank: its diagonal supernodes one after the other.
  std::int64_t owned() const;
  std::vector<std::int32_t> const& owned_rows() const;
  /// x becomes T^-1 x, or T^-T x (backward), for triangle t; rows of `columns` numbers. Collective.
  void solve(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x);
  /// The same for at most 8 columns, where ranks have work outside the blocks. beside: of the supernodes with such work here, one after the
  /// other, what it adds to the sums forward; backward x comes there.
  void solve(std::size_t t, Sweep sweep, std::int64_t columns, std::span<std::byte> x, std::span<std::byte> beside);

  SweepPlan const& plan(Sweep sweep) const;
  /// Messages that this rank has sent, if a log was asked for.
  void log_messages(bool on);
  std::vector<Message> const& log() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace asterism::direct
