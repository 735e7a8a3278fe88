// A group of processes. Shared handle; destroying it is never collective.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "asterism/base/error.hpp"
#include "asterism/comm/mpi/loaded_mpi.hpp"
#include "asterism/device/array.hpp"

namespace asterism::comm {

namespace node {
class Node;
}
struct Failures;

/// Opens the plug-in at path, as open_mpi_plugin() does; from then on the library knows when MPI frees communicators and ends.
void load_mpi_plugin(std::string const& path);

class Communicator {
 public:
  /// This process alone; needs no MPI.
  Communicator();
  /// From a native MPI_Comm handle (see mpi_api.hpp). Collective on first use of a handle.
  static Communicator from_handle(std::uint64_t mpi_comm);

  int rank() const { return impl_->rank; }
  int size() const { return impl_->size; }
  std::uint64_t handle() const { return impl_->handle; }

  void barrier() const;
  std::int64_t sum(std::int64_t v) const;
  std::int64_t max(std::int64_t v) const;
  std::int64_t min(std::int64_t v) const;
  double max(double v) const;
  void sum(std::span<std::int64_t> values) const;
  void sum(std::span<double> values) const;
  void max(std::span<double> values) const;
  /// Sum over lower ranks.
  std::int64_t exclusive_sum(std::int64_t v) const;
  std::vector<std::int64_t> all_gather(std::int64_t v) const;
  void bcast(void* data, std::int64_t bytes, int root) const;
  std::string bcast(std::string text, int root) const;
  /// The bytes of all ranks, in rank order; every rank's count is found first.
  std::vector<std::byte> all_gather_bytes(std::span<std::byte const> mine, std::vector<std::int64_t>* counts = nullptr) const;
  bool same_on_all_ranks(std::int64_t v) const;

  /// Of its calls and errors; see failures.hpp.
  Failures& failures() const { return *impl_->failures; }
  /// Waits until all ranks are here and goes on with a new duplicate, without what was under way; from then on epoch() is another. Where
  /// this call failed on ranks that are already in the next one, that is thrown, and the next call recovers. `call_has_failed`: the call
  /// under way has ended here with the earlier error, which this rank saw late; it then fails on all ranks. Collective.
  void recover(bool call_has_failed = false) const;
  std::uint64_t epoch() const { return impl_->epoch; }
  /// Keeps what MPI may still use, and nobody else: of calls that were given up.
  void give_up(std::shared_ptr<void const> of_a_call) const;

  /// A message tag for one use, the same on all ranks when drawn in the same order (collective calls).
  int new_tag() const {
    impl_->next_tag = (impl_->next_tag + 1) % failure_tag;
    return impl_->next_tag;
  }
  /// The first of `tags_together` tags that nobody else gets until all ranks have dropped what is returned. Collective.
  static constexpr int tags_together = 3;
  /// Of news of failures: above those for one use, below those that are held.
  static constexpr int failure_tag = 20000;
  std::shared_ptr<int const> hold_tags() const;
  /// The ranks on this machine; nullptr for a process alone.
  node::Node* node() const { return impl_->node; }
  /// For what MPI frees collectively (windows, communicators): `free` is called in a later keep(), when all ranks have dropped
  /// what is returned, or when the user frees the communicator. Collective.
  std::shared_ptr<void> keep(std::function<int()> free) const;
  /// What other parts found out about this group, by their names; lives with it. For the thread that makes collective calls.
  std::shared_ptr<void>& memo(std::string const& name) const;
  /// Queued communication names this as an update, so that its order is the program's.
  device::Array const& order_token() const;
  /// Waits for that, if no task asks: before communication at once, which takes its turn too. That of the members above does.
  void end_queued() const {
    if (impl_->freed || impl_->order_token.involved() || made_by_fork.load(std::memory_order_relaxed)) wait_for_queued();
  }

  friend bool operator==(Communicator const& a, Communicator const& b) { return a.impl_ == b.impl_; }

 private:
  friend void load_mpi_plugin(std::string const& path);
  void require_living() const;
  void wait_for_queued() const;
  /// MPI frees what is kept under that handle. Collective, unless MPI ends.
  static void forget(std::uint64_t duplicate, bool ends);
  /// MPI is about to be finalised: other ranks get to know, in case that they still wait for this one.
  static void program_ends();
  static inline std::atomic<bool> made_by_fork = false;  ///< this process, after MPI was loaded
  /// What every call looks at.
  struct Core {
    int rank = 0, size = 1, next_tag = 0;
    bool freed = false;
    std::uint64_t handle = 0, epoch = 0;  // our duplicate, and how often it was made anew
    node::Node* node = nullptr;
    Failures* failures = nullptr;
    device::Array order_token{1};
  };
  struct Impl;
  Impl& impl() const;
  std::shared_ptr<Core> impl_;
};

/// Collective: runs f on every rank; if any rank throws an Error, the lowest failing rank's error is
/// thrown on all (with "rank r: " before it where there are several); Ctrl-C comes first. f must not communicate.
void agree(Communicator const& comm, std::function<void()> const& f);

/// What agree() does, for an error caught before: throws everywhere if any rank has one.
void agree_on(Communicator const& comm, std::optional<Error> const& mine);
/// Whether all ranks have caught this error, so that they may go on together: one rank alone cannot.
inline bool is_of_all(Communicator const& comm, Error const& e) { return e.shared() || comm.size() == 1; }

}  // namespace asterism::comm
