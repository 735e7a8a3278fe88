// From the intents of a task: what it must come after, and which copies it needs.
#pragma once
#include <string>
#include <vector>

#include "asterism/device/buffer.hpp"

namespace asterism::device {

/// Copies between memories since the start or the last reset, by the profiling event (or the task's name) that needed them. `apart`: to
/// a GPU as well.
struct CopyCount {
  std::string event;
  std::int64_t to_apart = 0, to_host = 0;
  std::int64_t to_apart_bytes = 0, to_host_bytes = 0;
};
std::vector<CopyCount> copy_counts();
void reset_copy_counts();
/// From now on work that needs a copy is an error that names it; results may still be read back by the host.
void set_forbid_copies(bool on);

class Ledger {
 public:
  /// Guards all ledgers: taken for a submission.
  static std::mutex& mutex();

  /// What comes before a task's kernel in its own turn.
  struct Preparation {
    struct Copy {
      Buffer* buffer;
      Memory from, to;
    };
    std::vector<Copy> copies;
    std::vector<Buffer*> provided;                   ///< divided buffers that got their memory of the GPU here
    std::vector<std::pair<Buffer*, Memory>> spoils;  ///< filled with NaN: what must not be read any more
    /// What goes to the host is there when this returns.
    void run(void* stream) const;
  };

  /// With the mutex held. `conditional`: the task may turn out to do nothing. `stream`: where it will be launched, on a GPU.
  static Preparation prepare(std::vector<Intent> const& intents, Memory memory, bool conditional, int event, void* stream,
                             std::vector<host::Ticket>& after);
  /// With the mutex held, after the task got its ticket.
  static void record(std::vector<Intent> const& intents, Memory memory, Preparation const& prepared, host::Ticket const& ticket);

  static void discard(Buffer& buffer);

  /// For work at once on the host's memory: waits for the tasks in its way (counted under `reason`) and brings the newest
  /// values back.
  static void settle(Buffer& buffer, Access access, char const* reason);
};

/// The only place where the host waits for queued work. Counted; an error of that queue's work is thrown here, once.
void wait_for(host::Ticket const& ticket, char const* reason);

}  // namespace asterism::device
