#include "asterism/direct/triangular/message_driven_sweep.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/device/host/patience.hpp"
#include "asterism/device/host/signal.hpp"
#include "asterism/direct/multifrontal/panel.kernels.hpp"
#include "asterism/direct/triangular/sweep.kernels.hpp"

namespace asterism::direct {
namespace {

std::string name_of(Envelope const& e) {
  return format("{} of supernode {} from rank {}", e.kind == MessageKind::broadcast ? "x" : "the sum", e.node, e.rank);
}

/// A thread takes so much at a time, if there is: about a microsecond of work, so that it visits seldom what threads share.
constexpr int most_parts = 8;
constexpr std::int64_t enough_entries = 4096;
/// A leader asleep while others work looks for messages that often.
constexpr std::int64_t most_asleep = 50'000;  // ns

/// Sums that are complete, or runs of blocks.
struct Task {
  int nodes = 0, runs = 0;
  std::array<std::int32_t, most_parts> parts;
  std::vector<std::byte> scratch;
};

}  // namespace

class MessageDrivenSweep::Impl {
 public:
  Impl(std::shared_ptr<LocalTriangle const> triangle, std::shared_ptr<SweepPlan const> plan, Send send)
      : triangle_(std::move(triangle)),
        plan_(std::move(plan)),
        send_(std::move(send)),
        size_(std::int64_t(size_of(triangle_->dtype()))),
        states_(plan_->nodes.size()) {
    for (std::size_t p = 0; p < states_.size(); ++p) {
      auto const& node = plan_->nodes[p];
      auto& s = states_[p];
      if (node.diagonal) {
        s.x = owned_;
        owned_ += node.width;
      } else if (node.source) {
        s.x = others_;
        others_ += node.width;
      }
      if (node.target) {
        s.sum = sums_;
        sums_ += node.width * (1 + node.reduction.child_count());
      }
    }
    for (auto const b : plan_->by_column()) across_.push_back(plan_->place[std::size_t(triangle_->pattern().block(b).row)]);
    if (!backward()) {
      parts_ = triangle_->all_rows();
      return;
    }
    std::vector<std::int32_t> run_of(std::size_t(triangle_->pattern().blocks()));
    for (std::size_t r = 0; r < plan_->runs.size(); ++r) {
      auto const& run = plan_->runs[r];
      for (auto i = run.first; i < run.last; ++i) run_of[std::size_t(plan_->adding[std::size_t(i)])] = std::int32_t(r);
      part_of_run_.push_back(parts_);
      parts_ += plan_->nodes[std::size_t(run.column)].width;
    }
    for (auto const b : plan_->using_x) run_using_.push_back(run_of[std::size_t(b)]);
    missing_.resize(plan_->runs.size());
  }

  std::int64_t owned() const { return owned_; }

  void begin(std::int64_t columns, std::span<std::byte> x, std::span<std::byte const> beside, bool assisted) {
    if (std::int64_t(x.size()) != owned_ * columns * size_)
      fail(ErrorKind::internal, "a sweep's right-hand side has {} bytes, not {}.", x.size(), owned_ * columns * size_);
    columns_ = columns;
    own_x_ = x.data();
    other_x_.resize(std::size_t(others_ * columns * size_));
    sum_.resize(std::size_t(sums_ * columns * size_));
    part_.resize(std::size_t(parts_ * columns * size_));
    to_come_ = plan_->arriving;
    to_solve_ = plan_->diagonals;
    to_multiply_ = std::int64_t(plan_->runs.size());
    running_ = idle_ = 0;
    over_ = leader_waits_ = false;
    shared_ = assisted;
    failure_ = nullptr;
    patience_ = device::host::Patience();
    complete_.clear();
    ready_.clear();
    first_.clear();
    outbox_.clear();
    beside_ = !beside.empty();
    auto const* from = beside.data();
    for (std::size_t r = 0; r < missing_.size(); ++r) missing_[r] = plan_->runs[r].last - plan_->runs[r].first;
    for (std::size_t p = 0; p < states_.size(); ++p) {
      auto const& node = plan_->nodes[p];
      auto& s = states_[p];
      if (node.outside && beside_) {
        auto const bytes = node.width * columns_ * size_;
        std::memcpy(sum_of(p), from, std::size_t(bytes));
        from += bytes;
      }
      s.x_came = false;
      s.came[0] = s.came[1] = false;
      s.left = (backward() ? node.last_run - node.first_run : node.blocks) + node.reduction.child_count();
      if (node.target && s.left == 0) first_.push_back(std::int32_t(p));
    }
    if (!backward()) std::reverse(first_.begin(), first_.end());
  }

  void end(std::span<std::byte> beside) {
    auto* to = beside.data();
    for (std::size_t p = 0; p < states_.size(); ++p)
      if (auto const& node = plan_->nodes[p]; node.outside) {
        auto const bytes = node.width * columns_ * size_;
        std::memcpy(to, x_of(p), std::size_t(bytes));
        to += bytes;
      }
  }

  bool awaits(Envelope const& from) const {
    auto const p = place_of(from);
    return !(from.kind == MessageKind::broadcast ? states_[p].x_came : states_[p].came[child_of(p, from)]);
  }

  void receive(Envelope const& from, std::span<std::byte const> data) {
    auto const p = place_of(from);
    auto const& node = plan_->nodes[p];
    auto& s = states_[p];
    auto const bytes = node.width * columns_ * size_;
    if (!awaits(from)) fail(ErrorKind::comm, "{} came twice in one triangular solve.", name_of(from));
    if (std::int64_t(data.size()) != bytes) fail(ErrorKind::comm, "{} has {} bytes, not {}.", name_of(from), data.size(), bytes);
    if (from.kind == MessageKind::broadcast) std::memcpy(x_of(p), data.data(), data.size());
    else std::memcpy(sum_of(p) + std::int64_t(1 + child_of(p, from)) * bytes, data.data(), data.size());
    change([&] {
      --to_come_;
      if (from.kind == MessageKind::broadcast) return have_x(p);
      s.came[child_of(p, from)] = true;
      contribute(p);
    });
    send_what_is_ready();
  }

  bool work() {
    bool got = false;
    change([&] {
      if (failure_) std::rethrow_exception(failure_);
      got = take(task_);
    });
    send_what_is_ready();  // x goes on to others before it is used here
    if (!got) return false;
    patience_ = device::host::Patience();
    run(task_);
    change([&] { finish(task_); });
    send_what_is_ready();
    return true;
  }

  bool done() {
    Locked const lock(*this);
    return is_idle() && !is_missing();
  }

  bool needs_message() {
    Locked const lock(*this);
    return !failure_ && is_idle() && is_missing();  // work() tells of a failure
  }

  void wait_for_others() {
    std::uint32_t seen = 0;
    {
      Locked const lock(*this);
      if (running_ == 0 || !outbox_.empty() || is_ready()) return;
      leader_waits_ = true;
      seen = changed_.value();
    }
    if (patience_.over()) changed_.wait_shortly(seen, most_asleep);
    Locked const lock(*this);
    leader_waits_ = false;
  }

  void assist() {
    for (Task task;;) {
      std::uint32_t seen = 0;
      enum { leave, rest, go } next = go;
      change([&] {
        if (over_ || failure_) next = leave;
        else if (!take(task)) next = rest, seen = changed_.value(), ++idle_;
      });
      if (next == leave) return;
      if (next == rest) {
        changed_.wait([seen](std::uint32_t now) { return now != seen; });
        Locked const lock(*this);
        --idle_;
        continue;
      }
      try {
        run(task);
        change([&] { finish(task); });
      } catch (...) {
        change([&] {
          failure_ = std::current_exception();
          --running_;
        });
      }
    }
  }

  void stop() {
    {
      Locked const lock(*this);
      over_ = true;
    }
    if (shared_) changed_.add(1);
  }

  std::string awaited() const {
    std::string out = format("{} message(s)", to_come_);
    int named = 0;
    auto const name = [&](Envelope const& e) {
      if (named++ < 3) out += (named == 1 ? ": " : ", ") + name_of(e);
    };
    for (std::size_t p = 0; p < states_.size(); ++p) {
      auto const& node = plan_->nodes[p];
      if (node.source && node.broadcast.parent >= 0 && !states_[p].x_came) name({MessageKind::broadcast, node.id, node.broadcast.parent});
      if (node.target)
        for (std::size_t c = 0; c < 2; ++c)
          if (node.reduction.children[c] >= 0 && !states_[p].came[c]) name({MessageKind::reduction, node.id, node.reduction.children[c]});
    }
    return out;
  }

 private:
  struct State {
    std::int64_t x = 0, sum = 0;  // where, in numbers of one column
    std::int32_t left = 0;        // contributions to the sum
    bool x_came = false;
    bool came[2] = {false, false};
  };

  /// Where threads assist, what they share is one thread's at a time: for less than a microsecond, so who waits looks before it sleeps.
  class Locked {
   public:
    explicit Locked(Impl& sweep) : mutex_(sweep.shared_ ? &sweep.mutex_ : nullptr) {
      if (!mutex_) return;
      for (int looks = 0; looks < 64; ++looks)
        if (mutex_->try_lock()) return;
      mutex_->lock();
    }
    ~Locked() {
      if (mutex_) mutex_->unlock();
    }
    Locked(Locked const&) = delete;
    Locked& operator=(Locked const&) = delete;

   private:
    std::mutex* mutex_;
  };
  /// f() on what threads share, and a sign to those that wait for what it made ready; one task is left to the caller.
  template <class F>
  void change(F const& f) {
    bool sign = false;
    {
      Locked const lock(*this);
      f();
      auto const ready = complete_.size() + ready_.size() + first_.size();
      sign = (idle_ > 0 && ready > 1) || (leader_waits_ && (ready > 1 || !outbox_.empty() || running_ == 0 || failure_));
    }
    if (sign) changed_.add(1);
  }
  bool is_ready() const { return !complete_.empty() || !ready_.empty() || !first_.empty(); }

  bool is_missing() const { return to_come_ > 0 || to_solve_ > 0 || to_multiply_ > 0; }
  /// Nothing goes on by itself.
  bool is_idle() const { return running_ == 0 && outbox_.empty() && !is_ready(); }

  /// The leader's alone.
  void send_what_is_ready() {
    {
      Locked const lock(*this);
      if (outbox_.empty()) return;
      std::swap(outbox_, sending_);
    }
    for (auto const& m : sending_) send_(m.to, m.data);
    sending_.clear();
  }

  /// What others may wait for comes first, then what uses the newest x, so that numbers are used while they are in caches.
  bool take(Task& task) {
    task.nodes = task.runs = 0;
    auto const fill = [&](std::vector<std::int32_t>& from, int& count, auto const& entries_of) {
      for (std::int64_t entries = 0; !from.empty() && count < most_parts && entries < enough_entries; from.pop_back()) {
        entries += entries_of(from.back());
        task.parts[std::size_t(count++)] = from.back();
      }
    };
    auto const of_node = [&](std::int32_t p) {
      return std::int64_t(plan_->nodes[std::size_t(p)].width) * plan_->nodes[std::size_t(p)].width;
    };
    auto const of_run = [&](std::int32_t r) { return rows_of(plan_->runs[std::size_t(r)]).second * width_of(plan_->runs[std::size_t(r)]); };
    if (!complete_.empty()) fill(complete_, task.nodes, of_node);
    else if (!ready_.empty()) fill(ready_, task.runs, of_run);
    else fill(first_, task.nodes, of_node);
    if (task.nodes + task.runs == 0) return false;
    ++running_;
    return true;
  }

  void run(Task& task) {
    with_dtype(triangle_->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int i = 0; i < task.nodes; ++i) finish_sum<T>(std::size_t(task.parts[std::size_t(i)]));
      for (int i = 0; i < task.runs; ++i) multiply<T>(std::size_t(task.parts[std::size_t(i)]), task.scratch);
    });
  }

  void finish(Task const& task) {
    --running_;
    for (int i = 0; i < task.nodes; ++i) {
      auto const p = std::size_t(task.parts[std::size_t(i)]);
      auto const& node = plan_->nodes[p];
      if (node.reduction.parent >= 0) {
        outbox_.push_back({{MessageKind::reduction, node.id, node.reduction.parent}, {sum_of(p), bytes_of(p)}});
      } else {
        --to_solve_;
        have_x(p);
      }
    }
    for (int i = 0; i < task.runs; ++i) {
      --to_multiply_;
      auto const& run = plan_->runs[std::size_t(task.parts[std::size_t(i)])];
      if (backward()) contribute(std::size_t(run.column));
      else
        for (auto b = run.first; b < run.last; ++b) contribute(std::size_t(across_[std::size_t(b)]));
    }
  }

  /// x of a source is there.
  void have_x(std::size_t p) {
    auto const& node = plan_->nodes[p];
    states_[p].x_came = true;
    for (int const child : node.broadcast.children)
      if (child >= 0) outbox_.push_back({{MessageKind::broadcast, node.id, child}, {x_of(p), bytes_of(p)}});
    if (backward()) {
      for (auto i = node.last_using; i-- > node.first_using;)
        if (auto const r = run_using_[std::size_t(i)]; --missing_[std::size_t(r)] == 0) ready_.push_back(r);
    } else {
      for (auto r = node.last_run; r-- > node.first_run;) ready_.push_back(r);
    }
  }

  void contribute(std::size_t p) {
    if (--states_[p].left == 0) complete_.push_back(std::int32_t(p));
  }

  bool backward() const { return plan_->sweep == Sweep::backward; }
  std::byte* x_of(std::size_t p) { return (plan_->nodes[p].diagonal ? own_x_ : other_x_.data()) + states_[p].x * columns_ * size_; }
  std::byte* sum_of(std::size_t p) { return sum_.data() + states_[p].sum * columns_ * size_; }
  std::size_t bytes_of(std::size_t p) const { return std::size_t(plan_->nodes[p].width * columns_ * size_); }
  std::int32_t width_of(PlannedRun const& run) const { return plan_->nodes[std::size_t(run.column)].width; }
  /// Its upper block, and how many rows it has.
  std::pair<std::int32_t, std::int64_t> rows_of(PlannedRun const& run) const {
    auto const& list = plan_->by_column();
    auto const upper = list[std::size_t(backward() ? run.last - 1 : run.first)],
               lower = list[std::size_t(backward() ? run.first : run.last - 1)];
    return {upper, triangle_->first_row(lower) + triangle_->pattern().block(lower).count - triangle_->first_row(upper)};
  }

  std::size_t place_of(Envelope const& from) const {
    auto const p = from.node >= 0 && std::size_t(from.node) < plan_->place.size() ? plan_->place[std::size_t(from.node)] : -1;
    if (p >= 0) {
      auto const& node = plan_->nodes[std::size_t(p)];
      if (from.kind == MessageKind::broadcast ? node.source && node.broadcast.parent == from.rank
                                              : node.target && node.reduction.child(from.rank) >= 0)
        return std::size_t(p);
    }
    fail(ErrorKind::comm, "{} came, which this rank does not await.", name_of(from));
  }
  std::size_t child_of(std::size_t p, Envelope const& from) const { return std::size_t(plan_->nodes[p].reduction.child(from.rank)); }

  template <class T>
  static T* numbers(std::byte* at) {
    return reinterpret_cast<T*>(at);
  }
  /// What a run, or forward a block, adds to sums. Each has its own place: so threads need not wait for each other, and sums are made in
  /// one order.
  std::byte* part_at(std::int64_t number) { return part_.data() + number * columns_ * size_; }

  template <class T>
  void multiply(std::size_t r, std::vector<std::byte>& scratch) {
    auto const& run = plan_->runs[r];
    auto const id = plan_->nodes[std::size_t(run.column)].id;
    auto const w = width_of(run);
    auto const [upper, rows] = rows_of(run);
    auto const* const values = reinterpret_cast<T const*>(triangle_->block(upper));
    auto const leading = triangle_->panel_rows(id);
    if (!backward())
      return kernel::multiply(std::int32_t(rows), w, columns_, values, leading, numbers<T>(x_of(std::size_t(run.column))),
                              numbers<T>(part_at(triangle_->first_row(upper))));
    scratch.resize(std::max(scratch.size(), std::size_t(rows * columns_ * size_)));
    auto* to = numbers<T>(scratch.data());
    for (auto i = run.last; i-- > run.first;) {  // rows ascending
      auto const of_block = triangle_->rows(plan_->adding[std::size_t(i)]);
      auto const count = std::int32_t(of_block.size());
      kernel::gather_rows(count, of_block.data(), columns_, numbers<T>(x_of(std::size_t(across_[std::size_t(i)]))), to);
      to += count * columns_;
    }
    kernel::multiply_transposed(std::int32_t(rows), w, columns_, values, leading, numbers<T>(scratch.data()),
                                numbers<T>(part_at(part_of_run_[r])));
  }

  /// All contributions are there: they are added, in one order. Of the owner of the diagonal block it becomes x.
  template <class T>
  void finish_sum(std::size_t p) {
    auto const& node = plan_->nodes[p];
    auto* const sum = numbers<T>(sum_of(p));
    auto const all = node.width * columns_;
    if (!(node.outside && beside_)) std::fill_n(sum, all, T(0));
    if (backward())
      for (auto r = node.first_run; r < node.last_run; ++r) kernel::add(all, numbers<T>(part_at(part_of_run_[std::size_t(r)])), sum);
    else
      for (auto i = node.first_adding; i < node.last_adding; ++i) {
        auto const b = plan_->adding[std::size_t(i)];
        auto const rows = triangle_->rows(b);
        kernel::add_rows(std::int32_t(rows.size()), rows.data(), columns_, numbers<T>(part_at(triangle_->first_row(b))), sum);
      }
    for (int c = 0; c < node.reduction.child_count(); ++c) kernel::add(all, sum + (1 + c) * all, sum);
    if (node.reduction.parent >= 0) return;
    kernel::solve_diagonal(node.width, std::int32_t(columns_), reinterpret_cast<T const*>(triangle_->diagonal(node.id)),
                           triangle_->order(node.id), sum, numbers<T>(x_of(p)), backward());
  }

  std::shared_ptr<LocalTriangle const> triangle_;
  std::shared_ptr<SweepPlan const> plan_;
  Send send_;
  std::int64_t size_, columns_ = 1;
  std::int64_t owned_ = 0, others_ = 0, sums_ = 0, parts_ = 0;  // numbers of one column
  std::vector<State> states_;
  std::byte* own_x_ = nullptr;
  std::vector<std::byte> other_x_, sum_, part_;
  bool beside_ = false;
  std::int64_t to_come_ = 0, to_solve_ = 0, to_multiply_ = 0;  // messages, supernodes, runs of blocks
  struct Parcel {
    Envelope to;
    std::span<std::byte const> data;
  };
  std::vector<std::int32_t> across_;               // of by_column(): the block's row in `nodes`
  std::vector<std::int32_t> run_using_, missing_;  // backward, of using_x and of runs: x that did not come
  std::vector<std::int64_t> part_of_run_;          // backward
  std::vector<std::int32_t> complete_, ready_;     // sums and runs for a thread
  std::vector<std::int32_t> first_;                // sums without contributions
  Task task_;                                      // the leader's
  std::vector<Parcel> outbox_, sending_;
  std::int64_t running_ = 0, idle_ = 0;  // tasks under way, threads without one
  bool shared_ = false, over_ = false, leader_waits_ = false;
  std::exception_ptr failure_;  // of a thread that assists
  std::mutex mutex_;
  device::host::Signal changed_;
  device::host::Patience patience_;
};

MessageDrivenSweep::MessageDrivenSweep(std::shared_ptr<LocalTriangle const> triangle, std::shared_ptr<SweepPlan const> plan, Send send)
    : impl_(std::make_unique<Impl>(std::move(triangle), std::move(plan), std::move(send))) {}
MessageDrivenSweep::~MessageDrivenSweep() = default;
MessageDrivenSweep::MessageDrivenSweep(MessageDrivenSweep&&) noexcept = default;
std::int64_t MessageDrivenSweep::owned() const { return impl_->owned(); }
void MessageDrivenSweep::begin(std::int64_t columns, std::span<std::byte> x, std::span<std::byte const> beside, bool assisted) {
  impl_->begin(columns, x, beside, assisted);
}
void MessageDrivenSweep::end(std::span<std::byte> beside) { impl_->end(beside); }
void MessageDrivenSweep::receive(Envelope const& from, std::span<std::byte const> data) { impl_->receive(from, data); }
bool MessageDrivenSweep::awaits(Envelope const& from) const { return impl_->awaits(from); }
bool MessageDrivenSweep::work() { return impl_->work(); }
bool MessageDrivenSweep::done() const { return impl_->done(); }
bool MessageDrivenSweep::needs_message() const { return impl_->needs_message(); }
void MessageDrivenSweep::wait_for_others() { impl_->wait_for_others(); }
void MessageDrivenSweep::assist() { impl_->assist(); }
void MessageDrivenSweep::stop() { impl_->stop(); }
std::string MessageDrivenSweep::awaited() const { return impl_->awaited(); }

}  // namespace asterism::direct
