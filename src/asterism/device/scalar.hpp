// Numbers that may not be known yet: k wide, computed by whoever consumes them.
//
// alpha = rho / pq launches nothing: it is a small expression over results that a queue will
// produce, evaluated where a kernel that takes alpha starts. On the inline queue every value is
// known at once and expressions are plain arithmetic.
#pragma once
#include <complex>
#include <memory>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/device/array.hpp"

namespace asterism::device {

class Scalar {
 public:
  using Value = std::complex<double>;
  Scalar() = default;
  Scalar(double v) : first_(v) {}
  Scalar(Value v) : first_(v) {}
  explicit Scalar(std::vector<Value> values);
  /// k values that work already submitted to ctx writes into results, at offset (in values).
  static Scalar pending(Context const& ctx, Array results, std::int64_t offset, std::int64_t k);

  std::int64_t width() const { return width_; }
  bool known() const;
  /// Waits if the value is not known yet (counted, reason "scalar").
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
  /// Where mask is not zero a, else b; element by element, so a NaN in the other side does no harm.
  friend Scalar select(Scalar const& mask, Scalar const& a, Scalar const& b);

  /// For kernels: the value of column j, when the work it depends on is done.
  Value evaluate(std::int64_t j) const;
  void collect(std::vector<Intent>& intents) const;

  struct Node;

 private:
  static Scalar combine(int op, Scalar const& a, Scalar const& b, Scalar const& c);
  Value first_ = 0;
  std::int64_t width_ = 1;
  std::shared_ptr<Node const> node_;  // nothing for a known single value
};

/// A scalar argument of submit(): resolves to T const*, k values (a single value is repeated).
template <class T>
struct ScalarArgument {
  Scalar scalar;
  std::int64_t k;
};
template <class T>
ScalarArgument<T> value(Scalar const& s, std::int64_t k) {
  return {s, k};
}

namespace detail {
template <class T>
class ScalarValues {
 public:
  ScalarValues(Scalar const& s, std::int64_t k) {
    auto* out = few_;
    if (k > 4) many_.resize(std::size_t(k)), out = many_.data();
    for (std::int64_t j = 0; j < k; ++j) out[j] = from_complex<T>(s.evaluate(s.width() == 1 ? 0 : j));
  }
  operator T const*() const { return many_.empty() ? few_ : many_.data(); }

 private:
  T few_[4];
  std::vector<T> many_;
};
template <class T>
struct Argument<ScalarArgument<T>> {
  static bool ready(ScalarArgument<T> const& a) { return a.scalar.known(); }
  static void collect(ScalarArgument<T> const& a, std::vector<Intent>& v) { a.scalar.collect(v); }
  static ScalarValues<T> resolve(ScalarArgument<T> const& a) { return {a.scalar, a.k}; }
};
}  // namespace detail

}  // namespace asterism::device
