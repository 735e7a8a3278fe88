// How far long work has come, and Ctrl-C in it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace asterism {

struct ProgressReport {
  std::string const& what;
  double fraction;  ///< of the work; negative where it is not known
  double seconds;   ///< since it began
  bool ended;
};

/// Work that may take long, by the thread that was asked for it: a line for people, who may stop it.
class Progress {
 public:
  /// `what`: what is done, and what memory it takes where that is known. `total`: of what at() counts; 0: not known.
  Progress(std::string what, double total);
  ~Progress();
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  /// So much is done. Throws an error once the user has asked to stop, or a time limit is over (interrupt.hpp). Looks at the clock now and
  /// then only, so it may stand in a loop over rows.
  void at(double done) {
    if (--calls_left_ <= 0) look(done);
  }
  /// As at(), but looks at the clock each time: for calls between which very different times may pass.
  void at_any_pace(double done) { look(done); }
  /// The next of these asks whether to stop, however short ago that was asked.
  void ask_next() { asked_ = 0; }

 private:
  void look(double done);
  void report(double done, bool ended) const;
  std::string what_;
  double total_;
  std::int64_t start_, looked_, asked_, told_ = 0;
  int stride_ = 1, calls_left_ = 1;
};

/// Who shows it: called every 0.2 s or so for work that takes longer than a second, and once at its end.
void set_progress_sink(std::function<void(ProgressReport const&)> sink);

/// "512 MB", for what_.
std::string megabytes(double bytes);

}  // namespace asterism
