#include "asterism/la/matrix.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "asterism/base/log.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/exchange.hpp"
#include "asterism/la/vector.kernels.hpp"

namespace asterism::la {

using comm::StarForest;

/// What products are done with, made at first use.
struct Matrix::Products {
  std::optional<Product> diagonal_product, coupling_product, adding_product;
  struct Transposed {
    Product diagonal, coupling;
  };
  std::optional<Transposed> transposed[2];  // plain, conjugated
  // -reproducible: whole rows, columns ascending, of x with the ghosts around it
  std::optional<Product> ordered, ordered_adding;
  std::optional<Matrix> ordered_transposed[2];
};

struct Matrix::Data : Matrix::Products {
  Layout rows, columns;
  Dtype dtype = Dtype::float64;
  Csr diagonal, coupling;  // with a half, `diagonal` is made from it when asked for: block()
  std::shared_ptr<SymmetricHalf const> half;
  std::vector<std::int64_t> ghosts;
  StarForest halo;
  std::int64_t global_nnz = 0, local_nnz = 0;
  bool product_only = false;
  std::int64_t block_size = 1;
  Vector near_null_space;

  // on a GPU: my rows that others ask for, and a place of x's length on the host where only those are filled
  std::optional<Array> sent_rows;
  Array staging;
  template <class T>
  Array staged(device::Context const& ctx, std::int64_t k, Array const& x);

  Product const* ordered_for(Epilogue e);
  Csr const& block() {
    if (half && !diagonal.offsets) {
      diagonal = half->expanded();
      log::info("rows of a symmetric matrix are made: {} bytes",
                diagonal.offsets.bytes() + diagonal.columns.bytes() + diagonal.values.bytes());
    }
    return diagonal;
  }
  Product const& whole() {
    if (!diagonal_product) diagonal_product.emplace(block());
    return *diagonal_product;
  }
  Product const& adding() {
    if (!adding_product) adding_product = Product::coupling(block());
    return *adding_product;
  }
  Product const& rest() {
    if (!coupling_product) coupling_product = Product::coupling(coupling);
    return *coupling_product;
  }
};

namespace {

/// Sorts each row by column and sums repeats, in place; returns the new number of entries.
template <class T>
std::int64_t sort_and_sum_rows(std::vector<std::int64_t>& offsets, std::vector<std::int64_t>& columns, std::vector<T>& values) {
  std::vector<std::pair<std::int64_t, T>> row;
  std::int64_t out = 0;
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r) {
    auto const begin = offsets[r], end = offsets[r + 1];
    row.clear();
    for (auto p = begin; p < end; ++p) row.emplace_back(columns[std::size_t(p)], values[std::size_t(p)]);
    std::stable_sort(row.begin(), row.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    offsets[r] = out;
    for (std::size_t e = 0; e < row.size(); ++e) {
      if (e > 0 && row[e].first == row[e - 1].first) {
        values[std::size_t(out - 1)] += row[e].second;
      } else {
        columns[std::size_t(out)] = row[e].first;
        values[std::size_t(out)] = row[e].second;
        ++out;
      }
    }
  }
  offsets.back() = out;
  return out;
}

/// Splits sorted rows into the block of my columns and the rest.
template <class T, class I>
void split_blocks(Layout const& columns, std::int32_t rows, I const* offsets, I const* col, T const* val, Csr& diagonal, Csr& coupling,
                  std::vector<std::int64_t>& ghosts) {
  auto const c0 = columns.begin(), c1 = columns.end();
  auto const local_columns = checked_local_index(columns.local_size(), "columns of one rank");
  std::int64_t inside = 0;
  auto const nnz = std::int64_t(offsets[rows]);
  for (std::int64_t p = 0; p < nnz; ++p) {
    auto const c = std::int64_t(col[p]);
    if (c >= c0 && c < c1) ++inside;
    else ghosts.push_back(c);
  }
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  diagonal = Csr(dtype_v<T>, rows, local_columns, inside);
  coupling = Csr(dtype_v<T>, rows, checked_local_index(std::int64_t(ghosts.size()), "ghost columns of one rank"), nnz - inside);
  std::int64_t d = 0, o = 0;
  auto* dp = diagonal.offsets.as<std::int64_t>();
  auto* op = coupling.offsets.as<std::int64_t>();
  auto* dc = diagonal.columns.as<std::int32_t>();
  auto* oc = coupling.columns.as<std::int32_t>();
  auto* dv = diagonal.values.as<T>();
  auto* ov = coupling.values.as<T>();
  for (std::int32_t r = 0; r < rows; ++r) {
    dp[r] = d;
    op[r] = o;
    for (auto p = offsets[r]; p < offsets[r + 1]; ++p) {
      auto const c = std::int64_t(col[p]);
      if (c >= c0 && c < c1) {
        dc[d] = std::int32_t(c - c0);
        dv[d++] = val[p];
      } else {
        oc[o] = std::int32_t(std::lower_bound(ghosts.begin(), ghosts.end(), c) - ghosts.begin());
        ov[o++] = val[p];
      }
    }
  }
}

}  // namespace

namespace {

std::size_t ghosts_below(Layout const& columns, std::vector<std::int64_t> const& ghosts) {
  return std::size_t(std::lower_bound(ghosts.begin(), ghosts.end(), columns.begin()) - ghosts.begin());
}

/// Both blocks as one; its columns are ghosts and own columns together, ascending.
Csr merged(Csr const& diagonal, Csr const& coupling, std::int32_t below) {
  Csr out(diagonal.dtype, diagonal.rows, checked_local_index(std::int64_t(diagonal.cols) + coupling.cols, "columns of one rank"),
          diagonal.nnz() + coupling.nnz());
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

Product const* Matrix::Data::ordered_for(Epilogue e) {
  bool const adds = e == Epilogue::add;
  auto& p = adds ? ordered_adding : ordered;
  if (!p && !product_only) {
    auto const whole_rows = ghosts.empty() ? block() : merged(block(), coupling, std::int32_t(ghosts_below(columns, ghosts)));
    if (adds) p = Product::coupling(whole_rows, Product::Storage::csr);
    else p.emplace(whole_rows, Product::Storage::csr);
  }
  return p ? &*p : nullptr;
}

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
  d.halo = StarForest::from_layout(columns, d.ghosts);
  d.halo.set_name("halo of a matrix");
  d.global_nnz = rows.comm().sum(d.local_nnz);
  return m;
}

template <class I>
Matrix Matrix::from_rows(Layout const& rows, Layout const& columns, Dtype dtype, std::span<I const> offsets, std::span<I const> cols,
                         void const* values) {
  static int const event = profile::event("MatAssemble");
  profile::Scope const scope(event);
  auto const n = rows.local_size();
  bool sorted = true;
  comm::agree(rows.comm(), [&] {
    ASTERISM_REQUIRE(std::int64_t(offsets.size()) == n + 1, shape, "from_rows: {} row offsets for {} local rows; {} are needed.",
                     offsets.size(), n, n + 1);
    ASTERISM_REQUIRE(offsets[0] == 0 && std::int64_t(offsets[std::size_t(n)]) <= std::int64_t(cols.size()), shape,
                     "from_rows: row offsets run from {} to {}, but there are {} columns given.", offsets[0], offsets[std::size_t(n)],
                     cols.size());
    checked_local_index(n, "rows of one rank");
    auto const width = columns.global_size();
    for (std::int64_t r = 0; r < n; ++r) {
      ASTERISM_REQUIRE(offsets[std::size_t(r)] <= offsets[std::size_t(r) + 1], value,
                       "from_rows: row offsets decrease at local row {} ({} to {}).", r, offsets[std::size_t(r)],
                       offsets[std::size_t(r) + 1]);
      std::int64_t last = -1;
      for (auto p = offsets[std::size_t(r)]; p < offsets[std::size_t(r) + 1]; ++p) {
        auto const c = std::int64_t(cols[std::size_t(p)]);
        ASTERISM_REQUIRE(c >= 0 && c < width, value, "from_rows: global row {} has column {} outside [0, {}).", rows.begin() + r, c, width);
        if (c <= last) sorted = false;
        last = c;
      }
    }
  });
  Csr diagonal, coupling;
  std::vector<std::int64_t> ghosts;
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const* v = static_cast<T const*>(values);
    if (sorted) {
      split_blocks<T, I>(columns, std::int32_t(n), offsets.data(), cols.data(), v, diagonal, coupling, ghosts);
    } else {
      std::vector<std::int64_t> ptr(offsets.begin(), offsets.end()), col(cols.begin(), cols.begin() + offsets[std::size_t(n)]);
      std::vector<T> val(v, v + offsets[std::size_t(n)]);
      sort_and_sum_rows(ptr, col, val);
      split_blocks<T, std::int64_t>(columns, std::int32_t(n), ptr.data(), col.data(), val.data(), diagonal, coupling, ghosts);
    }
  });
  return from_blocks(rows, columns, std::move(diagonal), std::move(coupling), std::move(ghosts));
}

template Matrix Matrix::from_rows(Layout const&, Layout const&, Dtype, std::span<std::int32_t const>, std::span<std::int32_t const>,
                                  void const*);
template Matrix Matrix::from_rows(Layout const&, Layout const&, Dtype, std::span<std::int64_t const>, std::span<std::int64_t const>,
                                  void const*);

template <class I>
Matrix Matrix::from_coo(Layout const& rows, Layout const& columns, Dtype dtype, std::span<I const> i, std::span<I const> j,
                        void const* values) {
  static int const event = profile::event("MatSetValuesCOO");
  profile::Scope const scope(event);
  auto const& comm = rows.comm();
  auto const first = rows.begin(), last = rows.end();
  auto const entries = i.size();
  std::vector<std::int64_t> ptr;
  std::int64_t away = 0;  // of other ranks
  bool ordered = true;    // by rows already, none left out, as files often are
  comm::agree(comm, [&] {
    checked_local_index(rows.local_size(), "rows of one rank");
    ptr.assign(std::size_t(last - first) + 1, 0);
    ASTERISM_REQUIRE(entries == j.size(), shape, "coo: {} row indices but {} column indices.", entries, j.size());
    auto const n = rows.global_size(), m = columns.global_size();
    for (std::size_t e = 0; e < entries; ++e) {
      ASTERISM_REQUIRE(i[e] < n && j[e] < m, value, "coo: entry {} is at ({}, {}), outside the {} x {} matrix.", e, i[e], j[e], n, m);
      ordered = ordered && i[e] >= 0 && j[e] >= 0 && (e == 0 || i[e] >= i[e - 1]);
      if (i[e] < 0 || j[e] < 0) continue;
      if (i[e] >= first && i[e] < last) ++ptr[std::size_t(i[e] - first) + 1];
      else ++away;
    }
  });
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const* v = static_cast<T const*>(values);
    struct Entry {
      std::int64_t i, j;
      T v;
    };
    std::vector<comm::Parcel> parcels;
    if (comm.size() > 1) {
      std::vector<std::vector<Entry>> to(static_cast<std::size_t>(comm.size()));
      for (std::size_t e = 0; away > 0 && e < entries; ++e)
        if (i[e] >= 0 && j[e] >= 0 && (i[e] < first || i[e] >= last))
          to[std::size_t(rows.owner(i[e]))].push_back({std::int64_t(i[e]), std::int64_t(j[e]), v[e]});
      for (int r = 0; r < comm.size(); ++r)
        if (!to[std::size_t(r)].empty()) {
          comm::Parcel p{r, {}};
          comm::append<Entry>(p.data, to[std::size_t(r)]);
          parcels.push_back(std::move(p));
        }
      parcels = comm::exchange(comm, std::move(parcels));
    }
    // the order is (rank, position); my own do not travel
    auto const of_others = [&](int from, int until, auto const& f) {
      for (auto const& p : parcels)
        for (std::size_t e = 0; p.rank >= from && p.rank < until && e < p.data.size() / sizeof(Entry); ++e) {
          Entry entry;
          std::memcpy(&entry, p.data.data() + e * sizeof(Entry), sizeof(Entry));
          f(entry.i, entry.j, entry.v);
        }
    };
    auto const mine = [&] {  // one piece, if they are ordered
      auto const at = [&](std::int64_t row) {
        return std::size_t(std::partition_point(i.begin(), i.end(), [row](I r) { return r < row; }) - i.begin());
      };
      return ordered ? std::pair(at(first), at(last)) : std::pair(std::size_t(0), entries);
    }();
    std::int64_t row = first;
    auto const count = [&](std::int64_t r, std::int64_t, T) {
      ++ptr[std::size_t(r - first) + 1];
      ordered = ordered && r >= row;
      row = r;
    };
    of_others(0, comm.rank(), count);
    if (ordered && mine.first < mine.second) {
      ordered = i[mine.first] >= row;
      row = i[mine.second - 1];
    }
    of_others(comm.rank(), comm.size(), count);
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    auto const by_rows = [&]<class J>(J) {  // memory that is touched first is what this costs
      std::vector<J> const offsets(ptr.begin(), ptr.end());
      std::vector<J> col;
      std::vector<T> val;
      auto const own_columns = j.subspan(mine.first, mine.second - mine.first);
      if (ordered && parcels.empty()) {
        if constexpr (std::is_same_v<I, J>) return from_rows<J>(rows, columns, dtype, offsets, own_columns, v + mine.first);
      }
      if (ordered) {
        col.reserve(std::size_t(ptr.back()));
        val.reserve(std::size_t(ptr.back()));
        auto const append = [&](std::int64_t, std::int64_t c, T x) { col.push_back(J(c)), val.push_back(x); };
        of_others(0, comm.rank(), append);
        col.insert(col.end(), own_columns.begin(), own_columns.end());
        val.insert(val.end(), v + mine.first, v + mine.second);
        of_others(comm.rank(), comm.size(), append);
      } else {  // counting sort
        col.resize(std::size_t(ptr.back()));
        val.resize(std::size_t(ptr.back()));
        auto const place = [&](std::int64_t r, std::int64_t c, T x) {
          auto const at = std::size_t(ptr[std::size_t(r - first)]++);
          col[at] = J(c);
          val[at] = x;
        };
        of_others(0, comm.rank(), place);
        for (std::size_t e = 0; e < entries; ++e)
          if (i[e] >= first && i[e] < last && j[e] >= 0) place(i[e], j[e], v[e]);
        of_others(comm.rank(), comm.size(), place);
      }
      parcels.clear();
      return from_rows<J>(rows, columns, dtype, offsets, col, val.data());
    };
    auto const most = std::max(ptr.back(), columns.global_size());
    return most <= std::numeric_limits<std::int32_t>::max() ? by_rows(std::int32_t()) : by_rows(std::int64_t());
  });
}
template Matrix Matrix::from_coo<std::int32_t>(Layout const&, Layout const&, Dtype, std::span<std::int32_t const>,
                                               std::span<std::int32_t const>, void const*);
template Matrix Matrix::from_coo<std::int64_t>(Layout const&, Layout const&, Dtype, std::span<std::int64_t const>,
                                               std::span<std::int64_t const>, void const*);

Layout const& Matrix::range() const { return data_->rows; }
Layout const& Matrix::domain() const { return data_->columns; }
Dtype Matrix::dtype() const { return data_->dtype; }
std::int64_t Matrix::local_nnz() const { return data_->local_nnz; }
std::int64_t Matrix::nnz() const { return data_->global_nnz; }
Csr const& Matrix::diagonal_block() const {
  ASTERISM_ASSERT(!data_->product_only);
  return data_->block();
}
Csr const& Matrix::coupling_block() const {
  ASTERISM_ASSERT(!data_->product_only);
  return data_->coupling;
}
std::vector<std::int64_t> const& Matrix::ghosts() const { return data_->ghosts; }
StarForest const& Matrix::halo() const { return data_->halo; }
double Matrix::product_bytes() const { return data_->half ? data_->half->bytes() : data_->whole().bytes(); }

std::string_view Matrix::storage_name() const {
  if (data_->half) return data_->half->kind() == SymmetricHalf::Kind::hermitian ? "hermitian" : "symmetric";
  return data_->whole().storage_name();
}

std::size_t Matrix::memory_bytes() const {
  std::size_t b = data_->ghosts.size() * 8 + (data_->half ? data_->half->memory_bytes() : 0);
  if (!data_->product_only)
    for (auto const* c : {&data_->diagonal, &data_->coupling}) b += c->offsets.bytes() + c->columns.bytes() + c->values.bytes();
  for (auto const* p : {&data_->diagonal_product, &data_->adding_product, &data_->ordered, &data_->ordered_adding})
    if (*p && (data_->product_only || !(*p)->shares_block())) b += (*p)->memory_bytes();
  return b;
}

std::string Matrix::describe() const {
  return format("{} x {} matrix, {} entries, {}, on {} rank(s)", global_rows(), global_cols(), nnz(), name_of(dtype()), comm().size());
}

/// What others ask for of x comes to the host by itself, not all of x.
template <class T>
Array Matrix::Data::staged(device::Context const& ctx, std::int64_t k, Array const& x) {
  if (!sent_rows) {
    std::vector<std::int32_t> asked_for;
    auto const degree = halo.degree();
    for (std::size_t i = 0; i < degree.size(); ++i)
      if (degree[i] > 0) asked_for.push_back(std::int32_t(i));
    sent_rows = Array::of(std::span<std::int32_t const>(asked_for));
  }
  auto const count = std::int64_t(sent_rows->bytes() / sizeof(std::int32_t));
  auto const packed = Array::fresh(ctx, std::size_t(count * k) * sizeof(T));
  device::submit(ctx, kernel::gather<T>, count, k, device::read<std::int32_t>(*sent_rows), device::read<T>(x), device::write<T>(packed));
  if (auto const bytes = std::size_t(columns.local_size() * k) * sizeof(T); staging.bytes() < bytes) staging = Array(bytes);
  device::submit_on_host(
      ctx,
      [count, k](device::Queue&, std::int32_t const* at, T const* from, T* to) {
        for (std::int64_t i = 0; i < count; ++i) std::copy_n(from + i * k, k, to + at[i] * k);
      },
      device::read<std::int32_t>(*sent_rows), device::read<T>(packed), device::update<T>(staging));
  return staging;
}

namespace {
struct HaloFlight {
  StarForest::Flight flight;
};
}  // namespace

void Matrix::product(char const* name, Epilogue whole, Epilogue rest, Vector const& x, Vector& y, Array const& b, Array const& w) const {
  auto& d = *data_;
  require_layout(x, d.columns, d.dtype, "matrix product");
  require_layout(y, d.rows, d.dtype, "matrix product");
  ASTERISM_REQUIRE(x.columns() == y.columns(), shape, "matrix product: x has {} columns, y has {}.", x.columns(), y.columns());
  ASTERISM_REQUIRE(x.data().buffer() != y.data().buffer() || x.data().raw() != y.data().raw() || y.local_size() == 0, value,
                   "matrix product: x and y are the same vector; they must differ.");
  auto const k = x.columns();
  bool const has_plain = d.half || !d.product_only || (whole == Epilogue::add ? d.adding_product : d.diagonal_product);
  if (reproducible() || !has_plain)
    if (auto const* const ordered = d.ordered_for(whole)) return ordered_product(*ordered, name, whole, x, y, b);
  auto const* const product = d.half ? nullptr : whole == Epilogue::add ? &d.adding() : &d.whole();
  double const scalar = double(size_of(d.dtype));
  profile::Scope const scope(profile::event(name),
                             (product ? product->bytes(k) : d.half->bytes(k)) + double(d.coupling.nnz()) * (scalar + 4) +
                                 (b ? scalar * double(k * y.local_size()) : 0) + (w ? scalar * double(y.local_size()) : 0),
                             2 * double(d.local_nnz * k) * (is_complex(d.dtype) ? 4 : 1));
  auto const& ctx = y.context();
  auto const run_whole = [&] {
    if (product) product->run(ctx, whole, k, x.data(), y.data(), b, w);
    else SymmetricHalf::run(d.half, ctx, whole, k, x.data(), y.data(), b, w);
  };
  if (comm().size() == 1) return run_whole();
  // my columns are multiplied while the others' values travel
  auto const ghost = Array::fresh(ctx, d.ghosts.size() * std::size_t(k) * size_of(d.dtype));
  auto flight = std::make_shared<HaloFlight>();
  with_dtype(d.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const source = ctx.memory() == device::Memory::gpu ? d.staged<T>(ctx, k, x.data()) : x.data();
    device::submit_on_host(
        ctx,
        [halo = d.halo, flight, k](device::Queue&, std::byte*, T const* from, T* to) { flight->flight = halo.bcast_begin(from, to, k); },
        device::update<std::byte>(comm().lane()), device::read<T>(source), device::write<T>(ghost));
    run_whole();
    device::submit_on_host(
        ctx, [flight](device::Queue&, std::byte*, T const*, T*) { flight->flight.end(); }, device::update<std::byte>(comm().lane()),
        device::read<T>(source), device::update<T>(ghost));
  });
  if (!d.ghosts.empty()) d.rest().run(ctx, rest, k, ghost, y.data(), b, w);
}

/// Each row is one sum over ascending global columns, whatever the ranks are. Nothing is overlapped: all of x is needed first.
void Matrix::ordered_product(Product const& product, char const* name, Epilogue e, Vector const& x, Vector& y, Array const& b) const {
  auto& d = *data_;
  auto const k = x.columns();
  profile::Scope const scope(profile::event(name), product.bytes(k), 2 * double(d.local_nnz * k) * (is_complex(d.dtype) ? 4 : 1));
  auto const& ctx = y.context();
  if (comm().size() == 1) return product.run(ctx, e, k, x.data(), y.data(), b);
  auto const row = std::size_t(k) * size_of(d.dtype);
  auto const all = Array::fresh(ctx, (d.ghosts.size() + std::size_t(x.local_size())) * row);
  with_dtype(d.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit_on_host(
        ctx,
        [halo = d.halo, k, own = std::size_t(x.local_size() * k), below = ghosts_below(d.columns, d.ghosts) * std::size_t(k),
         ghosts = d.ghosts.size() * std::size_t(k)](device::Queue&, std::byte*, T const* from, T* to) {
          std::vector<T> arrived(ghosts);
          halo.bcast(from, arrived.data(), k);
          std::copy_n(arrived.data(), below, to);
          std::copy_n(from, own, to + below);
          std::copy(arrived.begin() + std::ptrdiff_t(below), arrived.end(), to + below + own);
        },
        device::update<std::byte>(comm().lane()), device::read<T>(x.data()), device::write<T>(all));
  });
  product.run(ctx, e, k, all, y.data(), b);
}

void Matrix::apply(Vector const& x, Vector& y) const { product("MatMult", Epilogue::assign, Epilogue::add, x, y, {}, {}); }

void Matrix::apply_add(Vector const& x, Vector& y) const { product("MatMultAdd", Epilogue::add, Epilogue::add, x, y, {}, {}); }

void Matrix::residual(Vector const& b, Vector const& x, Vector& r) const {
  require_layout(b, range(), dtype(), "residual");
  product("MatResidual", Epilogue::residual, Epilogue::subtract, x, r, b.data(), {});
}

void Matrix::smooth(Vector const& b, Vector const& x, Vector const& w, Vector& y) const {
  if (reproducible()) {
    residual(b, x, y);
    multiply(w, y, y);
    return axpy(1.0, x, y);
  }
  product("MatSmooth", Epilogue::smooth, Epilogue::subtract_scaled, x, y, b.data(), w.data());
}

void Matrix::apply_transpose(Vector const& x, Vector& y, bool conjugate) const {
  auto& d = *data_;
  ASTERISM_ASSERT(!d.product_only);
  require_layout(x, d.rows, d.dtype, "transposed product");
  require_layout(y, d.columns, d.dtype, "transposed product");
  conjugate = conjugate && is_complex(d.dtype);
  if (reproducible()) {
    auto& t = d.ordered_transposed[conjugate];
    if (!t) t = transposed(conjugate);
    return t->apply(x, y);
  }
  auto& t = d.transposed[conjugate];
  if (!t)
    t.emplace(Products::Transposed{Product(la::transpose(d.block(), conjugate)),
                                   Product(la::transpose(d.coupling, conjugate), Product::Storage::csr)});
  auto const k = x.columns();
  static int const event = profile::event("MatMultTranspose");
  profile::Scope const scope(event, t->diagonal.bytes(k) + t->coupling.bytes(k), 2 * double(d.local_nnz * k));
  auto const& ctx = y.context();
  t->diagonal.run(ctx, Epilogue::assign, k, x.data(), y.data());
  if (comm().size() == 1) return;
  auto const ghost = Array::fresh(ctx, d.ghosts.size() * std::size_t(k) * size_of(d.dtype));
  t->coupling.run(ctx, Epilogue::assign, k, x.data(), ghost);
  with_dtype(d.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    device::submit_on_host(
        ctx, [halo = d.halo, k](device::Queue&, std::byte*, T const* from, T* to) { halo.reduce(from, to, comm::ReduceOp::sum, k); },
        device::update<std::byte>(comm().lane()), device::read<T>(ghost), device::update<T>(y.data()));
  });
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
    auto const ptr = data_->diagonal.row_offsets();
    auto const col = data_->diagonal.column_indices();
    auto const val = data_->diagonal.template entries<T>();
    auto const out = v.host<T>();
    for (std::int32_t r = 0; r < data_->diagonal.rows; ++r) {
      auto const b = col.begin() + ptr[std::size_t(r)], e = col.begin() + ptr[std::size_t(r) + 1];
      auto const it = std::lower_bound(b, e, r);
      out[std::size_t(r)] = it != e && *it == r ? val[std::size_t(it - col.begin())] : T(0);
    }
  });
  return v;
}

double Matrix::scaled_row_sum_norm(Vector const* s) const {
  double worst = 0;
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

Matrix Matrix::transposed(bool conjugate) const {
  auto const rows = to_rows();
  return with_dtype(dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<std::int64_t> i(rows.columns), j(rows.columns.size());
    for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r)
      for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) j[std::size_t(p)] = range().begin() + std::int64_t(r);
    std::vector<T> v(rows.values.as<T>(), rows.values.as<T>() + i.size());
    if (conjugate)
      for (auto& x : v) x = conj(x);
    return from_coo<std::int64_t>(domain(), range(), dtype(), i, j, v.data());
  });
}

Matrix Matrix::converted(Dtype dtype) const {
  if (dtype == data_->dtype) return *this;
  Matrix m;
  m.data_ = std::make_shared<Data>(*data_);
  m.data_->dtype = dtype;
  m.data_->half = nullptr;
  m.data_->diagonal = la::converted(data_->block(), dtype);
  m.data_->coupling = la::converted(data_->coupling, dtype);
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
  Matrix m;
  data_->block();
  m.data_ = std::make_shared<Data>(d);
  static_cast<Products&>(*m.data_) = {};
  m.data_->half = nullptr;
  m.data_->dtype = m.data_->diagonal.dtype = m.data_->coupling.dtype = dtype;
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Array const diagonal(std::size_t(d.diagonal.nnz()) * sizeof(T)), coupling(std::size_t(d.coupling.nnz()) * sizeof(T));
    auto const* from = static_cast<T const*>(values);
    auto *dv = diagonal.as<T>(), *ov = coupling.as<T>();
    auto const dp = d.diagonal.row_offsets(), op = d.coupling.row_offsets();
    auto const oc = d.coupling.column_indices();
    auto const below = std::int32_t(ghosts_below(d.columns, d.ghosts));
    for (std::size_t r = 0; r < std::size_t(d.diagonal.rows); ++r) {
      auto q = op[r];
      for (; q < op[r + 1] && oc[std::size_t(q)] < below; ++q) *ov++ = *from++;
      dv = std::copy_n(from, dp[r + 1] - dp[r], dv);
      from += dp[r + 1] - dp[r];
      ov = std::copy_n(from, op[r + 1] - q, ov);
      from += op[r + 1] - q;
    }
    m.data_->diagonal.values = diagonal;
    m.data_->coupling.values = coupling;
  });
  if (d.half) return m.symmetric(d.half->kind());
  return m;
}

Matrix Matrix::symmetric(SymmetricHalf::Kind kind) const {
  ASTERISM_ASSERT(!data_->product_only);
  if (data_->half && (data_->half->kind() == kind || !is_complex(dtype()))) return *this;
  Matrix m;
  m.data_ = std::make_shared<Data>(*data_);
  static_cast<Products&>(*m.data_) = {};
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
  m.data_ = std::make_shared<Data>(*data_);
  static_cast<Products&>(*m.data_) = {};
  if (!m.data_->diagonal.offsets) m.data_->diagonal = data_->half->expanded();
  m.data_->half = nullptr;
  return m;
}

std::shared_ptr<SymmetricHalf const> const& Matrix::half() const { return data_->half; }

bool Matrix::has_pattern_of(Matrix const& other) const {
  auto const &a = *data_, &b = *other.data_;
  data_->block(), other.data_->block();
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

std::int64_t Matrix::block_size() const { return data_->block_size; }
void Matrix::set_block_size(std::int64_t bs) {
  ASTERISM_REQUIRE(bs >= 1 && global_rows() % bs == 0 && range().local_size() % bs == 0, shape,
                   "block size {} does not divide the {} rows ({} here on rank {}).", bs, global_rows(), range().local_size(),
                   comm().rank());
  data_->block_size = bs;
}
Vector const& Matrix::near_null_space() const { return data_->near_null_space; }
void Matrix::set_near_null_space(Vector b) {
  ASTERISM_REQUIRE(b.layout().fits(range()), shape, "near-null space: {} rows here where the matrix has {}.", b.local_size(),
                   range().local_size());
  data_->near_null_space = std::move(b);
}

}  // namespace asterism::la
