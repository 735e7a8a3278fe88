#include "asterism/la/vectors/vector.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/comm/communicator/shared_array.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"
#include "asterism/la/vectors/vector_scope.hpp"

namespace asterism::la {
namespace {

using device::read;
using device::submit;
using device::update;
using device::value;
using device::write;

}  // namespace

Vector::Vector(Space space, Dtype dtype, std::int64_t k, Queue queue)
    : space_(std::move(space)), dtype_(dtype), rows_(space_.local_size()), k_(k), queue_(std::move(queue)) {
  ASTERISM_REQUIRE(k >= 1, shape, "Vector: {} columns; at least 1.", k);
  auto const row = checked_product(k, std::int64_t(size_of(dtype)), "Vector");
  auto const own = std::size_t(checked_product(rows_, row, "Vector")),
             ghosts = std::size_t(checked_product(space_.ghosts(), row, "Vector"));
  auto const all = comm::vector_array(space_.comm(), own + ghosts);
  if (space_.has_local_form() && all) {
    all.divide({own, ghosts});
    local_ = all;
    data_ = own > 0 ? all.view(0, own) : Array(0);
  } else {
    data_ = all;
  }
  all.discard(queue_);
}

Vector Vector::wrap(Space space, Dtype dtype, std::int64_t k, Array data, Queue queue) {
  Vector v;
  v.space_ = std::move(space);
  v.dtype_ = dtype;
  v.rows_ = v.space_.local_size();
  v.k_ = k;
  v.queue_ = std::move(queue);
  v.data_ = std::move(data);
  ASTERISM_REQUIRE(v.data_.bytes() >= std::size_t(v.local_size() * k) * size_of(dtype), shape,
                   "Vector.wrap: {} bytes do not hold {} x {} values.", v.data_.bytes(), v.local_size(), k);
  return v;
}

Array Vector::ghosts() const {
  ASTERISM_REQUIRE(has_ghosts(), unsupported, "the vector has no room for ghosts; a vector made of a space with a local form has.");
  auto const own = std::size_t(rows_ * k_) * size_of(dtype_);
  return local_.bytes() > own ? local_.view(own, local_.bytes() - own) : Array(0);
}

Array room_for_ghosts(Vector const& x, Space const& space, Queue const& queue) {
  auto const bytes = std::size_t(space.ghosts() * x.columns()) * size_of(x.dtype());
  if (x.has_ghosts() && x.ghosts().bytes() == bytes) return x.ghosts();
  return Array::fresh(queue, bytes);
}

void require_layout(Vector const& x, Layout const& layout, Dtype dtype, char const* what) {
  ASTERISM_REQUIRE(x.layout().fits(layout), shape,
                   "{}: the vector has {} entries here ({} in all) where {} ({} in all) are needed on rank {}.", what, x.local_size(),
                   x.global_size(), layout.local_size(), layout.global_size(), layout.comm().rank());
  ASTERISM_REQUIRE(x.dtype() == dtype, dtype, "{}: the vector has dtype {} where {} is needed.", what, name_of(x.dtype()), name_of(dtype));
}

void clear_padding(Vector& x) {
  if (x.space().padding().empty()) return;
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(x.queue(), kernel::clear_runs<T>, std::ssize(x.space().padding()), x.columns(), read<std::int64_t>(x.space().padding_runs()),
           update<T>(x.data()));
  });
}

void fill(Vector& y, Scalar const& a) {
  static Event const e("VecSet");
  VectorScope const scope(e, y, 1, 0);
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::fill<T>, y.local_size(), y.columns(), value<T>(a, y.columns()), write<T>(y.data()));
  });
  if (!(a.known() && a.width() == 1 && a.value() == 0.0)) clear_padding(y);
}

void copy(Vector const& x, Vector& y) {
  static Event const e("VecCopy");
  VectorScope const scope(e, y, 2, 0);
  ASTERISM_REQUIRE(x.local_size() == y.local_size() && x.columns() == y.columns(), shape,
                   "copy: local shapes ({}, {}) and ({}, {}) differ.", x.local_size(), x.columns(), y.local_size(), y.columns());
  ASTERISM_REQUIRE(is_complex(y.dtype()) || !is_complex(x.dtype()), dtype, "copy: {} into {} would lose the imaginary part.",
                   name_of(x.dtype()), name_of(y.dtype()));
  with_dtype(x.dtype(), [&](auto s) {
    with_dtype(y.dtype(), [&](auto t) {
      using S = typename decltype(s)::type;
      using T = typename decltype(t)::type;
      if constexpr (is_complex_v<S> == is_complex_v<T> || (is_complex_v<T> && sizeof(real_t<T>) >= sizeof(S)))
        submit(y.queue(), kernel::convert<S, T>, y.local_size() * y.columns(), read<S>(x.data()), write<T>(y.data()));
      else fail(ErrorKind::dtype, "copy: {} into {} is not offered.", name_of(x.dtype()), name_of(y.dtype()));
    });
  });
}

void copy_where(Scalar const& mask, Vector const& x, Vector& y) {
  static Event const e("VecCopy");
  VectorScope const scope(e, y, 2, 0);
  require_same(x, y, "copy_where");
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::copy_where<T>, y.local_size(), y.columns(), value<T>(mask, y.columns()), read<T>(x.data()),
           update<T>(y.data()));
  });
}

void scale_by_powers(Vector& y, std::span<int const> exponents) {
  ASTERISM_ASSERT(std::ssize(exponents) == y.columns());
  int const most = real_of(y.dtype()) == Dtype::float32 ? 100 : 1000;  // a factor that the dtype has
  std::vector<int> left(exponents.begin(), exponents.end());
  while (std::any_of(left.begin(), left.end(), [](int e) { return e != 0; })) {
    std::vector<Scalar::Value> factors;
    for (auto& e : left) {
      int const now = std::clamp(e, -most, most);
      factors.push_back(std::ldexp(1.0, now));
      e -= now;
    }
    scale(Scalar(std::move(factors)), y);
  }
}

void scale(Scalar const& a, Vector& y) {
  static Event const e("VecScale");
  VectorScope const scope(e, y, 2, 1);
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::scale<T>, y.local_size(), y.columns(), value<T>(a, y.columns()), update<T>(y.data()));
  });
}

void axpy(Scalar const& a, Vector const& x, Vector& y) {
  static Event const e("VecAXPY");
  VectorScope const scope(e, y, 3, 2);
  require_same(x, y, "axpy");
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::axpy<T>, y.local_size(), y.columns(), value<T>(a, y.columns()), read<T>(x.data()), update<T>(y.data()));
  });
}

void axpby(Scalar const& a, Vector const& x, Scalar const& b, Vector& y) {
  static Event const e("VecAXPBY");
  VectorScope const scope(e, y, 3, 3);
  require_same(x, y, "axpby");
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::axpby<T>, y.local_size(), y.columns(), value<T>(a, y.columns()), read<T>(x.data()), value<T>(b, y.columns()),
           update<T>(y.data()));
  });
}

void aypx(Scalar const& b, Vector const& x, Vector& y) { axpby(1.0, x, b, y); }

Vector column_of(Vector const& x, std::int64_t j) {
  Vector out(x.space(), x.dtype(), 1, x.queue());
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit_without_form(
        x.queue(),
        [n = x.local_size(), k = x.columns(), j](device::Executor&, T const* from, T* to) {
          for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * k + j];
        },
        read<T>(x.data()), write<T>(out.data()));
  });
  return out;
}

void set_column(Vector const& x, std::int64_t j, Vector& y) {
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit_without_form(
        y.queue(),
        [n = y.local_size(), k = y.columns(), j](device::Executor&, T const* from, T* to) {
          for (std::int64_t i = 0; i < n; ++i) to[i * k + j] = from[i];
        },
        read<T>(x.data()), update<T>(y.data()));
  });
}

void conjugate(Vector const& x, Vector& y) {
  if (!is_complex(x.dtype())) return copy(x, y);
  static Event const e("VecConjugate");
  VectorScope const scope(e, y, 2, 0);
  require_same(x, y, "conjugate");
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::conjugate<T>, y.local_size() * y.columns(), read<T>(x.data()), write<T>(y.data()));
  });
}

void multiply(Vector const& d, Vector const& x, Vector& y) {
  static Event const e("VecPointwiseMult");
  VectorScope const scope(e, y, 3, 1);
  require_same(x, y, "multiply");
  require_diagonal(d, x, "multiply");
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::multiply<T>, y.local_size(), y.columns(), read<T>(d.data()), read<T>(x.data()), write<T>(y.data()));
  });
}

void multiply_add(Scalar const& a, Vector const& d, Vector const& x, Vector& y) {
  static Event const e("VecPointwiseMult");
  VectorScope const scope(e, y, 4, 3);
  require_same(x, y, "multiply_add");
  require_diagonal(d, x, "multiply_add");
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::multiply_add<T>, y.local_size(), y.columns(), value<T>(a, y.columns()), read<T>(d.data()), read<T>(x.data()),
           update<T>(y.data()));
  });
}

void chebyshev_step(double a, double b, Vector const& w, Vector const& r, Vector& d, Vector& x) {
  static Event const e("VecChebyshev");
  VectorScope const scope(e, x, 6, 5);
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(x.queue(), kernel::chebyshev_step<T>, x.local_size(), x.columns(), a, b, read<T>(w.data()), read<T>(r.data()),
           update<T>(d.data()), update<T>(x.data()));
  });
}

void fill_hashed(Vector& x, std::uint64_t seed) {
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(x.queue(), kernel::hashed<T>, x.local_size(), x.columns(), x.layout().begin(), seed, write<T>(x.data()));
  });
  clear_padding(x);
}

bool Entries::all_zero() const {
  return not_finite == 0 && std::all_of(largest.begin(), largest.end(), [](double v) { return v == 0; });
}

Entries look_at_local_entries(Vector const& x) {
  auto const k = x.columns();
  Entries out;
  out.largest.resize(std::size_t(k));
  std::int64_t first = -1;
  x.data().settle(device::Access::read, "look at entries");
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::Executor executor;
    out.not_finite = kernel::look_at_entries<T>(executor, x.local_size(), k, x.data().as<T>(), out.largest.data(), &first);
  });
  if (first >= 0) out.first_not_finite = x.layout().begin() + first;
  return out;
}

std::vector<Entries> look_at_entries(std::span<Vector const* const> vectors) {
  std::vector<Entries> out;
  std::vector<double> both;  // the largest of all columns, and for each vector whether it has one that is not finite
  for (auto const* const v : vectors) {
    out.push_back(look_at_local_entries(*v));
    both.insert(both.end(), out.back().largest.begin(), out.back().largest.end());
  }
  for (auto const& e : out) both.push_back(double(e.not_finite > 0));
  auto const& comm = vectors[0]->comm();
  comm.max(std::span<double>(both));
  auto const* at = both.data();
  auto const* finds = at + (both.size() - vectors.size());
  for (auto& e : out) {
    for (auto& v : e.largest) v = *at++;
    if (*finds++ == 0) continue;
    auto const none = std::numeric_limits<std::int64_t>::max();
    e.first_not_finite = comm.min(e.not_finite > 0 ? e.first_not_finite : none);
    e.not_finite = comm.sum(e.not_finite);
  }
  return out;
}

Entries look_at_entries(Vector const& x) {
  Vector const* const one[] = {&x};
  return look_at_entries(one)[0];
}

namespace {
template <class R>
std::int64_t first_not_finite_of(R const* v, std::int64_t n) {
  for (std::int64_t begin = 0; begin < n; begin += 4096) {
    auto const end = std::min<std::int64_t>(begin + 4096, n);
    R sums[4] = {0, 0, 0, 0};  // 0 times NaN or infinity is NaN: no branch for each value
    auto i = begin;
    for (; i + 3 < end; i += 4)
      for (int k = 0; k < 4; ++k) sums[k] += v[i + k] * R(0);
    for (; i < end; ++i) sums[0] += v[i] * R(0);
    if ((sums[0] + sums[1]) + (sums[2] + sums[3]) == R(0)) continue;
    i = begin;
    while (std::isfinite(v[i])) ++i;
    return i;
  }
  return -1;
}
}  // namespace

std::int64_t first_not_finite(Dtype dtype, std::int64_t count, void const* values) {
  std::int64_t const parts = is_complex(dtype) ? 2 : 1;
  auto const at = real_of(dtype) == Dtype::float32 ? first_not_finite_of(static_cast<float const*>(values), count * parts)
                                                   : first_not_finite_of(static_cast<double const*>(values), count * parts);
  return at < 0 ? -1 : at / parts;
}

}  // namespace asterism::la
