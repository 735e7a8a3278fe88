// What operations of vectors have in common: their events, and what must be alike.
#pragma once
#include "asterism/base/profile.hpp"
#include "asterism/la/vectors/vector.hpp"

namespace asterism::la {

struct Event {
  Event(char const* name) : id(profile::event(name)) {}
  int id;
};

/// An event over `passes` reads and writes of the vector.
struct VectorScope : profile::Scope {
  VectorScope(Event const& e, Vector const& v, double passes, double flops_per_value)
      : VectorScope(e, double(v.local_size() * v.columns()), v.dtype(), passes, flops_per_value) {}
  VectorScope(Event const& e, double values, Dtype d, double passes, double flops_per_value)
      : Scope(e.id, passes * values * double(size_of(d)), is_complex(d) ? 4 * flops_per_value * values : flops_per_value * values) {}
};

inline void require_same(Vector const& x, Vector const& y, char const* what) {
  if (x.dtype() == y.dtype() && x.local_size() == y.local_size() && x.columns() == y.columns()) [[likely]]
    return;
  ASTERISM_REQUIRE(x.dtype() == y.dtype(), dtype, "{}: the vectors have dtypes {} and {}. copy_from converts one.", what,
                   name_of(x.dtype()), name_of(y.dtype()));
  ASTERISM_REQUIRE(x.local_size() == y.local_size() && x.columns() == y.columns(), shape,
                   "{}: the vectors have local shapes ({}, {}) and ({}, {}).", what, x.local_size(), x.columns(), y.local_size(),
                   y.columns());
}

/// d holds one factor for each row of x.
inline void require_diagonal(Vector const& d, Vector const& x, char const* what) {
  if (d.dtype() == x.dtype() && d.local_size() == x.local_size() && d.columns() == 1) [[likely]]
    return;
  ASTERISM_REQUIRE(d.dtype() == x.dtype(), dtype, "{}: the vectors have dtypes {} and {}. copy_from converts one.", what,
                   name_of(d.dtype()), name_of(x.dtype()));
  fail(ErrorKind::shape, "{}: the factors have local shape ({}, {}) where ({}, 1) is needed.", what, d.local_size(), d.columns(),
       x.local_size());
}

}  // namespace asterism::la
