#include "asterism/direct/triangular/gpu/gpu_factors.hpp"

#include <cstring>
#include <span>

#include "asterism/comm/communicator/failures.hpp"
#include "asterism/direct/at.hpp"
#include "asterism/direct/triangular/front_triangle.hpp"
#include "asterism/direct/triangular/gpu/gpu_factors.kernels.hpp"

namespace asterism::direct {
namespace {

/// Columns of a supernode of fronts at most: one block of threads multiplies by the inverse of its diagonal block.
constexpr std::int32_t widest = 64;

/// The fronts' supernodes, and those of the top after them.
std::shared_ptr<BlockPattern const> pattern_of(GpuFactorsSource const& s, FrontPart part, std::int32_t& own) {
  auto nodes = front_supernodes(s.fronts, part, widest, s.place_of_rows);
  own = nodes.count();
  if (s.top) {
    auto const first = nodes.starts.back();
    auto const& top = s.top->nodes();
    for (std::int32_t k = 0; k < top.count(); ++k) {
      nodes.starts.push_back(first + top.starts[at(k) + 1]);
      for (auto const r : top.rows(k)) nodes.row_indices.push_back(first + r);
      nodes.row_offsets.push_back(std::int64_t(nodes.row_indices.size()));
      nodes.parent.push_back(-1);
    }
  }
  return std::make_shared<BlockPattern const>(std::make_shared<Supernodes const>(std::move(nodes)));
}

/// The rank's blocks of the top, after its own supernodes.
void take_top(LocalTriangle const& top, std::int32_t own, LocalTriangle& to) {
  auto const size = std::int64_t(size_of(to.dtype()));
  for (std::int32_t k = 0; k < top.pattern().count(); ++k) {
    auto const w = std::int64_t(top.pattern().nodes().width(k));
    if (top.owns_diagonal(k)) {
      std::memcpy(to.diagonal(own + k), top.diagonal(k), at(w * w * size));
      if (auto const* const order = top.order(k)) to.exchange_rows(own + k, std::span(order, at(w)));
    }
    if (auto const bytes = w * top.panel_rows(k) * size; bytes > 0) std::memcpy(to.panel(own + k), top.panel(k), at(bytes));
  }
}

std::shared_ptr<LocalTriangle const> triangle_of(comm::Communicator const& comm, Dtype dtype, GpuFactorsSource const& s, FrontPart part) {
  std::int32_t own = 0;
  auto const pattern = pattern_of(s, part, own);
  auto const grid = s.lower ? s.lower->grid() : ProcessGrid{1, comm.size()};
  auto out = std::make_shared<LocalTriangle>(pattern, grid, comm.rank(), dtype, own);
  take_fronts(s.fronts, part, widest, s.place_of_rows, *out);
  if (auto const* const top = part == FrontPart::upper ? s.upper : s.lower) take_top(*top, own, *out);
  return out;
}

}  // namespace

GpuFactors::GpuFactors(comm::Communicator const& comm, Dtype dtype, GpuFactorsSource const& s)
    : dtype_(dtype), kind_(s.fronts.kind), owned_(std::int64_t(s.places.rows.size())) {
  auto const solver = [&](FrontPart part) {
    std::shared_ptr<LocalTriangle const> triangle;
    comm::agree(comm, [&] { triangle = triangle_of(comm, dtype, s, part); });
    return std::make_unique<GpuTriangularSolver>(comm, std::vector{std::move(triangle)}, s.outside);
  };
  lower_ = solver(FrontPart::lower);
  if (kind_ == FactorKind::lu) upper_ = solver(FrontPart::upper);
  rows_ = device::Array::of(std::span(s.places.rows)), columns_ = device::Array::of(std::span(s.places.columns));
  row_scale_ = device::Array::of(std::span(s.places.row_scale)), column_scale_ = device::Array::of(std::span(s.places.column_scale));
  if (kind_ != FactorKind::hermitian) return;
  auto const size = size_of(dtype), of_fronts = s.fronts.row_order.size() * size;
  diagonal_ = device::Array(at(owned_) * size), below_ = device::Array(at(owned_) * size);
  if (of_fronts > 0) {
    std::memcpy(diagonal_.raw(), s.fronts.diagonal.raw(), of_fronts);
    std::memcpy(below_.raw(), s.fronts.lower.raw(), of_fronts);
  }
  auto first = of_fronts;
  for (std::int32_t k = 0; s.top && k < s.top->count(); ++k) {
    if (!s.lower->owns_diagonal(k)) continue;
    auto const bytes = std::size_t(s.top->nodes().width(k)) * size;
    auto const* const d = s.pivots.as<std::byte>() + 2 * (first - of_fronts);
    std::memcpy(diagonal_.as<std::byte>() + first, d, bytes);
    std::memcpy(below_.as<std::byte>() + first, d + bytes, bytes);
    first += bytes;
  }
}

void GpuFactors::submit(device::Queue const& queue, char trans, std::int64_t k, device::Array const& x, device::Array const& y) const {
  using device::read, device::write, device::update;
  if (k == 0) return;
  with_dtype(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bool const lu = kind_ == FactorKind::lu, transposed = trans != 'N';
    // of Hermitian kinds A^-H is A^-1, A^-T its conjugate, and L^-H w = conj(L^-T conj(w))
    bool const first_conjugated = lu ? trans == 'C' : trans == 'T', last_conjugated = lu ? trans == 'C' : trans != 'T';
    auto const& from = transposed ? columns_ : rows_;
    auto const& to = transposed ? rows_ : columns_;
    auto const& before = transposed ? column_scale_ : row_scale_;
    auto const& after = transposed ? row_scale_ : column_scale_;
    auto const w = device::Array::fresh(queue, at(owned_ * k) * sizeof(T));
    device::submit(queue, kernel::gather_scaled<T>, owned_, k, first_conjugated, read<std::int32_t>(from), read<double>(before), read<T>(x),
                   write<T>(w));
    (lu && transposed ? *upper_ : *lower_).submit(queue, 0, Sweep::forward, k, w);
    if (kind_ == FactorKind::hermitian)
      device::submit(queue, kernel::divide_and_conjugate<T>, owned_, k, read<T>(diagonal_), read<T>(below_), update<T>(w));
    else if (!lu && is_complex_v<T>) device::submit(queue, kernel::conjugate<T>, owned_ * k, update<T>(w));
    (lu && !transposed ? *upper_ : *lower_).submit(queue, 0, Sweep::backward, k, w);
    device::submit(queue, kernel::scatter_scaled<T>, owned_, k, last_conjugated, read<std::int32_t>(to), read<double>(after), read<T>(w),
                   write<T>(y));
  });
}

std::size_t GpuFactors::memory_bytes() const {
  auto out = lower_->memory_bytes() + (upper_ ? upper_->memory_bytes() : 0);
  for (auto const* const a : {&rows_, &columns_, &row_scale_, &column_scale_, &diagonal_, &below_}) out += a->bytes();
  return out;
}

}  // namespace asterism::direct
