#include "asterism/direct/triangular/message_driven_sweep.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/direct/panel.kernels.hpp"
#include "asterism/direct/triangular/sweep.kernels.hpp"

namespace asterism::direct {
namespace {

std::string name_of(Envelope const& e) {
  return format("{} of supernode {} from rank {}", e.kind == MessageKind::broadcast ? "x" : "the sum", e.node, e.rank);
}

}  // namespace

class MessageDrivenSweep::Impl {
 public:
  Impl(std::shared_ptr<LocalTriangle const> triangle, std::shared_ptr<SweepPlan const> plan, bool deterministic, Send send)
      : triangle_(std::move(triangle)),
        plan_(std::move(plan)),
        deterministic_(deterministic),
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
        sums_ += node.width * (deterministic_ ? 1 + node.reduction.child_count() : 1);
      }
    }
  }

  std::int64_t owned() const { return owned_; }

  void begin(std::int64_t columns, std::span<std::byte> x, std::span<std::byte const> beside) {
    if (std::int64_t(x.size()) != owned_ * columns * size_)
      fail(ErrorKind::internal, "a sweep's right-hand side has {} bytes, not {}.", x.size(), owned_ * columns * size_);
    columns_ = columns;
    own_x_ = x.data();
    other_x_.resize(std::size_t(others_ * columns * size_));
    sum_.assign(std::size_t(sums_ * columns * size_), std::byte(0));
    to_come_ = plan_->arriving;
    to_solve_ = plan_->diagonals;
    to_multiply_ = 0;
    solvable_.clear();
    multipliable_.clear();
    if (!beside.empty()) {
      auto const* from = beside.data();
      for (std::size_t p = 0; p < states_.size(); ++p)
        if (auto const& node = plan_->nodes[p]; node.outside) {
          auto const bytes = node.width * columns_ * size_;
          std::memcpy(sum_of(p), from, std::size_t(bytes));
          from += bytes;
        }
    }
    for (std::size_t p = 0; p < states_.size(); ++p) {
      auto const& node = plan_->nodes[p];
      auto& s = states_[p];
      s.x_came = false;
      s.came[0] = s.came[1] = false;
      s.left = node.blocks + node.reduction.child_count();
      s.next = node.first_adding;
      if (node.source && node.first_using < node.last_using) ++to_multiply_;
      if (node.target && s.left == 0) complete(p);
    }
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
    --to_come_;
    if (from.kind == MessageKind::broadcast) {
      std::memcpy(x_of(p), data.data(), data.size());
      have_x(p);
      return;
    }
    auto const child = child_of(p, from);
    s.came[child] = true;
    if (deterministic_) std::memcpy(sum_of(p) + std::int64_t(1 + child) * bytes, data.data(), data.size());
    else add(data.data(), sum_of(p), node.width);
    if (--s.left == 0) complete(p);
  }

  bool work() {
    if (!solvable_.empty()) {  // others may wait for it
      auto const p = solvable_.back();
      solvable_.pop_back();
      solve(p);
      return true;
    }
    if (multipliable_.empty()) return false;
    // one block: what that completes comes before the others
    auto& m = multipliable_.front();
    auto const block = plan_->using_x[std::size_t(m.next)];
    bool const last = ++m.next == plan_->nodes[m.source].last_using;
    if (last) {
      multipliable_.pop_front();
      --to_multiply_;
    }
    if (deterministic_) {
      add_in_order(target_of(block));
    } else {
      multiply_block(block);
      contributed(block);
    }
    return true;
  }

  bool done() const { return to_come_ == 0 && to_solve_ == 0 && to_multiply_ == 0; }

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
    std::int32_t next = 0;        // in `adding`, where the order is fixed
    bool x_came = false;
    bool came[2] = {false, false};
  };

  bool backward() const { return plan_->sweep == Sweep::backward; }
  std::byte* x_of(std::size_t p) { return (plan_->nodes[p].diagonal ? own_x_ : other_x_.data()) + states_[p].x * columns_ * size_; }
  std::byte* sum_of(std::size_t p) { return sum_.data() + states_[p].sum * columns_ * size_; }

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

  void add(void const* from, std::byte* to, std::int64_t width) {
    with_dtype(triangle_->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernel::add(width * columns_, static_cast<T const*>(from), reinterpret_cast<T*>(to));
    });
  }

  /// x of a source is there: others get it before it is used here.
  void have_x(std::size_t p) {
    auto const& node = plan_->nodes[p];
    states_[p].x_came = true;
    auto const bytes = std::size_t(node.width * columns_ * size_);
    for (int const child : node.broadcast.children)
      if (child >= 0) send_({MessageKind::broadcast, node.id, child}, {x_of(p), bytes});
    if (node.first_using < node.last_using) multipliable_.push_back({p, node.first_using});
  }

  std::size_t target_of(std::int32_t block) const {
    auto const& b = triangle_->pattern().block(block);
    return std::size_t(plan_->place[std::size_t(backward() ? b.column : b.row)]);
  }
  std::size_t source_of(std::int32_t block) const {
    auto const& b = triangle_->pattern().block(block);
    return std::size_t(plan_->place[std::size_t(backward() ? b.row : b.column)]);
  }
  void contributed(std::int32_t block) {
    auto const t = target_of(block);
    if (--states_[t].left == 0) complete(t);
  }

  void multiply_block(std::int32_t index) {
    auto const& b = triangle_->pattern().block(index);
    auto const rows = triangle_->rows(index);
    auto const w = triangle_->pattern().nodes().width(b.column);
    auto const leading = triangle_->panel_rows(b.column);
    auto *x = x_of(source_of(index)), *y = sum_of(target_of(index));
    with_dtype(triangle_->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const* values = reinterpret_cast<T const*>(triangle_->block(index));
      if (backward())
        kernel::multiply_transposed(b.count, w, columns_, values, leading, rows.data(), reinterpret_cast<T const*>(x),
                                    reinterpret_cast<T*>(y));
      else kernel::multiply(b.count, w, columns_, values, leading, rows.data(), reinterpret_cast<T const*>(x), reinterpret_cast<T*>(y));
    });
  }

  /// Blocks of a sum whose x is there, as far as none is missing before them.
  void add_in_order(std::size_t t) {
    auto& s = states_[t];
    auto const last = plan_->nodes[t].last_adding;
    while (s.next < last) {
      auto const block = plan_->adding[std::size_t(s.next)];
      if (!states_[source_of(block)].x_came) return;
      multiply_block(block);
      ++s.next;
      contributed(block);
    }
  }

  /// All contributions to a sum are there.
  void complete(std::size_t p) {
    auto const& node = plan_->nodes[p];
    auto const bytes = node.width * columns_ * size_;
    if (deterministic_) {
      for (int c = 0; c < node.reduction.child_count(); ++c) add(sum_of(p) + (1 + c) * bytes, sum_of(p), node.width);
    }
    if (node.reduction.parent >= 0) send_({MessageKind::reduction, node.id, node.reduction.parent}, {sum_of(p), std::size_t(bytes)});
    else solvable_.push_back(p);
  }

  void solve(std::size_t p) {
    auto const& node = plan_->nodes[p];
    with_dtype(triangle_->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernel::solve_diagonal(node.width, std::int32_t(columns_), reinterpret_cast<T const*>(triangle_->diagonal(node.id)),
                             triangle_->order(node.id), reinterpret_cast<T const*>(sum_of(p)), reinterpret_cast<T*>(x_of(p)), backward());
    });
    --to_solve_;
    have_x(p);
  }

  std::shared_ptr<LocalTriangle const> triangle_;
  std::shared_ptr<SweepPlan const> plan_;
  bool deterministic_;
  Send send_;
  std::int64_t size_, columns_ = 1;
  std::int64_t owned_ = 0, others_ = 0, sums_ = 0;
  std::vector<State> states_;
  std::byte* own_x_ = nullptr;
  std::vector<std::byte> other_x_, sum_;
  std::int64_t to_come_ = 0, to_solve_ = 0, to_multiply_ = 0;
  struct Multiplication {
    std::size_t source;
    std::int32_t next;  // in `using_x`
  };
  std::vector<std::size_t> solvable_;
  std::deque<Multiplication> multipliable_;
};

MessageDrivenSweep::MessageDrivenSweep(std::shared_ptr<LocalTriangle const> triangle, std::shared_ptr<SweepPlan const> plan,
                                       bool deterministic, Send send)
    : impl_(std::make_unique<Impl>(std::move(triangle), std::move(plan), deterministic, std::move(send))) {}
MessageDrivenSweep::~MessageDrivenSweep() = default;
MessageDrivenSweep::MessageDrivenSweep(MessageDrivenSweep&&) noexcept = default;
std::int64_t MessageDrivenSweep::owned() const { return impl_->owned(); }
void MessageDrivenSweep::begin(std::int64_t columns, std::span<std::byte> x, std::span<std::byte const> beside) {
  impl_->begin(columns, x, beside);
}
void MessageDrivenSweep::end(std::span<std::byte> beside) { impl_->end(beside); }
void MessageDrivenSweep::receive(Envelope const& from, std::span<std::byte const> data) { impl_->receive(from, data); }
bool MessageDrivenSweep::awaits(Envelope const& from) const { return impl_->awaits(from); }
bool MessageDrivenSweep::work() { return impl_->work(); }
bool MessageDrivenSweep::done() const { return impl_->done(); }
std::string MessageDrivenSweep::awaited() const { return impl_->awaited(); }

}  // namespace asterism::direct
