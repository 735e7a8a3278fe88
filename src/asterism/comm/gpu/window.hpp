// Messages between the GPUs of ranks by windows of memory that the others write into.
#pragma once
#include <cstdint>
#include <vector>

#include "asterism/comm/gpu/messenger.hpp"

namespace asterism::comm {

/// Each rank has a window with a slot and two flags for each other one. A message goes in pieces of a slot's length: the sender's stream
/// waits until the receiver has emptied the slot, copies into it and sets the flag that says so; the receiver's waits for that, copies out,
/// and sets the other flag, in the sender's window. Of all messages of a call first all first pieces are sent, then received, then the
/// second ones, so that nobody waits for somebody who waits. Zhang et al. (2022), figures 6 to 8.
class GpuWindows : public GpuMessenger {
 public:
  void all_gather(device::Array const& in, device::Array const& out) const override;
  void exchange(Parts sends, Parts receives, device::Array const& in, device::Array const& out) const override;

 protected:
  GpuWindows(Communicator const& comm, device::Queue queue, std::size_t slot_bytes);

  static constexpr std::size_t most_slot_bytes = std::size_t(256) << 10;  // no GPU was asked yet what is best
  static constexpr std::size_t line = 128;                                // each flag in one of its own
  /// What a window has for each rank: the number of the last piece in the slot; of what is sent there, the number of the last piece that
  /// was taken out; and the slot for what comes from there.
  static constexpr std::size_t emptied_at = line, slot_at = 2 * line;
  static std::uint64_t* filled(std::byte* in_window) { return reinterpret_cast<std::uint64_t*>(in_window); }
  static std::uint64_t* emptied(std::byte* in_window) { return reinterpret_cast<std::uint64_t*>(in_window + emptied_at); }
  std::size_t slot_bytes() const { return slot_bytes_; }

  struct Counts {
    std::uint64_t sent = 0, received = 0;  // pieces
  };
  /// With each rank: the tasks', which are in order.
  std::vector<Counts>& counts() const { return counts_; }

 private:
  // in the queue's stream, with another rank
  /// What that rank has for me is in my slot there, then its flag there is `piece`.
  virtual void put(device::Executor& executor, int rank, std::byte const* from, std::size_t bytes, std::uint64_t piece) const = 0;
  virtual void await_filled(device::Executor& executor, int rank, std::uint64_t piece) const = 0;
  virtual void await_emptied(device::Executor& executor, int rank, std::uint64_t piece) const = 0;
  virtual std::byte const* slot_from(int rank) const = 0;
  virtual void tell_emptied(device::Executor& executor, int rank, std::uint64_t piece) const = 0;

  void transfer(device::Executor& executor, Parts const& sends, Parts const& receives, std::byte const* in, std::byte* out) const;
  std::size_t slot_bytes_;
  mutable std::vector<Counts> counts_;
};

}  // namespace asterism::comm
