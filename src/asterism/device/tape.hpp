// Arithmetic on the scalars of queues, and expressions of them flattened so that a kernel on a GPU evaluates one where it starts.
#pragma once
#include <cstdint>

#include "asterism/device/executor.hpp"

namespace asterism::device {

enum class Op : std::uint8_t {
  load,
  constant,
  any_column,
  add,
  subtract,
  multiply,
  divide,
  negate,
  square_root,
  absolute,
  conjugate,
  real_only,
  imaginary_only,
  smaller,
  larger,
  is_less,
  is_less_equal,
  is_equal,
  choose
};
ASTERISM_FN constexpr int operands(Op op) {
  return op <= Op::any_column ? 0 : op == Op::choose ? 3 : op >= Op::negate && op <= Op::imaginary_only ? 1 : 2;
}

/// The principal root; halves before it adds, so that large numbers do not overflow.
ASTERISM_FN Number root(Number a) {
  if (a.im == 0 && a.re >= 0) return std::sqrt(a.re);
  double const size = std::hypot(a.re, a.im);
  double const t = std::sqrt(0.5 * size + 0.5 * magnitude(a.re));
  double const other = 0.5 * (a.im / t);
  if (a.re >= 0) return {t, other};
  return {other < 0 ? -other : other, std::copysign(t, a.im)};
}

/// One operation. Real operands stay exactly real: 0 * inf is not spread into the imaginary part, and a real number has no negative
/// zero there, with which roots would change sides.
ASTERISM_FN Number compute(Op op, Number a, Number b, Number c) {
  bool const real_a = a.im == 0, real_both = real_a && b.im == 0;
  switch (op) {
    case Op::add: return a + b;
    case Op::subtract: return real_both ? Number(a.re - b.re) : a - b;
    case Op::multiply: return real_both ? Number(a.re * b.re) : a * b;
    case Op::divide: return real_both ? Number(a.re / b.re) : a / b;
    case Op::negate: return real_a ? Number(-a.re) : -a;
    case Op::square_root: return root(a);
    case Op::absolute: return real_a ? Number(magnitude(a.re)) : Number(magnitude(a));
    case Op::conjugate: return real_a ? Number(a.re) : conj(a);
    case Op::real_only: return Number(a.re);
    case Op::imaginary_only: return Number(a.im);
    case Op::smaller: return b.re < a.re ? b : a;
    case Op::larger: return a.re < b.re ? b : a;
    case Op::is_less: return Number(a.re < b.re ? 1.0 : 0.0);
    case Op::is_less_equal: return Number(a.re <= b.re ? 1.0 : 0.0);
    case Op::is_equal: return Number(a == b ? 1.0 : 0.0);
    default: return a == Number(0.0) ? c : b;
  }
}

/// An expression in postfix order.
struct Tape {
  static constexpr int most_steps = 32, most_places = 8, most_constants = 8, most_depth = 8;
  struct Step {
    Op op;
    std::uint8_t at;  ///< of load, any_column: the place; of constant: which
  };
  Step steps[most_steps] = {};  // all of it is written: graphs compare arguments by their bytes
  std::uint8_t count = 0, places = 0, constants = 0;
  bool wide[most_places] = {};             ///< a value for each column, or one for all
  std::int64_t columns[most_places] = {};  ///< of any_column
  Number const* place[most_places] = {};
  Number constant[most_constants] = {};

  ASTERISM_FN Number evaluate(std::int64_t j) const {
    Number stack[most_depth];
    int top = 0;
    for (int s = 0; s < count; ++s) {
      auto const step = steps[s];
      if (step.op == Op::load) {
        stack[top++] = place[step.at][wide[step.at] ? j : 0];
      } else if (step.op == Op::constant) {
        stack[top++] = constant[step.at];
      } else if (step.op == Op::any_column) {
        bool any = false;
        for (std::int64_t i = 0; i < columns[step.at]; ++i) any = any || !(place[step.at][i] == Number(0.0));
        stack[top++] = Number(any ? 1.0 : 0.0);
      } else {
        int const n = operands(step.op);
        top -= n - 1;
        auto& a = stack[top - 1];
        a = compute(step.op, a, n > 1 ? stack[top] : Number(0.0), n > 2 ? stack[top + 1] : Number(0.0));
      }
    }
    return stack[0];
  }
};

template <class T>
ASTERISM_FN T from_number(Number v) {
  if constexpr (is_complex_v<T>) return T(real_t<T>(v.re), real_t<T>(v.im));
  else return T(v.re);
}

/// k coefficients of a kernel. What a loop uses of them is here(), captured by it: their values on the host, their tape on a GPU.
template <class T>
struct Numbers {
  T const* values;
  Tape const* tape;

#if defined(ASTERISM_ON_GPU)
  struct Here {
    Tape tape;
    ASTERISM_FN T operator[](std::int64_t j) const { return from_number<T>(tape.evaluate(j)); }
  };
  Here here() const { return {*tape}; }
#else
  T const* here() const { return values; }
#endif
};

}  // namespace asterism::device
