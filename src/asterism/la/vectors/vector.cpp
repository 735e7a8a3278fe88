#include "asterism/la/vectors/vector.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/comm/communicator/shared_array.hpp"
#include "asterism/comm/reduction.hpp"
#include "asterism/la/vectors/reproducible_dot.kernels.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"

namespace asterism::la {
namespace {

using comm::Reduction;
using device::read;
using device::submit;
using device::update;
using device::value;
using device::write;
using kernel::Sum;

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
  ASTERISM_REQUIRE(x.dtype() == y.dtype(), dtype, "{}: the vectors have dtypes {} and {}. Convert one with astype().", what,
                   name_of(x.dtype()), name_of(y.dtype()));
  ASTERISM_REQUIRE(x.local_size() == y.local_size() && x.columns() == y.columns(), shape,
                   "{}: the vectors have local shapes ({}, {}) and ({}, {}).", what, x.local_size(), x.columns(), y.local_size(),
                   y.columns());
}

/// d holds one factor for each row of x.
inline void require_diagonal(Vector const& d, Vector const& x, char const* what) {
  if (d.dtype() == x.dtype() && d.local_size() == x.local_size() && d.columns() == 1) [[likely]]
    return;
  ASTERISM_REQUIRE(d.dtype() == x.dtype(), dtype, "{}: the vectors have dtypes {} and {}. Convert one with astype().", what,
                   name_of(d.dtype()), name_of(x.dtype()));
  fail(ErrorKind::shape, "{}: the factors have local shape ({}, {}) where ({}, 1) is needed.", what, d.local_size(), d.columns(),
       x.local_size());
}

}  // namespace

Vector::Vector(Layout layout, Dtype dtype, std::int64_t k, Queue queue)
    : layout_(std::move(layout)),
      dtype_(dtype),
      rows_(layout_.local_size()),
      k_(k),
      queue_(std::move(queue)),
      data_(comm::vector_array(layout_.comm(), std::size_t(checked_product(checked_product(layout_.local_size(), k, "Vector"),
                                                                           std::int64_t(size_of(dtype)), "Vector")))) {
  ASTERISM_REQUIRE(k >= 1, shape, "Vector: {} columns; at least 1.", k);
  data_.discard(queue_);
}

Vector Vector::wrap(Layout layout, Dtype dtype, std::int64_t k, Array data, Queue queue) {
  Vector v;
  v.layout_ = std::move(layout);
  v.dtype_ = dtype;
  v.rows_ = v.layout_.local_size();
  v.k_ = k;
  v.queue_ = std::move(queue);
  v.data_ = std::move(data);
  ASTERISM_REQUIRE(v.data_.bytes() >= std::size_t(v.local_size() * k) * size_of(dtype), shape,
                   "Vector.wrap: {} bytes do not hold {} x {} values.", v.data_.bytes(), v.local_size(), k);
  return v;
}

void require_layout(Vector const& x, Layout const& layout, Dtype dtype, char const* what) {
  ASTERISM_REQUIRE(x.layout().fits(layout), shape,
                   "{}: the vector has {} entries here ({} in all) where {} ({} in all) are needed on rank {}.", what, x.local_size(),
                   x.global_size(), layout.local_size(), layout.global_size(), layout.comm().rank());
  ASTERISM_REQUIRE(x.dtype() == dtype, dtype, "{}: the vector has dtype {} where {} is needed.", what, name_of(x.dtype()), name_of(dtype));
}

void fill(Vector& y, Scalar const& a) {
  static Event const e("VecSet");
  VectorScope const scope(e, y, 1, 0);
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(y.queue(), kernel::fill<T>, y.local_size(), y.columns(), value<T>(a, y.columns()), write<T>(y.data()));
  });
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

namespace {
using Pairs = std::span<std::pair<Vector const*, Vector const*> const>;

/// Sums that do not depend on any order.
comm::ReproducibleReduction reproducible_begin(Pairs pairs) {
  auto const& first = *pairs[0].first;
  auto const k = first.columns();
  comm::ReproducibleReduction reduction(first.comm(), first.queue(), k * std::int64_t(pairs.size()));
  auto const words = reduction.partial().bytes() / pairs.size();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto const &x = *pairs[i].first, &y = *pairs[i].second;
    require_same(x, y, "dot");
    with_dtype(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      submit(x.queue(), kernel::reproducible_dot<T>, x.local_size(), k, read<T>(x.data()), read<T>(y.data()),
             update<std::int64_t>(reduction.partial().view(i * words, words)));
    });
  }
  reduction.begin();
  return reduction;
}
}  // namespace

DotsInFlight begin_dots(Pairs pairs) {
  static Event const e("VecDot");
  auto const& first = *pairs[0].first;
  VectorScope const scope(e, first, 2 * double(pairs.size()), 2 * double(pairs.size()));
  auto const k = first.columns();
  DotsInFlight out;
  out.pairs_ = std::int64_t(pairs.size());
  out.columns_ = k;
  if (reproducible()) {
    out.ordered_ = reproducible_begin(pairs);
    return out;
  }
  out.sums_.emplace(first.comm(), first.queue(), k * out.pairs_);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto const &x = *pairs[i].first, &y = *pairs[i].second;
    require_same(x, y, "dot");
    with_dtype(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      submit(x.queue(), kernel::dot<T>, x.local_size(), k, read<T>(x.data()), read<T>(y.data()), update<Sum>(out.sums_->partial()),
             std::int64_t(i) * k);
    });
  }
  out.sums_->begin();
  return out;
}

DotsInFlight dots_begin(Pairs pairs) {
  return comm::collective(pairs[0].first->comm(), "dot", [&] { return begin_dots(pairs); });
}

std::vector<Scalar> DotsInFlight::end() {
  std::vector<Scalar> out;
  auto const take = [&](auto& reduction) {
    reduction.end();
    for (std::int64_t i = 0; i < pairs_; ++i) out.push_back(reduction.result(i * columns_, columns_));
  };
  if (ordered_) take(*ordered_);
  else take(*sums_);
  return out;
}

std::vector<Scalar> dots(Pairs pairs) { return dots_begin(pairs).end(); }

Scalar dot(Vector const& x, Vector const& y) {
  if (x.queue().runs_inline() && x.columns() == 1 && x.comm().size() == 1 && !reproducible()) {  // nothing to hold, nothing to send
    static Event const e("VecDot");
    VectorScope const scope(e, x, 2, 2);
    require_same(x, y, "dot");
    Sum sum(0);
    with_dtype(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      submit(x.queue(), kernel::dot<T>, x.local_size(), std::int64_t(1), read<T>(x.data()), read<T>(y.data()), &sum, std::int64_t(0));
    });
    return to_complex(sum);
  }
  std::pair<Vector const*, Vector const*> const one[] = {{&x, &y}};
  return dots(one)[0];
}

Scalar norm(Vector const& x) {
  if (reproducible()) return sqrt(real_part(dot(x, x)));
  static Event const e("VecNorm");
  VectorScope const scope(e, x, 1, 2);
  auto const k = x.columns();
  Reduction reduction(x.comm(), x.queue(), 2 * k);
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(x.queue(), kernel::squares<T>, x.local_size(), k, read<T>(x.data()), write<Sum>(reduction.partial()));
  });
  reduction.begin();
  reduction.end();
  Scalar const both = reduction.result(0, k), small = reduction.result(k, k), c = 0x1p-600;
  Scalar const medium = real_part(both), large = imaginary_part(both);
  if (real_of(x.dtype()) == Dtype::float32) return sqrt(medium);
  return select(large, sqrt(large + medium * c * c) / c, select(medium, sqrt(medium + small * c * c), sqrt(small) * c));
}

Scalar update_and_norm2(Scalar const& alpha, Vector const& p, Vector const& executor, Vector& x, Vector& r) {
  static Event const e("VecUpdateNorm");
  VectorScope const scope(e, x, 6, 6);
  require_same(p, x, "update_and_norm2");
  require_same(executor, r, "update_and_norm2");
  require_same(x, r, "update_and_norm2");
  if (reproducible()) {
    axpy(alpha, p, x);
    axpy(-alpha, executor, r);
    return real_part(dot(r, r));
  }
  Reduction reduction(x.comm(), x.queue(), x.columns());
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(x.queue(), kernel::update_and_norm2<T>, x.local_size(), x.columns(), value<T>(alpha, x.columns()), read<T>(p.data()),
           read<T>(executor.data()), update<T>(x.data()), update<T>(r.data()), write<Sum>(reduction.partial()));
  });
  reduction.begin();
  reduction.end();
  return real_part(reduction.result(0, x.columns()));
}

std::pair<Scalar, Scalar> multiply_and_dot(Vector const& d, Vector const& r, Vector& z) {
  static Event const e("VecPointwiseMultDot");
  VectorScope const scope(e, r, 3, 5);
  require_same(r, z, "multiply_and_dot");
  require_diagonal(d, r, "multiply_and_dot");
  if (reproducible()) {
    multiply(d, r, z);
    std::pair<Vector const*, Vector const*> const both[] = {{&r, &z}, {&r, &r}};
    auto const sums = dots(both);
    return {sums[0], real_part(sums[1])};
  }
  auto const k = r.columns();
  Reduction reduction(r.comm(), r.queue(), 2 * k);
  with_dtype(r.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(r.queue(), kernel::multiply_and_dot<T>, r.local_size(), k, read<T>(d.data()), read<T>(r.data()), write<T>(z.data()),
           write<Sum>(reduction.partial()));
  });
  reduction.begin();
  reduction.end();
  return {reduction.result(0, k), real_part(reduction.result(k, k))};
}

Basis::Basis(Vector const& like, std::int64_t m)
    : like_(like),
      stride_(like.local_size() * std::int64_t(size_of(like.dtype()))),
      data_(std::size_t(checked_product(m, stride_, "Krylov basis"))) {
  ASTERISM_REQUIRE(like.columns() == 1, unsupported, "a Krylov basis holds single-column vectors, not {} columns.", like.columns());
  data_.discard(like.queue());
}

Vector Basis::operator[](std::int64_t j) const {
  return Vector::wrap(like_.layout(), like_.dtype(), 1, data_.view(std::size_t(j * stride_), std::size_t(stride_)), like_.queue());
}

std::vector<Scalar> Basis::dots(std::int64_t m, Vector const& w) const {
  static Event const e("VecMDot");
  VectorScope const scope(e, w, double(m + 1), 2 * double(m));
  if (reproducible()) {
    std::vector<Vector> v;
    for (std::int64_t j = 0; j < m; ++j) v.push_back((*this)[j]);
    std::vector<std::pair<Vector const*, Vector const*>> pairs;
    for (auto const& one : v) pairs.emplace_back(&one, &w);
    return pairs.empty() ? std::vector<Scalar>() : la::dots(pairs);
  }
  Reduction reduction(w.comm(), w.queue(), m);
  with_dtype(w.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(w.queue(), kernel::multi_dot<T>, w.local_size(), m, w.local_size(), read<T>(data_), read<T>(w.data()),
           write<Sum>(reduction.partial()));
  });
  reduction.begin();
  reduction.end();
  std::vector<Scalar> out;
  for (std::int64_t j = 0; j < m; ++j) out.push_back(reduction.result(j, 1));
  return out;
}

namespace {
template <class T>
struct Coefficients {  // m scalars, evaluated where the kernel starts
  std::vector<Scalar> scalars;
};
}  // namespace
}  // namespace asterism::la

namespace asterism::device::detail {
template <class T>
struct Argument<asterism::la::Coefficients<T>> {
  using C = asterism::la::Coefficients<T>;
  static bool ready(C const& c) {
    for (auto const& s : c.scalars)
      if (!s.known()) return false;
    return true;
  }
  static void settle(C const&) {}
  struct Held {
    std::vector<Scalar> scalars;
    Array array;  // on a GPU, where the values are computed before
  };
  struct Values {
    std::vector<T> v;
    T const* array;
    operator T const*() const { return array ? array : v.data(); }
  };
  static Held hold(C const& c, Queue const& queue, Memory m) {
    if (m != Memory::gpu) return {c.scalars, {}};
    auto const values = Array::fresh(queue, c.scalars.size() * sizeof(T));
    for (std::size_t j = 0; j < c.scalars.size(); ++j)
      submit(queue, asterism::la::kernel::fill<T>, std::int64_t(1), std::int64_t(1), value<T>(c.scalars[j], 1),
             write<T>(values.view(j * sizeof(T), sizeof(T))));
    return {{}, values};
  }
  static void collect(Held const& c, std::vector<Intent>& v) {
    c.array.intend(Access::read, v);
    for (auto const& s : c.scalars) s.collect(v);
  }
  static Values resolve(C const& c, Memory) { return resolve(Held{c.scalars, {}}, Memory::host); }
  static Values resolve(Held const& c, Memory m) {
    Values out{{}, static_cast<T const*>(c.array.raw(m))};
    for (auto const& s : c.scalars) out.v.push_back(from_complex<T>(s.evaluate(0, m)));
    return out;
  }
};
}  // namespace asterism::device::detail

namespace asterism::la {

void Basis::add(std::int64_t m, std::span<Scalar const> a, Vector& w) const {
  static Event const e("VecMAXPY");
  VectorScope const scope(e, w, double(m + 2), 2 * double(m));
  with_dtype(w.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(w.queue(), kernel::multi_axpy<T>, w.local_size(), m, w.local_size(), Coefficients<T>{{a.begin(), a.begin() + m}}, read<T>(data_),
           update<T>(w.data()));
  });
}

void fill_hashed(Vector& x, std::uint64_t seed) {
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(x.queue(), kernel::hashed<T>, x.local_size(), x.columns(), x.layout().begin(), seed, write<T>(x.data()));
  });
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
