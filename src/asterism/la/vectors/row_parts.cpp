#include "asterism/la/vectors/row_parts.hpp"

#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/la/vectors/row_parts.kernels.hpp"
#include "asterism/la/vectors/vector_scope.hpp"

namespace asterism::la {
namespace {

/// submit_one(i, x, reduction's place) for each of the x; then their sums over all ranks.
template <class R, class F>
std::vector<Scalar> sums_of_parts(RowParts const& parts, std::span<Vector const> xs, Vector const& y, F const& submit_one) {
  R reduction(y.comm(), y.queue(), parts.count * std::int64_t(xs.size()));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    require_same(xs[i], y, "part_dots");
    submit_one(std::int64_t(i), xs[i], reduction.partial());
  }
  reduction.begin();
  reduction.end();
  std::vector<Scalar> out;
  for (std::size_t i = 0; i < xs.size(); ++i) out.push_back(reduction.result(std::int64_t(i) * parts.count, parts.count));
  return out;
}

}  // namespace

std::vector<Scalar> part_dots(RowParts const& parts, std::span<Vector const> xs, Vector const& y) {
  static Event const e("VecDotParts");
  VectorScope const scope(e, y, 2 * double(xs.size()), 2 * double(xs.size()));
  auto const n = y.local_size(), m = parts.count;
  return comm::collective(y.comm(), "dot", [&] {
    if (reproducible())
      return sums_of_parts<comm::ReproducibleReduction>(parts, xs, y, [&](std::int64_t i, Vector const& x, Array const& partial) {
        auto const bytes = partial.bytes() / xs.size();
        with_dtype(x.dtype(), [&](auto tag) {
          using T = typename decltype(tag)::type;
          device::submit(y.queue(), kernel::reproducible_part_dot<T>, n, m, device::read<std::int32_t>(parts.of), device::read<T>(x.data()),
                         device::read<T>(y.data()), device::update<std::int64_t>(partial.view(std::size_t(i) * bytes, bytes)));
        });
      });
    return sums_of_parts<comm::Reduction>(parts, xs, y, [&](std::int64_t i, Vector const& x, Array const& partial) {
      with_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        device::submit(y.queue(), kernel::part_dot<T>, n, m, device::read<std::int32_t>(parts.of), device::read<T>(x.data()),
                       device::read<T>(y.data()), device::update<kernel::Sum>(partial), i * m);
      });
    });
  });
}

void part_axpy(RowParts const& parts, Scalar const& a, Vector const& x, Vector& y) {
  static Event const e("VecAXPYParts");
  VectorScope const scope(e, y, 3, 2);
  require_same(x, y, "part_axpy");
  with_dtype(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit(y.queue(), kernel::part_axpy<T>, y.local_size(), device::value<T>(a, parts.count), device::read<std::int32_t>(parts.of),
                   device::read<T>(x.data()), device::update<T>(y.data()));
  });
}

}  // namespace asterism::la
