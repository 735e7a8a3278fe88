// Errors of one rank that end the waits of the others.
//
// A rank on which a collective call fails alone (a wrong shape, a function of the user's that raises) reports it: in shared memory for
// the ranks of its machine, by messages for the others. Every wait looks there (wait.hpp). A rank that finds a report of the call
// that it is in leaves it with the same error. What is under way on the communicator is given up then; in their next collective call all
// ranks go on from a new duplicate (Communicator::recover).
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "asterism/comm/communicator/communicator.hpp"
#include "asterism/comm/communicator/roll_call.hpp"
#include "asterism/device/host/task_queue.hpp"
#include "asterism/device/host/this_thread.hpp"

namespace asterism::comm {

/// What one process knows of a communicator's calls and errors.
struct Failures {
  struct Report {
    std::uint64_t serial = 0;  ///< of the call
    int rank = 0;
    ErrorKind kind = ErrorKind::internal;
    std::string text;
    bool ended = false;        ///< the rank has ended its program, so that it will not come to this call
    std::int64_t seen = 0;     ///< when, of device::host::now()
    std::string said() const;  ///< by whom, and what
  };
  std::uint64_t communicator = 0;         ///< the same number on all ranks, and no other's
  std::atomic<std::uint64_t> serial{0};   ///< of the collective call that is under way, or was the last; odd: of the ends behind it
  std::atomic<std::uint64_t> handled{0};  ///< errors of calls up to this one are no news
  std::atomic<std::uintptr_t> thread{0};  ///< that is in a call
  std::atomic<bool> news{false};          ///< one of those below says something
  std::atomic<bool> broken{false};        ///< all ranks have to recover before the next call
  std::atomic<bool> late{false};          ///< this rank has noticed an error only in a later call: the others recover at its beginning
  std::atomic<std::uint32_t> alarms_seen{0};
  std::mutex mutex;
  std::optional<Report> known;
  std::optional<Report> ended;                         ///< as `known`, but for good
  std::string last;                                    ///< text of the error that was recovered from last; empty if this rank's own
  std::atomic<std::uint32_t> const* alarms = nullptr;  ///< of this process, where it has memory that others reach
  bool far = false;                                    ///< some ranks report by messages
  std::uint64_t begun = 0;                             ///< calls of this process, given up ones too; for the thread that is in one

  /// From now on it is those ranks who report.
  void watch(int ranks, node::Node const& here);
  /// Tells the other ranks that the call under way has failed here. Never throws.
  static void report(Communicator const& comm, ErrorKind kind, std::string const& text) noexcept;
  /// Tells the other ranks of this machine that this one ends its program: calls after its last one fail there.
  static void report_end(Communicator const& comm) noexcept;
  /// Whether there may be news: one load.
  bool alarmed() const { return alarms && alarms->load(std::memory_order_relaxed) != alarms_seen.load(std::memory_order_relaxed); }
  /// Whether a rank has ended its program.
  static bool has_ended(Failures& f) {
    std::lock_guard const lock(f.mutex);
    return f.ended.has_value();
  }
  void break_off() { broken = news = true; }
  /// Looks for reports; `far`: those by messages too.
  static void look(Communicator const& comm, bool far);
  /// The same where there may be some: one load between ranks of one machine.
  static void look_for_news(Communicator const& comm) {
    if (auto const& f = comm.failures(); f.far || f.alarmed()) look(comm, true);
  }
  /// Whether an error is known of the `serial`-th call or a later one up to the last of this rank, from which the ranks have not recovered.
  static bool known_since(Communicator const& comm, std::uint64_t serial);
  /// Throws what another rank has reported of the call under way, or of an earlier one in which this rank did not notice.
  static void require_none(Communicator const& comm);
};

/// One call that all ranks of a communicator make together. Those within another, and those of queued tasks, are part of it. The
/// communicator must live as long.
class CollectiveCall {
 public:
  /// Recovers first where the last call failed on a rank. Throws where another thread is in a call on the same communicator.
  /// `look`: for errors that are not known yet too. What a call has begun is not counted again. `rest`: has its number, since other ranks
  /// may end theirs in a task, which is no call. `end`: ranks make these in an order of their own, or not at all after an error; all
  /// between two calls have one number, which is that of no call.
  enum class Part { whole, rest, end };
  CollectiveCall(Communicator const& comm, char const* name, bool look = true, Part part = Part::whole) {
    if (is_part_of_another(comm)) return;
    auto& f = comm.failures();
    std::uintptr_t nobody = 0;
    if (!f.thread.compare_exchange_strong(nobody, device::host::this_thread(), std::memory_order_acquire)) throw_second_thread(name);
    auto const last = f.serial.load(std::memory_order_relaxed);
    auto const serial = part == Part::whole ? next_after(last) : part == Part::end ? last | 1 : last;  // calls have an order
    f.serial.store(serial, std::memory_order_relaxed);
    last_begun.store(f.communicator ^ ++f.begun, std::memory_order_relaxed);
    if ((look && (f.far || f.alarmed())) || f.news.load(std::memory_order_relaxed)) attend_to_news(comm, look);
    comm_ = &comm;
    if (roll_call::hang_timeout() > 0) roll_call::enter(name, serial / 2);
  }
  ~CollectiveCall() {
    if (!comm_) return;
    auto& f = comm_->failures();
    if (roll_call::hang_timeout() > 0) roll_call::leave();
    if (f.late.load(std::memory_order_relaxed)) recover_late();
    f.thread.store(0, std::memory_order_release);
  }
  /// Of the next call, after a call or the ends behind it.
  static std::uint64_t next_after(std::uint64_t serial) { return (serial | 1) + 1; }
  /// Another number after each that begins in this process, on any communicator.
  static std::uint64_t begun() { return last_begun.load(std::memory_order_relaxed); }
  /// Whether one that begins here and now is no call of its own.
  static bool is_part_of_another(Communicator const& comm) {
    return comm.size() == 1 || comm.failures().thread.load(std::memory_order_relaxed) == device::host::this_thread() ||
           device::host::in_task();
  }
  CollectiveCall(CollectiveCall const&) = delete;
  CollectiveCall& operator=(CollectiveCall const&) = delete;
  /// It ends with an error; one that not all ranks throw anyway is reported.
  void failed(std::exception_ptr const& error) const noexcept;
  void failed(ErrorKind kind, std::string const& text) const noexcept;

 private:
  static std::atomic<std::uint64_t> last_begun;
  [[noreturn]] static void throw_second_thread(char const* name);
  static void attend_to_news(Communicator const& comm, bool look);
  void recover_late() const;
  Communicator const* comm_ = nullptr;  // of the caller's; nothing: part of another
};

/// f() as a collective call, or the rest of one.
template <class F>
auto collective(Communicator const& comm, char const* name, F const& f, bool look = true,
                CollectiveCall::Part part = CollectiveCall::Part::whole) {
  CollectiveCall const call(comm, name, look, part);
  try {
    return f();
  } catch (...) {
    call.failed(std::current_exception());
    throw;
  }
}

}  // namespace asterism::comm
