// The four scalar types of the library, chosen at run time.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "asterism/base/complex.hpp"

namespace asterism {

enum class Dtype : std::uint8_t { float32, float64, complex64, complex128 };

std::size_t size_of(Dtype d);
std::string_view name_of(Dtype d);
/// Throws a DtypeError that lists the four names.
Dtype dtype_from_name(std::string_view name);
bool is_complex(Dtype d);
/// float32 for the single-precision types, float64 for the others.
Dtype real_of(Dtype d);
/// The narrowest type that holds both.
Dtype promote(Dtype a, Dtype b);
/// The same field in single or double precision.
Dtype with_precision_of(Dtype field, Dtype precision);
/// Unit round-off of the type's real part.
double epsilon_of(Dtype d);

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr Dtype value = Dtype::float32;
};
template <>
struct dtype_of<double> {
  static constexpr Dtype value = Dtype::float64;
};
template <>
struct dtype_of<Complex<float>> {
  static constexpr Dtype value = Dtype::complex64;
};
template <>
struct dtype_of<Complex<double>> {
  static constexpr Dtype value = Dtype::complex128;
};
template <class T>
inline constexpr Dtype dtype_v = dtype_of<T>::value;

template <class T>
struct Tag {
  using type = T;
};

/// Calls f(Tag<T>{}) with the C++ type of d. Host code only: the device compilers do not
/// accept a kernel inside a generic lambda, so kernels are named functions called from here.
template <class F>
decltype(auto) with_dtype(Dtype d, F&& f) {
  switch (d) {
    case Dtype::float32: return f(Tag<float>{});
    case Dtype::float64: return f(Tag<double>{});
    case Dtype::complex64: return f(Tag<Complex<float>>{});
    default: return f(Tag<Complex<double>>{});
  }
}

/// Explicit instantiation of a kernel for all dtypes: FOR(T) is expanded for each.
#define ASTERISM_FOR_DTYPES(INSTANTIATE)  \
  INSTANTIATE(float)                      \
  INSTANTIATE(double)                     \
  INSTANTIATE(::asterism::Complex<float>) \
  INSTANTIATE(::asterism::Complex<double>)

}  // namespace asterism
