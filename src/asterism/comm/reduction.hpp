// Sums over all ranks, split in two phases, several in one message, the same bits on every rank.
#pragma once
#include <cstdint>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/device/scalar.hpp"

namespace asterism::comm {

class GpuMessenger;

/// Usage: make one for n values, submit kernels that write the local sums into partial(),
/// begin(), other work, end(), then result(offset, k).
class Reduction {
 public:
  Reduction(Communicator const& comm, device::Queue const& queue, std::int64_t n);
  /// n complex numbers (std::complex<double>), one per local sum.
  device::Array const& partial() const { return partial_; }
  void begin();
  void end();
  device::Scalar result(std::int64_t offset, std::int64_t k) const;

 private:
  friend class ReproducibleReduction;
  struct Flight;
  Communicator comm_;
  device::Queue queue_;
  std::int64_t n_;
  device::Array partial_, gathered_, total_;
  std::shared_ptr<Flight> flight_;
  std::shared_ptr<GpuMessenger const> messenger_;
};

/// The same for sums that do not depend on ranks, threads or any order (base/reproducible_sum.hpp).
class ReproducibleReduction {
 public:
  ReproducibleReduction(Communicator const& comm, device::Queue const& queue, std::int64_t n);
  /// For each of n sums the words of its real and its imaginary part, 2 ReproducibleSum::words int64; zeros at first.
  device::Array const& partial() const { return partial_; }
  void begin();
  void end();
  device::Scalar result(std::int64_t offset, std::int64_t k) const;

 private:
  Communicator comm_;
  device::Queue queue_;
  std::int64_t n_;
  device::Array partial_, sum_, total_;
  std::shared_ptr<Reduction::Flight> flight_;
};

}  // namespace asterism::comm
