"""Complex numbers in the text of kernels: of scalars, of vectors, and of the lanes of a GPU.

Input: what stands before a function. Output: C++ text, which needs functions absolute and root of real numbers.
"""

from __future__ import annotations

__all__ = ["complex_numbers"]


def complex_numbers(before: str, before_long: str) -> str:
    """Return the type, its operators, and functions, and what stands before them. X and Y are real numbers, or vectors of them."""
    text = """template <class X>
struct Complex {
  X re, im;
  FUNCTION Complex() {}
  FUNCTION Complex(X x, X y = X{}) : re(x), im(y) {}
};
template <class X>
FUNCTION X re(X x) { return x; }
template <class X>
FUNCTION X im(X) { return X{}; }
template <class X>
FUNCTION X re(Complex<X> z) { return z.re; }
template <class X>
FUNCTION X im(Complex<X> z) { return z.im; }
template <class X>
FUNCTION Complex<X> operator-(Complex<X> a) { return {-a.re, -a.im}; }
template <class X>
FUNCTION Complex<X> operator+(Complex<X> a, Complex<X> b) { return {a.re + b.re, a.im + b.im}; }
template <class X>
FUNCTION Complex<X> operator+(Complex<X> a, X b) { return {a.re + b, a.im}; }
template <class X>
FUNCTION Complex<X> operator+(X a, Complex<X> b) { return {a + b.re, b.im}; }
template <class X>
FUNCTION Complex<X> operator-(Complex<X> a, Complex<X> b) { return {a.re - b.re, a.im - b.im}; }
template <class X>
FUNCTION Complex<X> operator-(Complex<X> a, X b) { return {a.re - b, a.im}; }
template <class X>
FUNCTION Complex<X> operator-(X a, Complex<X> b) { return {a - b.re, -b.im}; }
template <class X, class Y>  // a scalar times a vector too
FUNCTION Complex<Y> operator*(Complex<X> a, Complex<Y> b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
template <class X, class Y>
FUNCTION Complex<Y> operator*(Complex<X> a, Y b) { return {a.re * b, a.im * b}; }
template <class X, class Y>
FUNCTION Complex<Y> operator*(X a, Complex<Y> b) { return {a * b.re, a * b.im}; }
template <class X>
FUNCTION Complex<X> operator/(Complex<X> a, X b) { return {a.re / b, a.im / b}; }
template <class X>
LONG Complex<X> operator/(Complex<X> a, Complex<X> b) {  // Smith's: no square overflows
  auto const wide = absolute(b.re) >= absolute(b.im);
  X const most = wide ? b.re : b.im, least = wide ? b.im : b.re, ratio = least / most, by = most + least * ratio;
  X const x = wide ? a.re : a.im, y = wide ? a.im : a.re, turned = y - x * ratio;
  return {(x + y * ratio) / by, (wide ? turned : -turned) / by};
}
template <class X>
FUNCTION Complex<X> operator/(X a, Complex<X> b) { return Complex<X>(a) / b; }
template <class X>
LONG X absolute(Complex<X> z) {
  X const a = absolute(z.re), b = absolute(z.im);
  X const most = a > b ? a : b, least = a > b ? b : a, ratio = most > 0 ? least / most : least;
  return most * root(1 + ratio * ratio);
}
template <class X>
LONG Complex<X> root(Complex<X> z) {
  X const large = root((absolute(z) + absolute(z.re)) / 2), small = large > 0 ? absolute(z.im) / (2 * large) : large;
  X const y = z.re < 0 ? large : small;
  return {z.re < 0 ? small : large, z.im < 0 ? -y : y};
}
template <class B, class P, class Q>
FUNCTION auto choose(B condition, P a, Q b) -> Complex<decltype(re(a))> {
  return {condition ? re(a) : re(b), condition ? im(a) : im(b)};
}
"""
    return (
        text.replace("FUNCTION Complex(", f"{before.removeprefix('static ')} Complex(")
        .replace("FUNCTION", before)
        .replace("LONG", before_long)
    )
