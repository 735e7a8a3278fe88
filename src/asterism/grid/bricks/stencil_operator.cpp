#include "asterism/grid/bricks/stencil_operator.hpp"

#include <cstring>
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
  s_->kernels[form] = std::move(kernel);
}

void StencilOperator::set_maker(std::function<StencilKernel(StencilForm)> make, std::vector<int> const& reach, bool transposes) {
  ASTERISM_REQUIRE(reach.size() == std::size_t(s_->domain.dimensions()), internal, "a stencil reads along {} axes, not {}.",
                   s_->domain.dimensions(), reach.size());
  make_kernel_ = std::move(make);
  makes_transpose_ = transposes;
  for (std::size_t d = 0; d < reach.size(); ++d) s_->reach[3 - reach.size() + d] = reach[d];
}

void StencilOperator::need(StencilForm form) const {
  if (has(form)) return;
  auto kernel = make_kernel_(form);
  check(kernel);
  s_->kernels[form] = std::move(kernel);
}

std::optional<la::Operator::Coarse> StencilOperator::coarse(la::CoarseRule const& rule) const {
  auto made = make_coarse_ ? make_coarse_(rule) : std::nullopt;
  if (made && make_kernel_) need(StencilForm::residual);
  if (made)
    if (auto const transfer = std::dynamic_pointer_cast<BrickTransfer const>(made->P))
      made->higher = [transfer] { return transfer->by_cubics(); };
  return made;
}

std::vector<Vector> StencilOperator::colours() const {
  auto const& domain = s_->domain;
  auto numbers = colour_numbers(domain.owned(), colouring_);
  for (auto& n : numbers) ++n;  // padding becomes 0
  std::vector<int> in_bricks(std::size_t(range().local_size()));
  domain.to_bricks(numbers.data(), in_bricks.data(), sizeof(int));
  for (auto& n : in_bricks) --n;
  return colour_vectors(range(), dtype(), in_bricks, colour_count(domain.shape(), domain.periodic(), colouring_));
}

void StencilOperator::set_diagonal(Vector d, std::optional<double> eigenvalue_bound) {
  la::require_layout(d, range(), dtype(), "diagonal of a stencil");
  diagonal_ = std::move(d);
  bound_ = eigenvalue_bound;
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
    ASTERISM_REQUIRE(x.data().raw() != y.data().raw() || y.local_size() == 0, value, "{}: x and y are the same vector; they must differ.",
                     what);
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
  if (makes_transpose_) need(StencilForm::transposed);
  if (!has(StencilForm::transposed)) return Operator::apply_transpose(x, y, conjugate);
  if (!conjugate || !is_complex(dtype())) return run(StencilForm::transposed, x, y, nullptr, nullptr);
  auto conjugated = x.like();
  la::conjugate(x, conjugated);
  run(StencilForm::transposed, conjugated, y, nullptr, nullptr);
  la::conjugate(y, y);
}

void StencilOperator::residual(Vector const& b, Vector const& x, Vector& r) const {
  if (!has(StencilForm::residual)) return Operator::residual(b, x, r);
  run(StencilForm::residual, x, r, &b, nullptr);
}

void StencilOperator::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  if (!has(StencilForm::smooth)) return Operator::smooth(b, x, w, y);
  run(StencilForm::smooth, x, y, &b, &w);
}

}  // namespace asterism::grid
