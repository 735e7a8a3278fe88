// Sums over vectors, and linear combinations of several.
#include "asterism/la/vectors/vector.hpp"

#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/la/vectors/reproducible_dot.kernels.hpp"
#include "asterism/la/vectors/vector.kernels.hpp"
#include "asterism/la/vectors/vector_scope.hpp"

namespace asterism::la {
namespace {

using comm::Reduction;
using device::read;
using device::submit;
using device::update;
using device::value;
using device::write;
using kernel::Sum;

}  // namespace

namespace {
using Pairs = std::span<std::pair<Vector const*, Vector const*> const>;

/// Their sums travel in one message.
void require_one_message(Pairs pairs) {
  auto const& first = *pairs[0].first;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto const& x = *pairs[i].first;
    require_same(x, *pairs[i].second, "dot");
    ASTERISM_REQUIRE(x.columns() == first.columns(), shape,
                     "dots: pair {} has {} columns, and the first {}. Give pairs of as many columns.", i, x.columns(), first.columns());
    ASTERISM_REQUIRE(x.comm() == first.comm() || (x.comm().size() == 1 && first.comm().size() == 1), comm,
                     "dots: the vectors of pair {} are on another communicator than the first.", i);
  }
}

/// Sums that do not depend on any order.
comm::ReproducibleReduction reproducible_begin(Pairs pairs) {
  auto const& first = *pairs[0].first;
  auto const k = first.columns();
  comm::ReproducibleReduction reduction(first.comm(), first.queue(), k * std::int64_t(pairs.size()));
  auto const words = reduction.partial().bytes() / pairs.size();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto const &x = *pairs[i].first, &y = *pairs[i].second;
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
  require_one_message(pairs);
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

Scalar update_and_norm2(Scalar const& alpha, Vector const& p, Vector const& q, Vector& x, Vector& r) {
  static Event const e("VecUpdateNorm");
  VectorScope const scope(e, x, 6, 6);
  require_same(p, x, "update_and_norm2");
  require_same(q, r, "update_and_norm2");
  require_same(x, r, "update_and_norm2");
  if (reproducible()) {
    axpy(alpha, p, x);
    axpy(-alpha, q, r);
    return real_part(dot(r, r));
  }
  Reduction reduction(x.comm(), x.queue(), x.columns());
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(x.queue(), kernel::update_and_norm2<T>, x.local_size(), x.columns(), value<T>(alpha, x.columns()), read<T>(p.data()),
           read<T>(q.data()), update<T>(x.data()), update<T>(r.data()), write<Sum>(reduction.partial()));
  });
  reduction.begin();
  reduction.end();
  return real_part(reduction.result(0, x.columns()));
}

Scalar multiply_and_dot(Vector const& d, Vector const& r, Vector& z) {
  static Event const e("VecPointwiseMultDot");
  VectorScope const scope(e, r, 3, 3);
  require_same(r, z, "multiply_and_dot");
  require_diagonal(d, r, "multiply_and_dot");
  if (reproducible()) {
    multiply(d, r, z);
    return dot(r, z);
  }
  Reduction reduction(r.comm(), r.queue(), r.columns());
  with_dtype(r.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    submit(r.queue(), kernel::multiply_and_dot<T>, r.local_size(), r.columns(), read<T>(d.data()), read<T>(r.data()), write<T>(z.data()),
           write<Sum>(reduction.partial()));
  });
  reduction.begin();
  reduction.end();
  return reduction.result(0, r.columns());
}

namespace {
void require_other_precision(Vector const& x, Vector const& y, char const* what) {
  ASTERISM_REQUIRE(x.local_size() == y.local_size() && x.columns() == y.columns(), shape, "{}: local shapes ({}, {}) and ({}, {}) differ.",
                   what, x.local_size(), x.columns(), y.local_size(), y.columns());
  auto const other = with_precision_of(x.dtype(), real_of(x.dtype()) == Dtype::float32 ? Dtype::float64 : Dtype::float32);
  ASTERISM_REQUIRE(y.dtype() == other, dtype, "{}: {} is not the other precision of {}.", what, name_of(y.dtype()), name_of(x.dtype()));
}
}  // namespace

Scalar mixed_update_and_norm2(Scalar const& alpha, Vector const& p, Vector const& q, Vector& x, Vector& r, Vector& s) {
  require_other_precision(r, s, "mixed_update_and_norm2");
  if (reproducible()) {
    auto const out = update_and_norm2(alpha, p, q, x, r);
    copy(r, s);
    return out;
  }
  static Event const e("VecUpdateNorm");
  VectorScope const scope(e, x, 6.5, 6);
  require_same(p, x, "mixed_update_and_norm2");
  require_same(q, r, "mixed_update_and_norm2");
  require_same(x, r, "mixed_update_and_norm2");
  Reduction reduction(x.comm(), x.queue(), x.columns());
  with_dtype(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using S = other_precision<T>;
    submit(x.queue(), kernel::mixed_update_and_norm2<S, T>, x.local_size(), x.columns(), value<T>(alpha, x.columns()), read<T>(p.data()),
           read<T>(q.data()), update<T>(x.data()), update<T>(r.data()), write<S>(s.data()), write<Sum>(reduction.partial()));
  });
  reduction.begin();
  reduction.end();
  return real_part(reduction.result(0, x.columns()));
}

void mixed_aypx(Scalar const& b, Vector const& x, Vector& y) {
  require_other_precision(y, x, "mixed_aypx");
  static Event const e("VecAXPBY");
  VectorScope const scope(e, y, 2.5, 3);
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using S = other_precision<T>;
    submit(y.queue(), kernel::mixed_aypx<S, T>, y.local_size(), y.columns(), value<T>(b, y.columns()), read<S>(x.data()),
           update<T>(y.data()));
  });
}

Basis::Basis(Vector const& like, std::int64_t m)
    : like_(like),
      stride_(like.local_size() * std::int64_t(size_of(like.dtype()))),
      data_(std::size_t(checked_product(m, stride_, "Krylov basis"))) {
  ASTERISM_REQUIRE(like.columns() == 1, unsupported, "a Krylov basis holds single-column vectors, not {} columns.", like.columns());
  data_.discard(like.queue());
}

Vector Basis::operator[](std::int64_t j) const {
  return Vector::wrap(like_.space(), like_.dtype(), 1, data_.view(std::size_t(j * stride_), std::size_t(stride_)), like_.queue());
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

}  // namespace asterism::la
