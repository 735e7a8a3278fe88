#include "asterism/base/dtype.hpp"

#include <limits>

#include "asterism/base/error.hpp"

namespace asterism {

std::size_t size_of(Dtype d) {
  return with_dtype(d, [](auto tag) { return sizeof(typename decltype(tag)::type); });
}

std::string_view name_of(Dtype d) {
  switch (d) {
    case Dtype::float32: return "float32";
    case Dtype::float64: return "float64";
    case Dtype::complex64: return "complex64";
    default: return "complex128";
  }
}

Dtype dtype_from_name(std::string_view name) {
  for (auto d : {Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128})
    if (name == name_of(d)) return d;
  fail(ErrorKind::dtype, "dtype '{}' is not one of float32, float64, complex64, complex128.", name);
}

bool is_complex(Dtype d) { return d == Dtype::complex64 || d == Dtype::complex128; }

Dtype real_of(Dtype d) { return d == Dtype::float32 || d == Dtype::complex64 ? Dtype::float32 : Dtype::float64; }

Dtype promote(Dtype a, Dtype b) {
  bool const c = is_complex(a) || is_complex(b);
  bool const wide = real_of(a) == Dtype::float64 || real_of(b) == Dtype::float64;
  return c ? (wide ? Dtype::complex128 : Dtype::complex64) : (wide ? Dtype::float64 : Dtype::float32);
}

Dtype with_precision_of(Dtype field, Dtype precision) {
  bool const wide = real_of(precision) == Dtype::float64;
  return is_complex(field) ? (wide ? Dtype::complex128 : Dtype::complex64) : (wide ? Dtype::float64 : Dtype::float32);
}

double epsilon_of(Dtype d) {
  return real_of(d) == Dtype::float64 ? std::numeric_limits<double>::epsilon() : double(std::numeric_limits<float>::epsilon());
}

}  // namespace asterism
