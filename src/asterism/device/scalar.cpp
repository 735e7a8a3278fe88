#include "asterism/device/scalar.hpp"

#include <algorithm>

#include "asterism/base/error.hpp"

namespace asterism::device {
namespace {
enum Op {
  add,
  subtract,
  multiply,
  divide,
  negate,
  square_root,
  absolute,
  conjugate,
  real_only,
  smaller,
  larger,
  is_less,
  is_less_equal,
  is_equal,
  any_column,
  choose
};

using Value = Scalar::Value;
Value compute(int op, Value a, Value b, Value c) {
  switch (op) {
    case add: return a + b;
    case subtract: return a - b;
    // real operands stay exactly real, and 0 * inf is not spread into the imaginary part
    case multiply: return a.imag() == 0 && b.imag() == 0 ? Value(a.real() * b.real()) : a * b;
    case divide: return a.imag() == 0 && b.imag() == 0 ? Value(a.real() / b.real()) : a / b;
    // a real number has no negative zero as its imaginary part: roots would change sides
    case negate: return a.imag() == 0 ? Value(-a.real()) : -a;
    case square_root: return a.imag() == 0 && a.real() >= 0 ? Value(std::sqrt(a.real())) : std::sqrt(a);
    case absolute: return a.imag() == 0 ? std::abs(a.real()) : std::abs(a);
    case conjugate: return a.imag() == 0 ? a.real() : std::conj(a);
    case real_only: return a.real();
    case smaller: return b.real() < a.real() ? b : a;
    case larger: return a.real() < b.real() ? b : a;
    case is_less: return a.real() < b.real() ? 1.0 : 0.0;
    case is_less_equal: return a.real() <= b.real() ? 1.0 : 0.0;
    case is_equal: return a == b ? 1.0 : 0.0;
    default: return a != Value(0) ? b : c;
  }
}
}  // namespace

struct Scalar::Node {
  std::vector<Value> values;  // known values (width > 1)
  Array results;              // of a pending result
  std::int64_t offset = 0;
  int op = -1;  // of an expression
  Scalar a, b, c;
};

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

Scalar Scalar::pending(Context const& ctx, Array results, std::int64_t offset, std::int64_t k) {
  if (ctx.runs_inline()) {
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
  return node_->op >= 0 && node_->a.known() && node_->b.known() && node_->c.known();
}

Scalar::Value Scalar::evaluate(std::int64_t j, Memory m) const {
  if (!node_) return first_;
  if (!node_->values.empty()) return node_->values[std::size_t(j)];
  if (node_->op < 0) return node_->results.as<Value>(m)[node_->offset + j];
  auto const at = [&](Scalar const& s) { return s.evaluate(s.width_ == 1 ? 0 : j, m); };
  if (node_->op == any_column) {
    for (std::int64_t i = 0; i < node_->a.width_; ++i)
      if (node_->a.evaluate(i, m) != Value(0)) return 1.0;
    return 0.0;
  }
  return compute(node_->op, at(node_->a), at(node_->b), at(node_->c));
}

void Scalar::collect(std::vector<Intent>& intents) const {
  if (!node_ || !node_->values.empty()) return;
  if (node_->op < 0) {
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
  if (node_->op < 0) return node_->results.settle(Access::read, "scalar");
  node_->a.settle();
  node_->b.settle();
  node_->c.settle();
}

Scalar Scalar::stored(Context const& ctx) const {
  if (known() || (node_->op < 0 && node_->offset == 0)) return *this;
  Array place(std::size_t(width_) * sizeof(Value));
  submit(
      ctx,
      [k = width_](Queue&, Complex<double> const* in, Complex<double>* out) {
        for (std::int64_t j = 0; j < k; ++j) out[j] = in[j];
      },
      device::value<Complex<double>>(*this, width_), write<Complex<double>>(place));
  return pending(ctx, place, 0, width_);
}

Array Scalar::results() const {
  ASTERISM_ASSERT(node_ && node_->values.empty() && node_->op < 0);
  return node_->results;
}

std::vector<Scalar::Value> Scalar::values() const {
  std::vector<Value> v(static_cast<std::size_t>(width_));
  for (std::int64_t j = 0; j < width_; ++j) v[std::size_t(j)] = value(j);
  return v;
}

Scalar Scalar::combine(int op, Scalar const& a, Scalar const& b, Scalar const& c) {
  if (!a.node_ && !b.node_ && !c.node_) return Scalar(compute(op, a.first_, b.first_, c.first_));
  auto const k = std::max({a.width_, b.width_, c.width_});
  for (auto const* s : {&a, &b, &c})
    ASTERISM_REQUIRE(s->width_ == 1 || s->width_ == k, shape, "scalars of widths {}, {} and {} do not combine.", a.width_, b.width_,
                     c.width_);
  if (a.known() && b.known() && c.known()) {
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
  Scalar s;
  s.width_ = k;
  s.node_ = std::move(n);
  return s;
}

Scalar operator+(Scalar const& a, Scalar const& b) { return Scalar::combine(add, a, b, {}); }
Scalar operator-(Scalar const& a, Scalar const& b) { return Scalar::combine(subtract, a, b, {}); }
Scalar operator*(Scalar const& a, Scalar const& b) { return Scalar::combine(multiply, a, b, {}); }
Scalar operator/(Scalar const& a, Scalar const& b) { return Scalar::combine(divide, a, b, {}); }
Scalar operator-(Scalar const& a) { return Scalar::combine(negate, a, {}, {}); }
Scalar sqrt(Scalar const& a) { return Scalar::combine(square_root, a, {}, {}); }
Scalar abs(Scalar const& a) { return Scalar::combine(absolute, a, {}, {}); }
Scalar conj(Scalar const& a) { return Scalar::combine(conjugate, a, {}, {}); }
Scalar real_part(Scalar const& a) { return Scalar::combine(real_only, a, {}, {}); }
Scalar min(Scalar const& a, Scalar const& b) { return Scalar::combine(smaller, a, b, {}); }
Scalar max(Scalar const& a, Scalar const& b) { return Scalar::combine(larger, a, b, {}); }
Scalar less(Scalar const& a, Scalar const& b) { return Scalar::combine(is_less, a, b, {}); }
Scalar less_equal(Scalar const& a, Scalar const& b) { return Scalar::combine(is_less_equal, a, b, {}); }
Scalar equal(Scalar const& a, Scalar const& b) { return Scalar::combine(is_equal, a, b, {}); }

Scalar any(Scalar const& a) {
  if (a.known()) {
    for (std::int64_t j = 0; j < a.width_; ++j)
      if (a.evaluate(j) != Scalar::Value(0)) return 1.0;
    return 0.0;
  }
  auto s = Scalar::combine(any_column, a, {}, {});
  s.width_ = 1;
  return s;
}

Scalar select(Scalar const& mask, Scalar const& a, Scalar const& b) { return Scalar::combine(choose, mask, a, b); }

}  // namespace asterism::device
