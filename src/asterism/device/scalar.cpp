#include "asterism/device/scalar.hpp"

#include <algorithm>

#include "asterism/base/error.hpp"
#include "asterism/device/scalar.kernels.hpp"

namespace asterism::device {
namespace {
using Value = Scalar::Value;
Number number(Value v) { return {v.real(), v.imag()}; }
Value compute(Op op, Value a, Value b, Value c) { return to_complex(compute(op, number(a), number(b), number(c))); }
constexpr Op no_op = Op::load;
}  // namespace

struct Scalar::Node {
  std::vector<Value> values;  // known values (width > 1)
  Array results;              // of a pending result
  std::int64_t offset = 0;
  Op op = no_op;  // of an expression
  Scalar a, b, c;
  int size = 1;  // nodes of the expression, those met twice counted twice
};

namespace {
constexpr int largest = 1000;  // of an expression, which is walked through at every use
}

Scalar::Scalar(std::vector<Value> values) : width_(std::int64_t(values.size())) {
  ASTERISM_REQUIRE(width_ >= 1, shape, "a scalar of no columns; at least 1.");
  if (width_ == 1) {
    first_ = values[0];
    return;
  }
  auto n = std::make_shared<Node>();
  n->values = std::move(values);
  node_ = std::move(n);
}

void detail::width_error(std::int64_t width, std::int64_t k) {
  fail(ErrorKind::shape, "a scalar of {} columns for vectors of {}; one, or as many as they have.", width, k);
}

Scalar Scalar::pending(Queue const& queue, Array results, std::int64_t offset, std::int64_t k) {
  if (queue.runs_inline()) {
    auto const* p = results.as<Value>() + offset;
    return k == 1 ? Scalar(p[0]) : Scalar(std::vector<Value>(p, p + k));
  }
  auto n = std::make_shared<Node>();
  n->results = std::move(results);
  n->offset = offset;
  Scalar s;
  s.width_ = k;
  s.node_ = std::move(n);
  return s;
}

bool Scalar::known() const {
  if (!node_ || !node_->values.empty()) return true;
  return node_->op != no_op && node_->a.known() && node_->b.known() && node_->c.known();
}

Scalar::Value Scalar::evaluate(std::int64_t j, Memory m) const {
  if (!node_) return first_;
  if (!node_->values.empty()) return node_->values[std::size_t(j)];
  if (node_->op == no_op) return node_->results.as<Value>(m)[node_->offset + j];
  auto const at = [&](Scalar const& s) { return s.evaluate(s.width_ == 1 ? 0 : j, m); };
  if (node_->op == Op::any_column) {
    for (std::int64_t i = 0; i < node_->a.width_; ++i)
      if (node_->a.evaluate(i, m) != Value(0)) return 1.0;
    return 0.0;
  }
  return compute(node_->op, at(node_->a), at(node_->b), at(node_->c));
}

struct Scalar::Size {
  int steps = 0, places = 0, constants = 0, depth = 0;
  bool fits = true;
};

void Scalar::measure(Size& size, int depth) const {
  ++size.steps;
  size.depth = std::max(size.depth, depth + 1);
  if (!node_) ++size.constants;
  else if (!node_->values.empty()) size.fits = false;
  else if (node_->op == no_op) ++size.places;
  else if (node_->op == Op::any_column) {
    ++size.places;
    size.fits = size.fits && node_->a.node_ && node_->a.node_->op == no_op && node_->a.node_->values.empty();
  } else {
    Scalar const* const of[] = {&node_->a, &node_->b, &node_->c};
    for (int i = 0; i < operands(node_->op); ++i) of[i]->measure(size, depth + i);
  }
  size.fits = size.fits && size.steps <= Tape::most_steps && size.places <= Tape::most_places && size.constants <= Tape::most_constants &&
              size.depth <= Tape::most_depth;
}

Scalar Scalar::for_tape(Queue const& queue) const {
  Size size;
  measure(size, 0);
  if (size.fits) return *this;
  if (!node_->values.empty()) {
    std::vector<Number> values;
    for (auto const v : node_->values) values.push_back(number(v));
    return pending(queue, Array::of(std::span<Number const>(values)), 0, width_);
  }
  auto n = std::make_shared<Node>(*node_);
  for (auto* const s : {&n->a, &n->b, &n->c})
    if (s->node_) *s = s->for_tape(queue).stored(queue);
  Scalar out = *this;
  out.node_ = std::move(n);
  return out;
}

void Scalar::write_to(Tape& tape, Memory m) const {
  auto const step = [&](Op op, int at = 0) { tape.steps[tape.count++] = {op, std::uint8_t(at)}; };
  auto const place = [&](Node const& n, std::int64_t width) {
    auto const* const at = n.results.as<Number>(m) + n.offset;
    int i = 0;
    while (i < tape.places && (tape.place[i] != at || tape.columns[i] != width)) ++i;
    if (i == tape.places) ++tape.places;
    tape.place[i] = at;
    tape.columns[i] = width;
    tape.wide[i] = width > 1;
    return i;
  };
  if (!node_) {
    tape.constant[tape.constants] = number(first_);
    return step(Op::constant, tape.constants++);
  }
  if (node_->op == no_op) return step(Op::load, place(*node_, width_));
  if (node_->op == Op::any_column) return step(Op::any_column, place(*node_->a.node_, node_->a.width_));
  Scalar const* const of[] = {&node_->a, &node_->b, &node_->c};
  for (int i = 0; i < operands(node_->op); ++i) of[i]->write_to(tape, m);
  step(node_->op);
}

void Scalar::collect(std::vector<Intent>& intents) const {
  if (!node_ || !node_->values.empty()) return;
  if (node_->op == no_op) {
    intents.push_back({node_->results.buffer().get(), Access::read});
    return;
  }
  node_->a.collect(intents);
  node_->b.collect(intents);
  node_->c.collect(intents);
}

Scalar::Value Scalar::value(std::int64_t j) const {
  ASTERISM_ASSERT(j >= 0 && j < width_);
  if (!known()) settle();
  return evaluate(j);
}

void Scalar::settle() const {
  if (!node_ || !node_->values.empty()) return;
  if (node_->op == no_op) return node_->results.settle(Access::read, "scalar");
  node_->a.settle();
  node_->b.settle();
  node_->c.settle();
}

Scalar Scalar::stored(Queue const& queue) const {
  if (known() || (node_->op == no_op && node_->offset == 0)) return *this;
  auto const place = Array::fresh(queue, std::size_t(width_) * sizeof(Value));
  submit(queue, kernel::store, width_, device::value<Number>(*this, width_), write<Number>(place));
  return pending(queue, place, 0, width_);
}

Array Scalar::results() const {
  ASTERISM_ASSERT(node_ && node_->values.empty() && node_->op == no_op);
  return node_->results;
}

std::vector<Scalar::Value> Scalar::values() const {
  std::vector<Value> v(static_cast<std::size_t>(width_));
  for (std::int64_t j = 0; j < width_; ++j) v[std::size_t(j)] = value(j);
  return v;
}

Scalar Scalar::combine(Op op, Scalar const& a, Scalar const& b, Scalar const& c) {
  if (!a.node_ && !b.node_ && !c.node_) return Scalar(compute(op, a.first_, b.first_, c.first_));
  auto const k = std::max({a.width_, b.width_, c.width_});
  for (auto const* s : {&a, &b, &c})
    ASTERISM_REQUIRE(s->width_ == 1 || s->width_ == k, shape, "scalars of widths {}, {} and {} do not combine.", a.width_, b.width_,
                     c.width_);
  int size = 1;
  for (auto const* s : {&a, &b, &c}) size += s->node_ ? s->node_->size : 0;
  if (size > largest)  // waiting now and then is cheaper
    for (auto const* s : {&a, &b, &c}) s->settle();
  if (size > largest || (a.known() && b.known() && c.known())) {
    if (k == 1) {  // one of a wider known value's columns is not asked for here
      auto const at = [](Scalar const& s) { return s.evaluate(0); };
      return Scalar(compute(op, at(a), at(b), at(c)));
    }
    std::vector<Value> v(static_cast<std::size_t>(k));
    auto const at = [](Scalar const& s, std::int64_t j) { return s.evaluate(s.width_ == 1 ? 0 : j); };
    for (std::int64_t j = 0; j < k; ++j) v[std::size_t(j)] = compute(op, at(a, j), at(b, j), at(c, j));
    return Scalar(std::move(v));
  }
  auto n = std::make_shared<Node>();
  n->op = op;
  n->a = a;
  n->b = b;
  n->c = c;
  n->size = size;
  Scalar s;
  s.width_ = k;
  s.node_ = std::move(n);
  return s;
}

Scalar operator+(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::add, a, b, {}); }
Scalar operator-(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::subtract, a, b, {}); }
Scalar operator*(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::multiply, a, b, {}); }
Scalar operator/(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::divide, a, b, {}); }
Scalar operator-(Scalar const& a) { return Scalar::combine(Op::negate, a, {}, {}); }
Scalar sqrt(Scalar const& a) { return Scalar::combine(Op::square_root, a, {}, {}); }
Scalar abs(Scalar const& a) { return Scalar::combine(Op::absolute, a, {}, {}); }
Scalar conj(Scalar const& a) { return Scalar::combine(Op::conjugate, a, {}, {}); }
Scalar real_part(Scalar const& a) { return Scalar::combine(Op::real_only, a, {}, {}); }
Scalar imaginary_part(Scalar const& a) { return Scalar::combine(Op::imaginary_only, a, {}, {}); }
Scalar min(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::smaller, a, b, {}); }
Scalar max(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::larger, a, b, {}); }
Scalar less(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::is_less, a, b, {}); }
Scalar less_equal(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::is_less_equal, a, b, {}); }
Scalar equal(Scalar const& a, Scalar const& b) { return Scalar::combine(Op::is_equal, a, b, {}); }

Scalar any(Scalar const& a) {
  if (a.known() || a.node_->size >= largest) {
    a.settle();
    for (std::int64_t j = 0; j < a.width_; ++j)
      if (a.evaluate(j) != Scalar::Value(0)) return 1.0;
    return 0.0;
  }
  auto s = Scalar::combine(Op::any_column, a, {}, {});
  s.width_ = 1;
  return s;
}

Scalar select(Scalar const& mask, Scalar const& a, Scalar const& b) { return Scalar::combine(Op::choose, mask, a, b); }

}  // namespace asterism::device
