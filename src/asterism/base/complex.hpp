// A complex number that compilers turn into plain multiplications.
//
// std::complex multiplies through a NaN-recovering library call without -ffast-math (axpy was
// measured 15 times slower); this struct has its layout, so arrays are exchanged by a cast.
#pragma once
#include <cmath>
#include <complex>
#include <type_traits>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define ASTERISM_FN __host__ __device__ inline
#else
#define ASTERISM_FN inline
#endif

namespace asterism {

template <class R>
struct Complex {
  R re, im;
  Complex() = default;
  ASTERISM_FN constexpr Complex(R r, R i = R(0)) : re(r), im(i) {}
  template <class S, std::enable_if_t<!std::is_same_v<R, S>, int> = 0>
  ASTERISM_FN explicit constexpr Complex(Complex<S> o) : re(R(o.re)), im(R(o.im)) {}
  explicit Complex(std::complex<double> o) : re(R(o.real())), im(R(o.imag())) {}
  ASTERISM_FN Complex& operator+=(Complex o) {
    re += o.re;
    im += o.im;
    return *this;
  }
  ASTERISM_FN Complex& operator-=(Complex o) {
    re -= o.re;
    im -= o.im;
    return *this;
  }
  ASTERISM_FN Complex& operator*=(Complex o) { return *this = *this * o; }
  ASTERISM_FN friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  ASTERISM_FN friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  ASTERISM_FN friend Complex operator-(Complex a) { return {-a.re, -a.im}; }
  ASTERISM_FN friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  /// Smith's formula: no overflow where the quotient has none.
  ASTERISM_FN friend Complex operator/(Complex a, Complex b) {
    R const ar = b.re < 0 ? -b.re : b.re, ai = b.im < 0 ? -b.im : b.im;
    if (ar >= ai) {
      R const q = b.im / b.re, d = b.re + b.im * q;
      return {(a.re + a.im * q) / d, (a.im - a.re * q) / d};
    }
    R const q = b.re / b.im, d = b.re * q + b.im;
    return {(a.re * q + a.im) / d, (a.im * q - a.re) / d};
  }
  ASTERISM_FN friend bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
};

template <class T>
struct real_type {
  using type = T;
};
template <class R>
struct real_type<Complex<R>> {
  using type = R;
};
template <class T>
using real_t = typename real_type<T>::type;
template <class T>
inline constexpr bool is_complex_v = !std::is_same_v<T, real_t<T>>;
/// The same field in the other precision.
template <class T>
using other_precision = std::conditional_t<is_complex_v<T>, Complex<std::conditional_t<sizeof(real_t<T>) == sizeof(float), double, float>>,
                                           std::conditional_t<sizeof(real_t<T>) == sizeof(float), double, float>>;

ASTERISM_FN float conj(float x) { return x; }
ASTERISM_FN double conj(double x) { return x; }
template <class R>
ASTERISM_FN Complex<R> conj(Complex<R> x) {
  return {x.re, -x.im};
}
ASTERISM_FN float real(float x) { return x; }
ASTERISM_FN double real(double x) { return x; }
template <class R>
ASTERISM_FN R real(Complex<R> x) {
  return x.re;
}
ASTERISM_FN float imag(float) { return 0; }
ASTERISM_FN double imag(double) { return 0; }
template <class R>
ASTERISM_FN R imag(Complex<R> x) {
  return x.im;
}
/// |x|^2
ASTERISM_FN float abs2(float x) { return x * x; }
ASTERISM_FN double abs2(double x) { return x * x; }
template <class R>
ASTERISM_FN R abs2(Complex<R> x) {
  return x.re * x.re + x.im * x.im;
}
/// |x|
ASTERISM_FN float magnitude(float x) { return x < 0 ? -x : x; }
ASTERISM_FN double magnitude(double x) { return x < 0 ? -x : x; }
template <class R>
ASTERISM_FN R magnitude(Complex<R> x) {
  return std::hypot(x.re, x.im);
}
/// From the library's common host scalar.
template <class T>
T from_complex(std::complex<double> v) {
  static_assert(is_complex_v<T> || std::is_arithmetic_v<T>, "one of the library's scalars: std::complex is not");
  if constexpr (is_complex_v<T>) return T(real_t<T>(v.real()), real_t<T>(v.imag()));
  else return T(v.real());
}
template <class T>
std::complex<double> to_complex(T v) {
  return {double(real(v)), double(imag(v))};
}

}  // namespace asterism
