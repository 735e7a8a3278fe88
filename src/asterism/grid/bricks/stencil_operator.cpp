#include "asterism/grid/bricks/stencil_operator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "asterism/comm/communicator/failures.hpp"
#include "asterism/grid/bricks/brick_transfer.hpp"

namespace asterism::grid {
namespace {

using i64 = std::int64_t;
using device::Array;
using la::Vector;

bool is_aligned(Vector const& v) { return reinterpret_cast<std::uintptr_t>(v.data().raw()) % 64 == 0; }

}  // namespace

StencilOperator::StencilOperator(BrickDomain const& domain, Dtype dtype, StencilKernel product, std::vector<Vector> const& coefficients,
                                 std::string name)
    : s_(std::make_shared<StencilState>()) {
  s_->domain = domain, s_->dtype = dtype, s_->name = std::move(name);
  s_->zeros = Array(std::size_t(domain.points_of_brick()) * size_of(dtype));
  std::memset(s_->zeros.raw(), 0, s_->zeros.bytes());
  comm::agree(domain.space().comm(), [&] {
    for (auto const& c : coefficients) la::require_layout(c, domain.space(), dtype, "coefficients of a stencil");
  });
  for (auto const& given : coefficients) {
    Vector c(domain.space(), dtype);
    copy(given, c);
    if (c.has_ghosts()) {
      auto const ghosts = c.ghosts();
      ghosts.settle(device::Access::write, "coefficients of a stencil");
      std::memset(ghosts.raw(), 0, ghosts.bytes());
      domain.space().ghost_forest().bcast_begin(c.queue(), dtype, 1, c.data(), ghosts).end();
      ghosts.settle(device::Access::read, "coefficients of a stencil");
    }
    s_->coefficients.push_back(std::move(c));
  }
  add(StencilForm::product, std::move(product));
}

void StencilOperator::check(StencilKernel const& kernel) const {
  for (int const g : kernel.grids)
    ASTERISM_REQUIRE(kernel.function && g >= StencilKernel::w && g < int(s_->coefficients.size()), internal,
                     "a kernel has the grid {} where there are {} coefficients", g, s_->coefficients.size());
}

void StencilOperator::add(StencilForm form, StencilKernel kernel) {
  check(kernel);
  s_->add(form, std::move(kernel));
}

void StencilOperator::set_maker(std::function<std::vector<StencilKernel>(std::vector<StencilForm> const&)> make,
                                std::vector<int> const& reach, bool transposes) {
  ASTERISM_REQUIRE(reach.size() == std::size_t(s_->domain.dimensions()), internal, "a stencil reads along {} axes, not {}.",
                   s_->domain.dimensions(), reach.size());
  make_kernels_ = std::move(make);
  makes_transpose_ = transposes;
  for (std::size_t d = 0; d < reach.size(); ++d) s_->reach[3 - reach.size() + d] = reach[d];
}

void StencilOperator::need(std::vector<StencilForm> forms) const {
  std::erase_if(forms, [this](StencilForm form) { return has(form); });
  if (forms.empty()) return;
  auto made = make_kernels_(forms);
  ASTERISM_REQUIRE(made.size() == forms.size(), internal, "{} kernels were made of a stencil, not {}", made.size(), forms.size());
  for (auto const& kernel : made) check(kernel);
  for (std::size_t n = 0; n < forms.size(); ++n) s_->add(forms[n], std::move(made[n]));
}

std::optional<la::Operator::Coarse> StencilOperator::coarse(la::CoarseRule const& rule) const {
  auto made = make_coarse_ ? make_coarse_(rule) : std::nullopt;
  if (made && make_kernels_) s_->own_residual = true;
  if (made)
    if (auto const transfer = std::dynamic_pointer_cast<BrickTransfer const>(made->P))
      made->higher = [transfer] { return transfer->by_cubics(); };
  return made;
}

std::vector<Vector> StencilOperator::colours() const {
  auto const& domain = s_->domain;
  return colour_vectors(range(), dtype(), colour_count(domain.shape(), domain.periodic(), colouring_), colouring_, [&](auto const& f) {
    domain.each_row([&, low = domain.owned().low](Triple const& point, i64 place, i64 points) {
      for (i64 k = 0; k < points; ++k) f(place + k, Triple{low[0] + point[0], low[1] + point[1], low[2] + point[2] + k});
    });
  });
}

void StencilOperator::set_diagonal(Vector d, std::optional<double> bound) {
  la::require_layout(d, range(), dtype(), "diagonal of a stencil");
  with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* const values = d.host<T>().data();
    for (auto const& [first, count] : range().padding()) std::fill_n(values + first, count, T(1));
  });
  diagonal_ = std::move(d);
  bound_ = bound;
}

void StencilOperator::set_diagonal(Vector d, Vector const& row_sums) {
  la::require_layout(row_sums, range(), dtype(), "sums of a stencil's rows");
  auto const entries = look_at_entries(row_sums);
  ASTERISM_REQUIRE_ALIKE(entries.not_finite == 0, value,
                         "coefficients of the stencil at {} points are not finite in {}; the first is {}. Look for a division by zero or "
                         "an overflow.",
                         entries.not_finite, name_of(dtype()), range().entry_name(entries.first_not_finite));
  set_diagonal(std::move(d), std::nullopt);
  double most = 0;
  with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::mutex mutex;
    device::Executor executor;
    device::parallel_ranges(executor, range().local_size(),
                            [&, values = diagonal_.host<T>().data(), sums = row_sums.host<T>().data()](i64 begin, i64 end) {
                              double here = 0;
                              for (i64 i = begin; i < end; ++i) {
                                double const ratio = double(real(sums[i])) / double(magnitude(values[i]));
                                here = ratio < INFINITY ? std::max(here, ratio) : INFINITY;  // a diagonal of zero, and NaN
                              }
                              std::lock_guard const lock(mutex);
                              most = std::max(most, here);
                            });
  });
  most = range().comm().max(most);
  if (most < INFINITY) bound_ = most;
}

std::array<std::array<bool, 2>, 3> StencilOperator::zero_beyond() const {
  auto const& domain = s_->domain;
  auto const box = domain.owned();
  auto const size = box.sizes();
  Vector x(range(), dtype()), sums(range(), dtype()), inner(range(), dtype());
  auto const set_to_ones = [&] {
    fill(x, 1.0);
    clear_padding(x);
  };
  set_to_ones();
  apply(x, sums);
  std::array<i64, 12> counts{};  // of the points of each end, and of those that couple to what is beyond
  auto const look_at = [&](std::size_t a, std::size_t side) {
    auto const each = [&](auto const& f) {
      if (box.points() == 0 || (side == 0 ? box.low[a] != 0 : box.high[a] != domain.shape()[a])) return;
      Triple from{}, to = size;
      (side == 0 ? to[a] : from[a]) = side == 0 ? 1 : size[a] - 1;
      for (i64 i = from[0]; i < to[0]; ++i)
        for (i64 j = from[1]; j < to[1]; ++j)
          for (i64 k = from[2]; k < to[2]; ++k) f(domain.place({i, j, k}));
    };
    with_dtype(dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      set_to_ones();
      each([to = x.host<T>().data()](i64 at) { to[at] = T(0); });
      apply(x, inner);  // of rows at this end, what couples them to points within
      auto const *const all = sums.host<T>().data(), *const within = inner.host<T>().data();
      auto const* const diagonal = diagonal_ ? diagonal_.host<T>().data() : nullptr;
      each([&, n = counts.data() + 2 * (2 * a + side)](i64 at) {
        double const rounding = 16 * epsilon_of(dtype()) * (diagonal ? double(magnitude(diagonal[at])) : 1.0);
        n[0] += 1;
        n[1] += double(magnitude(all[at])) > 0.25 * double(magnitude(within[at])) + rounding;
      });
    });
  };
  for (auto a = std::size_t(3 - domain.dimensions()); a < 3; ++a)
    if (!domain.periodic()[a] && domain.shape()[a] > 1)
      for (std::size_t const side : {0, 1}) look_at(a, side);
  range().comm().sum(std::span<i64>(counts));
  std::array<std::array<bool, 2>, 3> out{};
  for (std::size_t e = 0; e < 6; ++e) out[e / 2][e % 2] = 2 * counts[2 * e + 1] > counts[2 * e];
  return out;
}

Vector StencilOperator::diagonal() const {
  if (!diagonal_) return Operator::diagonal();
  auto d = diagonal_.like();
  copy(diagonal_, d);
  return d;
}

void StencilOperator::run(StencilForm form, Vector const& x, Vector& y, Vector const* b, Vector const* w) const {
  constexpr char const* what = "product of a stencil";
  comm::collective(range().comm(), what, [&] {
    for (auto const* const v : {&x, static_cast<Vector const*>(&y), b})
      if (v) {
        la::require_layout(*v, range(), dtype(), what);
        ASTERISM_REQUIRE(v->columns() == x.columns(), shape, "{}: x has {} columns, y or b has {}.", what, x.columns(), v->columns());
      }
    if (w) {
      la::require_layout(*w, range(), dtype(), what);
      ASTERISM_REQUIRE(w->columns() == 1, shape, "{}: weights have one column, not {}.", what, w->columns());
    }
    la::require_distinct(what, "x", x, "y", y);
    if (b) la::require_distinct(what, "b", *b, "the result", y);
    if (w) la::require_distinct(what, "w", *w, "the result", y);
    auto const& queue = y.queue();
    auto const aligned = [&](Vector const& v) {
      if (is_aligned(v)) return v;
      Vector copied(range(), dtype(), 1, queue);
      copy(v, copied);
      return copied;
    };
    // whether an address is aligned is each rank's own affair: what follows are the same messages
    for (i64 j = 0; j < x.columns(); ++j) {
      bool const one = x.columns() == 1;
      auto const column = [&](Vector const& v) { return aligned(one || v.columns() == 1 ? v : column_of(v, j)); };
      bool const in_place = one && is_aligned(y);
      Vector result = in_place ? y : Vector(range(), dtype(), 1, queue);
      Vector const of_b = b ? column(*b) : Vector(), of_w = w ? column(*w) : Vector();
      Vector const of_x = column(x);
      run_form(s_, form, &of_x, result, b ? &of_b : nullptr, w ? &of_w : nullptr, {1.0});
      if (in_place) continue;
      if (one) copy(result, y);
      else set_column(result, j, y);
    }
  });
}

void StencilOperator::apply(Vector const& x, Vector& y) const { run(StencilForm::product, x, y, nullptr, nullptr); }

void StencilOperator::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  if (makes_transpose_) need({StencilForm::transposed});
  if (!has(StencilForm::transposed)) return Operator::apply_transpose(x, y, conjugate);
  if (!conjugate || !is_complex(dtype()) || x.columns() == 0) return run(StencilForm::transposed, x, y, nullptr, nullptr);
  auto conjugated = x.like();
  la::conjugate(x, conjugated);
  run(StencilForm::transposed, conjugated, y, nullptr, nullptr);
  la::conjugate(y, y);
}

void StencilOperator::residual(Vector const& b, Vector const& x, Vector& r) const {
  if (s_->own_residual) need({StencilForm::residual});
  if (!has(StencilForm::residual)) return Operator::residual(b, x, r);
  run(StencilForm::residual, x, r, &b, nullptr);
}

void StencilOperator::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  if (!has(StencilForm::smooth)) return Operator::smooth(b, x, w, y);
  run(StencilForm::smooth, x, y, &b, &w);
}

}  // namespace asterism::grid
