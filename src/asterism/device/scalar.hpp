// Numbers that may not be known yet: k wide, computed by whoever consumes them.
//
// alpha = rho / pq launches nothing: it is a small expression over results that a queue will
// produce, evaluated where a kernel that takes alpha starts. On the inline queue every value is
// known at once and expressions are plain arithmetic.
#pragma once
#include <complex>
#include <memory>
#include <optional>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/array.hpp"
#include "asterism/device/tape.hpp"

namespace asterism::device {

class Scalar {
 public:
  using Value = std::complex<double>;
  Scalar() = default;
  Scalar(double v) : first_(v) {}
  Scalar(Value v) : first_(v) {}
  explicit Scalar(std::vector<Value> values);
  /// k values that work already submitted to queue writes into results, at offset (in values).
  static Scalar pending(Queue const& queue, Array results, std::int64_t offset, std::int64_t k);

  /// Computed now by the queue and held in a place of its own: for values carried from one iteration to the next, whose
  /// expressions would grow. Known values stay as they are.
  Scalar stored(Queue const& queue) const;
  /// Where a stored or pending value will be.
  Array results() const;

  std::int64_t width() const { return width_; }
  bool known() const;
  /// Waits if the value is not known yet.
  Value value(std::int64_t j = 0) const;
  double real(std::int64_t j = 0) const { return value(j).real(); }
  std::vector<Value> values() const;

  friend Scalar operator+(Scalar const& a, Scalar const& b);
  friend Scalar operator-(Scalar const& a, Scalar const& b);
  friend Scalar operator*(Scalar const& a, Scalar const& b);
  friend Scalar operator/(Scalar const& a, Scalar const& b);
  friend Scalar operator-(Scalar const& a);
  friend Scalar sqrt(Scalar const& a);
  friend Scalar abs(Scalar const& a);
  friend Scalar conj(Scalar const& a);
  friend Scalar real_part(Scalar const& a);
  friend Scalar imaginary_part(Scalar const& a);
  /// Of real numbers.
  friend Scalar min(Scalar const& a, Scalar const& b);
  friend Scalar max(Scalar const& a, Scalar const& b);
  /// Comparisons of the real parts: 1 or 0. False with NaN.
  friend Scalar less(Scalar const& a, Scalar const& b);
  friend Scalar less_equal(Scalar const& a, Scalar const& b);
  friend Scalar equal(Scalar const& a, Scalar const& b);
  /// 1 if any column is not zero; one wide.
  friend Scalar any(Scalar const& a);
  /// Where mask is not zero a, else b; element by element, so a NaN in the other side does no harm.
  friend Scalar select(Scalar const& mask, Scalar const& a, Scalar const& b);

  /// For kernels: the value of column j, when the work it depends on is done.
  Value evaluate(std::int64_t j, Memory m = Memory::host) const;
  void collect(std::vector<Intent>& intents) const;
  /// The same with what does not fit on a tape computed by the queue before.
  Scalar for_tape(Queue const& queue) const;
  /// At the tape's end; what it loads from that memory has been asked for.
  void write_to(Tape& tape, Memory m) const;

  struct Node;

 private:
  void settle() const;  ///< waits for what is not known yet (counted, reason "scalar")
  struct Size;
  void measure(Size& size, int depth) const;
  static Scalar combine(Op op, Scalar const& a, Scalar const& b, Scalar const& c);
  Value first_ = 0;
  std::int64_t width_ = 1;
  std::shared_ptr<Node const> node_;  // nothing for a known single value
};

namespace detail {
[[noreturn]] void width_error(std::int64_t width, std::int64_t k);
}

/// A scalar argument of submit(): resolves to Numbers<T>, k values (a single value is repeated). Lives no longer than the call.
template <class T>
struct ScalarArgument {
  Scalar const& scalar;
  std::int64_t k;
};
template <class T>
ScalarArgument<T> value(Scalar const& s, std::int64_t k) {
  if (s.width() != 1 && s.width() != k) [[unlikely]]
    detail::width_error(s.width(), k);
  return {s, k};
}

namespace detail {
template <class T>
class ScalarValues {
 public:
  ScalarValues(Scalar const& s, std::int64_t k, Memory m) {
    if (m == Memory::gpu) {
      s.write_to(tape_.emplace(), m);
      return;
    }
    auto* out = few_;
    if (k > 4) many_.resize(std::size_t(k)), out = many_.data();
    for (std::int64_t j = 0; j < k; ++j) out[j] = from_complex<T>(s.evaluate(s.width() == 1 ? 0 : j, m));
  }
  operator Numbers<T>() const { return {many_.empty() ? few_ : many_.data(), tape_ ? &*tape_ : nullptr}; }

 private:
  T few_[4];
  std::vector<T> many_;
  std::optional<Tape> tape_;
};
template <class T>
struct HeldScalar {
  Scalar scalar;
  std::int64_t k;
};
template <class T>
struct Argument<ScalarArgument<T>> {
  static bool ready(ScalarArgument<T> const& a) { return a.scalar.known(); }
  static void settle(ScalarArgument<T> const&) {}
  static HeldScalar<T> hold(ScalarArgument<T> const& a, Queue const& queue, Memory m) {
    return {m == Memory::gpu ? a.scalar.for_tape(queue) : a.scalar, a.k};
  }
  static void collect(HeldScalar<T> const& a, std::vector<Intent>& v) { a.scalar.collect(v); }
  template <class A>
  static ScalarValues<T> resolve(A const& a, Memory m) {
    return {a.scalar, a.k, m};
  }
};
}  // namespace detail

}  // namespace asterism::device
