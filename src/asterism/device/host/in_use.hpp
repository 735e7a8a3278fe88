// Objects of which one thread at a time makes use.
#pragma once
#include <atomic>
#include <mutex>
#include <thread>

namespace asterism::device::host {

class InUse {
 public:
  /// While it lives this thread has the object. Another thread waits for its turn, or gets an error at once if it `may_wait` not. A thread
  /// that has it already gets an error, and so does a process made by fork while another thread had it. `what`: for these, what is done.
  class Turn {
   public:
    Turn(InUse& of, bool may_wait, char const* what);
    ~Turn();
    Turn(Turn const&) = delete;
    Turn& operator=(Turn const&) = delete;

   private:
    InUse& of_;
  };

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  std::atomic<int> forks_ = -1;  // before the turn under way; -1: none
};

}  // namespace asterism::device::host
