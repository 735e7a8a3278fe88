// Products of a matrix, and what rides on them.

#include <algorithm>
#include <mutex>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/failures.hpp"
#include "asterism/la/matrix_data.hpp"

namespace asterism::la {

namespace {

/// Both blocks as one; its columns are ghosts and own columns together, ascending.
Csr merged(Csr const& diagonal, Csr const& coupling, std::int32_t below) {
  Csr out(diagonal.dtype, diagonal.rows, checked_local_index(std::int64_t(diagonal.cols) + coupling.cols, "columns of one rank"),
          diagonal.nnz() + coupling.nnz());
  out.bfloat16 = diagonal.bfloat16;
  with_dtype(diagonal.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const dp = diagonal.row_offsets(), op = coupling.row_offsets(), ptr = out.row_offsets();
    auto const dc = diagonal.column_indices(), oc = coupling.column_indices();
    auto const dv = diagonal.template entries<T>(), ov = coupling.template entries<T>();
    auto* col = out.columns.as<std::int32_t>();
    auto* val = out.values.as<T>();
    std::int64_t at = 0;
    ptr[0] = 0;
    for (std::size_t r = 0; r < std::size_t(diagonal.rows); ++r) {
      auto q = op[r];
      for (; q < op[r + 1] && oc[std::size_t(q)] < below; ++q) col[at] = oc[std::size_t(q)], val[at++] = ov[std::size_t(q)];
      for (auto p = dp[r]; p < dp[r + 1]; ++p) col[at] = dc[std::size_t(p)] + below, val[at++] = dv[std::size_t(p)];
      for (; q < op[r + 1]; ++q) col[at] = oc[std::size_t(q)] + diagonal.cols, val[at++] = ov[std::size_t(q)];
      ptr[r + 1] = at;
    }
  });
  return out;
}

}  // namespace

SparseFormat const* Matrix::Data::ordered_for(Epilogue e) {
  bool const adds = e == Epilogue::add;
  auto& p = adds ? ordered_adding : ordered;
  if (!p && product_only) return nullptr;
  auto const& made = p.made_by([&] {
    auto const whole_rows = ghosts.empty() ? block() : merged(block(), coupling, std::int32_t(ghosts_below(columns, ghosts)));
    return std::make_shared<CsrFormat const>(whole_rows, adds ? Writes::rows_with_entries : Writes::all_rows);
  });
  return made.get();
}

void Matrix::require_operands(Epilogue e, Vector const& x, Vector const& y, Vector const* of_b, Vector const* of_w) const {
  auto& d = *data_;
  require_layout(x, d.columns, d.dtype, "matrix product");
  require_layout(y, d.rows, d.dtype, "matrix product");
  ASTERISM_REQUIRE(x.columns() == y.columns(), shape, "matrix product: x has {} columns, y has {}.", x.columns(), y.columns());
  // formats may compute a row twice
  require_distinct("matrix product", "x", x, "y", y);
  if (of_b) require_distinct("matrix product", "b", *of_b, e == Epilogue::residual ? "r" : "y", y);
  if (of_w) require_distinct("matrix product", "w", *of_w, "y", y);
}

void Matrix::product(char const* name, Epilogue whole, Epilogue rest, Vector const& x, Vector& y, Vector const* of_b,
                     Vector const* of_w) const {
  if (comm().size() == 1) return product_here(name, whole, rest, x, y, of_b, of_w);
  comm::collective(comm(), name, [&] { product_here(name, whole, rest, x, y, of_b, of_w); });
}

void Matrix::product_here(char const* name, Epilogue whole, Epilogue rest, Vector const& x, Vector& y, Vector const* of_b,
                          Vector const* of_w) const {
  auto& d = *data_;
  require_operands(whole, x, y, of_b, of_w);
  auto const b = of_b ? of_b->data() : Array(), w = of_w ? of_w->data() : Array();
  auto const k = x.columns();
  if (reproducible() || !d.has_plain(whole))
    if (auto const* const ordered = d.ordered_for(whole)) return ordered_product(*ordered, name, whole, x, y, b);
  auto const& product = whole == Epilogue::add ? d.adding() : d.whole();
  double const scalar = double(size_of(d.dtype));
  profile::Scope const scope(profile::event(name),
                             product.bytes(k) + double(d.coupling.nnz()) * (scalar + 4) + (b ? scalar * double(k * y.local_size()) : 0) +
                                 (w ? scalar * double(y.local_size()) : 0),
                             2 * double(d.local_nnz * k) * (is_complex(d.dtype) ? 4 : 1));
  auto const& queue = y.queue();
  auto const run_whole = [&] { product.run(queue, whole, k, x.data(), y.data(), b, w); };
  if (comm().size() == 1) return run_whole();
  // my columns are multiplied while the others' values travel
  auto const ghost = Array::fresh(queue, d.ghosts.size() * std::size_t(k) * size_of(d.dtype));
  auto flight = d.halo.bcast_begin(queue, d.dtype, k, x.data(), ghost);
  run_whole();
  flight.end();
  if (!d.ghosts.empty()) d.rest().run(queue, rest, k, ghost, y.data(), b, w);
}

/// Each row is one sum over ascending global columns, whatever the ranks are. Nothing is overlapped: all of x is needed first.
void Matrix::ordered_product(SparseFormat const& product, char const* name, Epilogue e, Vector const& x, Vector& y, Array const& b) const {
  auto& d = *data_;
  auto const k = x.columns();
  profile::Scope const scope(profile::event(name), product.bytes(k), 2 * double(d.local_nnz * k) * (is_complex(d.dtype) ? 4 : 1));
  auto const& queue = y.queue();
  if (comm().size() == 1) return product.run(queue, e, k, x.data(), y.data(), b);
  auto const row = std::size_t(k) * size_of(d.dtype);
  auto const ghost = Array::fresh(queue, d.ghosts.size() * row),
             all = Array::fresh(queue, (d.ghosts.size() + std::size_t(x.local_size())) * row);
  d.halo.bcast_begin(queue, d.dtype, k, x.data(), ghost).end();
  with_dtype(d.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit_on_host(
        queue,
        [own = x.local_size() * k, below = std::int64_t(ghosts_below(d.columns, d.ghosts)) * k, ghosts = std::int64_t(d.ghosts.size()) * k](
            device::Executor&, T const* from, T const* arrived, T* to) {
          std::copy_n(arrived, below, to);
          std::copy_n(from, own, to + below);
          std::copy_n(arrived + below, ghosts - below, to + below + own);
        },
        device::read<T>(x.data()), device::read<T>(ghost), device::write<T>(all));
  });
  product.run(queue, e, k, all, y.data(), b);
}

void Matrix::apply(Vector const& x, Vector& y) const { product("MatMult", Epilogue::assign, Epilogue::add, x, y); }

/// In one pass on one rank, where the format can.
std::optional<Scalar> Matrix::product_and_dot(char const* name, Epilogue e, Vector const& x, Vector& y, Vector const* of_b,
                                              Vector const* of_w) const {
  auto& d = *data_;
  auto const& queue = y.queue();
  if (comm().size() > 1 || x.columns() != 1 || reproducible() || queue.memory() == device::Memory::gpu || !d.has_plain(e)) return {};
  require_operands(e, x, y, of_b, of_w);
  auto const& product = d.whole();
  if (!product.dots()) return {};
  auto const b = of_b ? of_b->data() : Array(), w = of_w ? of_w->data() : Array();
  profile::Scope const scope(profile::event(name), product.bytes(1) + double(b.bytes() + w.bytes()),
                             2 * double(d.local_nnz + x.local_size()));
  comm::Reduction sum(comm(), queue, 1);
  product.run_and_dot(queue, e, x.data(), y.data(), sum.partial(), b, w);
  sum.begin();
  sum.end();
  return sum.result(0, 1);
}

Scalar Matrix::apply_and_dot(Vector const& x, Vector& y) const {
  auto const sum = product_and_dot("MatMult", Epilogue::assign, x, y);
  return sum ? *sum : Operator::apply_and_dot(x, y);
}

Scalar Matrix::smooth_and_dot(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  auto const sum = product_and_dot("MatSmooth", Epilogue::smooth, x, y, &b, &w);
  return sum ? *sum : Operator::smooth_and_dot(b, x, w, y);
}

void Matrix::apply_add(Vector const& x, Vector& y) const { product("MatMultAdd", Epilogue::add, Epilogue::add, x, y); }

void Matrix::residual(Vector const& b, Vector const& x, Vector& r) const {
  require_layout(b, range(), dtype(), "residual");
  product("MatResidual", Epilogue::residual, Epilogue::subtract, x, r, &b);
}

void Matrix::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  if (reproducible() || !data_->has_plain(Epilogue::smooth)) return Operator::smooth(b, x, w, y);
  product("MatSmooth", Epilogue::smooth, Epilogue::subtract_scaled, x, y, &b, &w);
}

}  // namespace asterism::la
