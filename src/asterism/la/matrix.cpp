#include "asterism/la/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "asterism/base/log.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/matrix_data.hpp"

namespace asterism::la {

using comm::StarForest;

Matrix Matrix::from_blocks(Layout const& rows, Layout const& columns, Csr diagonal, Csr coupling, std::vector<std::int64_t> ghosts) {
  Matrix m;
  m.data_ = std::make_shared<Data>();
  auto& d = *m.data_;
  d.rows = rows;
  d.columns = columns;
  d.dtype = diagonal.dtype;
  d.local_nnz = diagonal.nnz() + coupling.nnz();
  d.diagonal = std::move(diagonal);
  d.coupling = std::move(coupling);
  d.ghosts = std::move(ghosts);
  auto halo = StarForest::from_layout(columns, d.ghosts);
  halo.set_name("halo of a matrix");
  d.halo = comm::QueuedForest(std::move(halo));
  d.global_nnz = rows.comm().sum(d.local_nnz);
  return m;
}

Space const& Matrix::range() const { return data_->rows; }
Space const& Matrix::domain() const { return data_->columns; }
Dtype Matrix::dtype() const { return data_->dtype; }
std::int64_t Matrix::local_nnz() const { return data_->local_nnz; }
std::int64_t Matrix::nnz() const { return data_->global_nnz; }
Csr const& Matrix::diagonal_block() const {
  ASTERISM_ASSERT(!data_->product_only);
  return data_->block();
}
Csr const& Matrix::coupling_block() const {
  ASTERISM_ASSERT(!data_->product_only);
  data_->settle();
  return data_->coupling;
}
std::vector<std::int64_t> const& Matrix::ghosts() const { return data_->ghosts; }
StarForest const& Matrix::halo() const { return data_->halo.forest(); }
void Matrix::prepare_halo_for_gpu() const { data_->halo.prepare_for_gpu(); }
double Matrix::product_bytes() const { return data_->any_product().bytes(); }
std::string_view Matrix::storage_name() const { return data_->any_product().name(); }

std::size_t Matrix::memory_bytes() const {
  std::size_t b = data_->ghosts.size() * 8 + (data_->half ? data_->half->memory_bytes() : 0);
  if (!data_->product_only)
    for (auto const* c : {&data_->diagonal, &data_->coupling}) b += c->offsets.bytes() + c->columns.bytes() + c->values.bytes();
  for (auto const* p : {&data_->diagonal_product, &data_->adding_product, &data_->ordered, &data_->ordered_adding})
    if (*p && (data_->product_only || !(**p)->shares_block())) b += (**p)->memory_bytes();
  return b;
}

std::string Matrix::describe() const {
  return format("{} x {} matrix, {} entries, {}, on {} rank(s)", global_rows(), global_cols(), nnz(), name_of(dtype()), comm().size());
}

Vector Matrix::diagonal() const {
  ASTERISM_REQUIRE(data_->rows.fits(data_->columns), shape, "diagonal: the matrix is {} x {} and not laid out as a square one.",
                   global_rows(), global_cols());
  Vector v(range(), dtype());
  if (data_->half) {
    with_dtype(dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::copy_n(data_->half->diagonal().template as<T>(), v.local_size(), v.host<T>().begin());
    });
    return v;
  }
  with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const& block = data_->block();
    auto const ptr = block.row_offsets();
    auto const col = block.column_indices();
    auto const val = block.template entries<T>();
    auto const out = v.host<T>();
    device::Executor executor;
    device::parallel_ranges(executor, block.rows, [=](std::int64_t begin, std::int64_t end) {
      EntryPlace place;
      for (auto r = std::size_t(begin); r < std::size_t(end); ++r) {
        auto const at = place(col.data(), ptr[r], ptr[r + 1], std::int32_t(r));
        out[r] = at >= 0 ? val[std::size_t(at)] : T(0);
      }
    });
  });
  return v;
}

double Matrix::largest_entry() const {
  auto const& d = *data_;
  d.settle();
  double largest = 0;
  auto const look = [&](Array const& values) {
    auto const count = std::int64_t(values.bytes() / size_of(d.dtype));
    auto const found = look_at_local_entries(Vector::wrap(Layout(comm::Communicator(), count), d.dtype, 1, values));
    largest = std::max(largest, found.largest[0]);
  };
  if (!d.half) look(d.diagonal.values);
  else
    for (auto const sum : d.half->absolute_row_sums()) largest = std::max(largest, sum);
  look(d.coupling.values);
  return comm().max(largest);
}

Matrix Matrix::scaled(int exponent, bool negated) const {
  auto const& d = *data_;
  data_->block();
  auto const times = [&](Array const& values) {
    Layout const alone(comm::Communicator(), std::int64_t(values.bytes() / size_of(d.dtype)));
    Vector out(alone, d.dtype);
    copy(Vector::wrap(alone, d.dtype, 1, values), out);
    scale_by_powers(out, std::span(&exponent, 1));
    if (negated) scale(-1.0, out);
    return out.data();
  };
  auto const m = with_block_values(dtype(), times(d.diagonal.values), times(d.coupling.values), device::Memory::host);
  return d.half ? m.symmetric(d.half->kind()) : m;
}

double Matrix::scaled_row_sum_norm(Vector const* s) const {
  double worst = 0;
  data_->settle();
  with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const sums = data_->half ? data_->half->absolute_row_sums() : std::vector<double>();
    auto const op = data_->coupling.row_offsets();
    auto const ov = data_->coupling.template entries<T>();
    for (std::size_t r = 0; r < std::size_t(range().local_size()); ++r) {
      double sum = data_->half ? sums[r] : 0;
      if (!data_->half) {
        auto const dp = data_->diagonal.row_offsets();
        for (auto p = dp[r]; p < dp[r + 1]; ++p) sum += double(magnitude(data_->diagonal.template entries<T>()[std::size_t(p)]));
      }
      for (auto p = op[r]; p < op[r + 1]; ++p) sum += double(magnitude(ov[std::size_t(p)]));
      worst = std::max(worst, s ? sum * double(magnitude(s->data().as<T>()[r])) : sum);
    }
  });
  return comm().max(worst);
}

double Matrix::frobenius_norm() const {
  double total = 0;
  for (auto const* const c : {&diagonal_block(), &coupling_block()})
    total = std::hypot(total, norm(Vector::wrap(Layout(comm(), c->nnz()), dtype(), 1, c->values)).real());
  return total;
}

GlobalRows Matrix::to_rows() const {
  auto const& d = *data_;
  ASTERISM_ASSERT(!d.product_only);
  data_->block();
  GlobalRows out;
  out.dtype = d.dtype;
  out.values = Array(std::size_t(d.local_nnz) * size_of(d.dtype));
  out.columns.resize(std::size_t(d.local_nnz));
  out.offsets.assign(std::size_t(d.diagonal.rows) + 1, 0);
  auto const c0 = d.columns.begin();
  with_dtype(d.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const dp = d.diagonal.row_offsets(), op = d.coupling.row_offsets();
    auto const dc = d.diagonal.column_indices(), oc = d.coupling.column_indices();
    auto const dv = d.diagonal.template entries<T>(), ov = d.coupling.template entries<T>();
    auto* v = out.values.as<T>();
    std::size_t at = 0;
    for (std::size_t r = 0; r < std::size_t(d.diagonal.rows); ++r) {
      auto p = std::size_t(dp[r]), q = std::size_t(op[r]);
      auto const pe = std::size_t(dp[r + 1]), qe = std::size_t(op[r + 1]);
      while (p < pe || q < qe) {
        auto const left = p < pe ? c0 + dc[p] : std::numeric_limits<std::int64_t>::max();
        auto const right = q < qe ? d.ghosts[std::size_t(oc[q])] : std::numeric_limits<std::int64_t>::max();
        if (left < right) out.columns[at] = left, v[at++] = dv[p++];
        else out.columns[at] = right, v[at++] = ov[q++];
      }
      out.offsets[r + 1] = std::int64_t(at);
    }
  });
  return out;
}

Matrix Matrix::converted(Dtype dtype) const {
  if (dtype == data_->dtype) return *this;
  Matrix m;
  m.data_ = data_->copy();
  m.data_->dtype = dtype;
  m.data_->half = nullptr;
  m.data_->values_at = device::Memory::host;
  m.data_->diagonal = la::converted(data_->block(), dtype);
  m.data_->coupling = la::converted(data_->coupling, dtype);
  static_cast<Products&>(*m.data_) = {};
  return m;
}

Matrix Matrix::rounded_to_bfloat16() const {
  Matrix m;
  m.data_ = data_->copy();
  m.data_->half = nullptr;
  m.data_->values_at = device::Memory::host;
  m.data_->diagonal = la::rounded_to_bfloat16(data_->block());
  m.data_->coupling = la::rounded_to_bfloat16(data_->coupling);
  static_cast<Products&>(*m.data_) = {};
  return m;
}

Matrix Matrix::with_values(Dtype dtype, std::int64_t count, void const* values) const {
  auto const& d = *data_;
  ASTERISM_ASSERT(!d.product_only);
  std::int64_t const type = std::int64_t(dtype), of_first = comm().min(type);
  comm::agree(comm(), [&] {
    ASTERISM_REQUIRE(count == d.local_nnz, shape, "with_values: {} values for {} entries of my rows.", count, d.local_nnz);
    ASTERISM_REQUIRE(type == of_first, dtype, "with_values: the values of this rank are {}, and {} on another.", name_of(dtype),
                     name_of(Dtype(of_first)));
  });
  data_->make_rows();
  Array const diagonal(std::size_t(d.diagonal.nnz()) * size_of(dtype)), coupling(std::size_t(d.coupling.nnz()) * size_of(dtype));
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const* const all = static_cast<T const*>(values);
    auto *const dv = diagonal.as<T>(), *const ov = coupling.as<T>();
    auto const dp = d.diagonal.row_offsets(), op = d.coupling.row_offsets();
    auto const oc = d.coupling.column_indices();
    auto const below = std::int32_t(ghosts_below(d.columns, d.ghosts));
    device::Executor executor;
    device::parallel_for(executor, d.diagonal.rows, [=](std::int64_t row) {
      auto const r = std::size_t(row);
      auto const* from = all + dp[r] + op[r];
      auto q = op[r];
      for (; q < op[r + 1] && oc[std::size_t(q)] < below; ++q) ov[q] = *from++;
      std::copy_n(from, dp[r + 1] - dp[r], dv + dp[r]);
      from += dp[r + 1] - dp[r];
      std::copy_n(from, op[r + 1] - q, ov + q);
    });
  });
  auto const m = with_block_values(dtype, diagonal, coupling, device::Memory::host);
  return d.half ? m.symmetric(d.half->kind()) : m;
}

Matrix Matrix::with_block_values(Dtype dtype, Array const& diagonal, Array const& coupling, device::Memory made_at) const {
  Matrix m;
  m.data_ = data_->copy();
  auto& d = *m.data_;
  static_cast<Products&>(d) = {};
  d.half = nullptr;
  d.dtype = d.diagonal.dtype = d.coupling.dtype = dtype;
  d.diagonal.bfloat16 = d.coupling.bfloat16 = false;
  d.diagonal.values = diagonal;
  d.coupling.values = coupling;
  d.values_at = made_at;
  return m;
}

std::pair<Array, Array> Matrix::block_values() const { return {data_->diagonal.values, data_->coupling.values}; }

bool Matrix::shares_pattern_with(Matrix const& other) const {
  auto const &a = *data_, &b = *other.data_;
  return !a.product_only && a.diagonal.columns && a.diagonal.columns.buffer() == b.diagonal.columns.buffer() &&
         a.coupling.columns.buffer() == b.coupling.columns.buffer();
}

Matrix Matrix::symmetric(SymmetricHalf::Kind kind) const {
  ASTERISM_ASSERT(!data_->product_only);
  if (data_->half && data_->half->kind() == kind) return *this;
  data_->settle();
  Matrix m;
  m.data_ = data_->copy();
  static_cast<Products&>(*m.data_) = {};
  m.data_->values_at = device::Memory::host;
  comm::agree(comm(), [&] {
    ASTERISM_REQUIRE(data_->rows.fits(data_->columns), shape, "symmetric storage: the matrix is {} x {} and not laid out as a square one.",
                     global_rows(), global_cols());
    m.data_->half = std::make_shared<SymmetricHalf const>(data_->block(), kind, data_->rows.begin());
  });
  m.data_->diagonal = Csr();
  return m;
}

Matrix Matrix::general() const {
  if (!data_->half) return *this;
  Matrix m;
  m.data_ = data_->copy();
  static_cast<Products&>(*m.data_) = {};
  if (!m.data_->diagonal.offsets) m.data_->diagonal = data_->half->expanded();
  m.data_->half = nullptr;
  return m;
}

std::shared_ptr<SymmetricHalf const> const& Matrix::half() const { return data_->half; }

Matrix Matrix::shared() const {
  Matrix m;
  m.data_ = data_->copy();
  return m;
}

bool Matrix::has_pattern_of(Matrix const& other) const {
  auto const &a = *data_, &b = *other.data_;
  data_->make_rows(), other.data_->make_rows();
  auto const same = [](auto const& x, auto const& y) {
    return x.size() == y.size() && (x.data() == y.data() || std::equal(x.begin(), x.end(), y.begin()));
  };
  auto const same_block = [&](Csr const& x, Csr const& y) {
    return x.rows == y.rows && x.cols == y.cols && same(x.row_offsets(), y.row_offsets()) && same(x.column_indices(), y.column_indices());
  };
  bool const mine = !a.product_only && !b.product_only && a.rows.fits(b.rows) && a.columns.fits(b.columns) && a.ghosts == b.ghosts &&
                    same_block(a.diagonal, b.diagonal) && same_block(a.coupling, b.coupling);
  return comm().min(std::int64_t(mine)) == 1;
}

void Matrix::keep_product_only(bool adds) {
  if (reproducible()) {
    data_->ordered_for(adds ? Epilogue::add : Epilogue::assign);
  } else {
    if (adds) data_->adding();
    else data_->whole();
    data_->rest();
  }
  data_->product_only = true;
  data_->diagonal = Csr(data_->dtype, 0, 0, 0);
  data_->coupling = Csr(data_->dtype, 0, 0, 0);
}

Matrix Matrix::for_products(Dtype dtype, bool adds) const {
  auto& from = *data_;
  ASTERISM_ASSERT(dtype != from.dtype && !from.product_only);
  if (reproducible()) {
    auto m = converted(dtype);
    m.keep_product_only(adds);
    return m;
  }
  Matrix m;
  m.data_ = from.copy();
  auto& d = *m.data_;
  static_cast<Products&>(d) = {};
  d.dtype = dtype;
  d.half = nullptr;
  d.values_at = device::Memory::host;
  auto const& known = adds ? from.adding_product : from.diagonal_product;
  (adds ? d.adding_product : d.diagonal_product).made_by([&] {
    return choose_format(from.block(), adds ? Writes::rows_with_entries : Writes::all_rows, dtype, known ? known->get() : nullptr);
  });
  d.coupling = la::converted(from.coupling, dtype);
  d.rest();
  d.product_only = true;
  d.diagonal = Csr(dtype, 0, 0, 0);
  d.coupling = Csr(dtype, 0, 0, 0);
  return m;
}

void Matrix::set_space(Space space) {
  ASTERISM_REQUIRE(space.fits(range()), shape, "a space of {} entries here for a matrix of {} rows.", space.local_size(),
                   range().local_size());
  data_->rows = std::move(space);
}

}  // namespace asterism::la
