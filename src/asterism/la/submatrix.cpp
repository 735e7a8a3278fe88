#include "asterism/la/submatrix.hpp"

#include <algorithm>
#include <numeric>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/forest/forest_algebra.hpp"

namespace asterism::la {

using comm::StarForest;

struct Submatrix::Plan {
  std::vector<std::int64_t> wanted;  // of A's rows here, those that somebody asks for
  std::uint64_t pattern = 0;         // of these
  Dtype dtype = Dtype::float64;
  std::vector<bool> kept;            // of their entries: whether somebody asks for the column
  StarForest entries;                // from them to the submatrix's, row by row as they arrive
  std::vector<std::int64_t> sorted;  // sorted[e]: which arrival is entry e
  Matrix matrix;

  Array values(Matrix const& A) const;
};

namespace {

/// Of these rows of A here, entry(row, is_ghost, p, c): entry p of the diagonal block, whose column is c of mine, or of the coupling block,
/// and c of the ghosts.
template <class Entry>
void each_entry(Matrix const& A, std::span<std::int64_t const> rows, Entry const& entry) {
  auto const &d = A.diagonal_block(), &o = A.coupling_block();
  auto const dp = d.row_offsets(), op = o.row_offsets();
  auto const dc = d.column_indices(), oc = o.column_indices();
  for (auto const row : rows) {
    auto const r = std::size_t(row);
    for (auto p = dp[r]; p < dp[r + 1]; ++p) entry(r, false, p, std::size_t(dc[std::size_t(p)]));
    for (auto p = op[r]; p < op[r + 1]; ++p) entry(r, true, p, std::size_t(oc[std::size_t(p)]));
  }
}

/// A number that differs where the patterns of these rows differ (up to chance).
std::uint64_t pattern_of(Matrix const& A, std::span<std::int64_t const> rows) {
  std::uint64_t h = rows.size();
  auto const mix = [&h](std::int64_t v) { h = (h ^ std::uint64_t(v)) * 0x9e3779b97f4a7c15u, h ^= h >> 29; };
  auto const& ghosts = A.ghosts();
  auto const c0 = A.domain().begin();
  each_entry(A, rows, [&](std::size_t row, bool is_ghost, std::int64_t, std::size_t c) {
    mix(std::int64_t(row)), mix(is_ghost ? ghosts[c] : c0 + std::int64_t(c));
  });
  return h;
}

void require_within(std::span<std::int64_t const> indices, std::int64_t size, char const* what) {
  for (auto const i : indices) ASTERISM_REQUIRE(i >= 0 && i < size, value, "submatrix: {} {} is outside [0, {}).", what, i, size);
}

}  // namespace

Submatrix::Submatrix(Matrix const& A, std::span<std::int64_t const> rows, std::span<std::int64_t const> columns)
    : plan_(std::make_shared<Plan>()) {
  static int const event = profile::event("MatSubmatrix");
  profile::Scope const scope(event);
  auto& p = *plan_;
  auto const& comm = A.comm();
  agree(comm, [&] {
    require_within(rows, A.global_rows(), "row");
    require_within(columns, A.global_cols(), "column");
  });
  auto const row_forest = StarForest::from_layout(A.range(), rows), column_forest = StarForest::from_layout(A.domain(), columns);
  agree(comm, [&] {
    auto const wanted = column_forest.degree();
    for (std::size_t c = 0; c < wanted.size(); ++c)
      ASTERISM_REQUIRE(wanted[c] <= 1, value, "submatrix: column {} is asked for {} times; it can have one place only.",
                       A.domain().begin() + std::int64_t(c), wanted[c]);
  });
  p.dtype = A.dtype();

  // each column's new number, -1 if nobody wants it: to its owner, from there to the ranks that have entries in it
  Layout const range(comm, std::int64_t(rows.size())), domain(comm, std::int64_t(columns.size()));
  std::vector<std::int64_t> wish(columns.size()), number(std::size_t(A.domain().local_size()), -1), of_ghost(A.ghosts().size(), -1);
  std::iota(wish.begin(), wish.end(), domain.begin());
  column_forest.reduce(wish.data(), number.data(), comm::ReduceOp::replace);
  A.halo().bcast(number.data(), of_ghost.data());

  auto const asked = row_forest.degree();
  for (std::size_t r = 0; r < asked.size(); ++r)
    if (asked[r] > 0) p.wanted.push_back(std::int64_t(r));
  p.pattern = pattern_of(A, p.wanted);
  std::vector<std::int64_t> kept_columns, counts(asked.size(), 0);
  each_entry(A, p.wanted, [&](std::size_t row, bool is_ghost, std::int64_t, std::size_t c) {
    auto const to = is_ghost ? of_ghost[c] : number[c];
    p.kept.push_back(to >= 0);
    if (to < 0) return;
    kept_columns.push_back(to);
    ++counts[row];
  });
  auto section = comm::section(row_forest, counts);
  p.entries = std::move(section.forest);
  p.entries.set_name("entries of a sub-matrix");
  std::vector<std::int64_t> offsets(1, 0), column_indices;
  for (auto const n : section.leaf_dofs) offsets.push_back(offsets.back() + n);
  std::vector<std::int64_t> arrived(std::size_t(offsets.back()));
  p.entries.bcast(kept_columns.data(), arrived.data());
  p.sorted.resize(arrived.size());
  std::iota(p.sorted.begin(), p.sorted.end(), 0);
  for (std::size_t r = 0; r + 1 < offsets.size(); ++r)
    std::sort(p.sorted.begin() + offsets[r], p.sorted.begin() + offsets[r + 1],
              [&](auto a, auto b) { return arrived[std::size_t(a)] < arrived[std::size_t(b)]; });
  column_indices.reserve(arrived.size());
  for (auto const e : p.sorted) column_indices.push_back(arrived[std::size_t(e)]);
  p.matrix = Matrix::from_rows<std::int64_t>(range, domain, p.dtype, offsets, column_indices, p.values(A).raw());
}

/// Of the submatrix, in the order of its rows.
Array Submatrix::Plan::values(Matrix const& A) const {
  Array const out(sorted.size() * size_of(dtype));
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const *const d = A.diagonal_block().values.template as<T>(), *const o = A.coupling_block().values.template as<T>();
    std::vector<T> sent, arrived(sorted.size());
    std::size_t next = 0;
    each_entry(A, wanted, [&](std::size_t, bool is_ghost, std::int64_t p, std::size_t) {
      if (kept[next++]) sent.push_back(is_ghost ? o[p] : d[p]);
    });
    entries.bcast(sent.data(), arrived.data());
    auto* const to = out.as<T>();
    for (std::size_t e = 0; e < sorted.size(); ++e) to[e] = arrived[std::size_t(sorted[e])];
  });
  return out;
}

Matrix const& Submatrix::matrix() const { return plan_->matrix; }
std::size_t Submatrix::memory_bytes() const {
  auto const& p = *plan_;
  // a leaf of the forest has a number and a root
  return p.matrix.memory_bytes() + p.wanted.size() * 8 + p.kept.size() / 8 + p.sorted.size() * (8 + sizeof(comm::RemoteRoot) + 8);
}

bool Submatrix::try_update(Matrix const& A) {
  static int const event = profile::event("MatSubmatrix");
  profile::Scope const scope(event);
  auto& p = *plan_;
  bool const same =
      A.dtype() == p.dtype && (p.wanted.empty() || p.wanted.back() < A.range().local_size()) && pattern_of(A, p.wanted) == p.pattern;
  if (p.matrix.comm().min(std::int64_t(same)) == 0) return false;
  auto const values = p.values(A);
  p.matrix = p.matrix.with_values(p.dtype, std::int64_t(p.sorted.size()), values.raw());
  return true;
}

void Submatrix::update(Matrix const& A) {
  if (try_update(A)) return;
  ASTERISM_REQUIRE_ALIKE(A.dtype() == plan_->dtype, dtype, "submatrix: the matrix is {} now, it was {}.", name_of(A.dtype()),
                         name_of(plan_->dtype));
  ASTERISM_REQUIRE_ALIKE(false, value, "submatrix: the matrix has other entries than before in the rows that are taken. Extract anew.");
}

Redistribution::Redistribution(Layout const& from, std::span<std::int64_t const> owners)
    : from_(from), owners_(owners.begin(), owners.end()) {
  auto const& comm = from.comm();
  std::vector<std::vector<std::int64_t>> for_rank(static_cast<std::size_t>(comm.size()));
  agree(comm, [&] {
    ASTERISM_REQUIRE(std::int64_t(owners.size()) == from.local_size(), shape, "redistribution: {} owners for {} indices.", owners.size(),
                     from.local_size());
    for (std::size_t i = 0; i < owners.size(); ++i) {
      ASTERISM_REQUIRE(owners[i] >= 0 && owners[i] < comm.size(), value,
                       "redistribution: index {} is to go to rank {}, but there are {} ranks.", from.begin() + std::int64_t(i), owners[i],
                       comm.size());
      for_rank[std::size_t(owners[i])].push_back(from.begin() + std::int64_t(i));
    }
  });
  std::vector<comm::Parcel> parcels;
  for (std::size_t r = 0; r < for_rank.size(); ++r) {
    if (for_rank[r].empty()) continue;
    comm::Parcel p{int(r), {}};
    comm::append<std::int64_t>(p.data, for_rank[r]);
    parcels.push_back(std::move(p));
  }
  for (auto const& p : comm::exchange(comm, std::move(parcels))) {
    auto const part = comm::items_of<std::int64_t>(p.data);
    order_.insert(order_.end(), part.begin(), part.end());
  }
  to_ = Layout(comm, std::int64_t(order_.size()));
  forest_ = StarForest::from_layout(from, order_);
  forest_.set_name("redistribution");
}

Matrix Redistribution::matrix(Matrix const& A) const {
  std::optional<Submatrix> once;
  return matrix(A, once);
}

Matrix Redistribution::matrix(Matrix const& A, std::optional<Submatrix>& plan) const {
  auto const bs = A.range().block_size();
  agree(from_.comm(), [&] {
    ASTERISM_REQUIRE(A.range().fits(from_) && A.domain().fits(from_), shape,
                     "redistribution: a {} x {} matrix with {} rows here cannot be moved; it is for {} indices, {} of them here.",
                     A.global_rows(), A.global_cols(), A.range().local_size(), from_.global_size(), from_.local_size());
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      auto const node = i / std::size_t(bs) * std::size_t(bs);
      ASTERISM_REQUIRE(owners_[i] == owners_[node], value,
                       "redistribution: rows {} and {} are of one node of {} rows, but go to ranks {} and {}.",
                       from_.begin() + std::int64_t(node), from_.begin() + std::int64_t(i), bs, owners_[node], owners_[i]);
    }
  });
  if (!plan || !plan->try_update(A)) plan.emplace(A, order_, order_);
  auto B = plan->matrix().shared();
  if (bs > 1) B.set_space(B.range().with_block_size(bs));
  auto const moved = [](Vector const& old, Layout const& to, StarForest const& forest) {
    Vector v(to, old.dtype(), old.columns());
    forest.bcast_begin(old.data().raw(), v.data().raw(), {comm::ItemType::bytes, std::int64_t(size_of(old.dtype())), old.columns()}).end();
    return v;
  };
  if (auto const& old = A.range().near_null_space()) B.set_space(B.range().with_near_null_space(moved(old, to_, forest_)));
  if (auto const& old = A.range().coordinates()) {
    std::vector<std::int64_t> nodes;
    for (std::size_t i = 0; i < order_.size(); i += std::size_t(bs)) nodes.push_back(order_[i] / bs);
    auto const of_nodes = StarForest::from_layout(A.range().nodes(), nodes);
    B.set_space(B.range().with_coordinates(moved(old, B.range().nodes(), of_nodes)));
  }
  return B;
}

}  // namespace asterism::la
