#include "asterism/la/submatrix.hpp"

#include <algorithm>
#include <numeric>

#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/comm/forest/forest_algebra.hpp"

namespace asterism::la {

using comm::StarForest;

struct Submatrix::Plan {
  Layout rows, columns;       // of the submatrix
  std::uint64_t pattern = 0;  // of A here
  Dtype dtype = Dtype::float64;
  std::vector<std::int64_t> kept;                             // positions among A's entries here that somebody may want
  StarForest entries;                                         // from them to the submatrix's, row by row as they arrive
  std::vector<std::int64_t> offsets, column_indices, sorted;  // sorted[e]: which arrival is entry e
  Matrix matrix;

  void take_values(GlobalRows const& A);
};

namespace {

/// A number that differs where patterns differ (up to chance).
std::uint64_t pattern_of(GlobalRows const& A) {
  std::uint64_t h = A.columns.size();
  auto const mix = [&h](std::int64_t v) { h = (h ^ std::uint64_t(v)) * 0x9e3779b97f4a7c15u, h ^= h >> 29; };
  for (auto const o : A.offsets) mix(o);
  for (auto const c : A.columns) mix(c);
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
  p.rows = Layout(comm, std::int64_t(rows.size()));
  p.columns = Layout(comm, std::int64_t(columns.size()));
  p.dtype = A.dtype();

  // each column's new number, -1 if nobody wants it: to its owner, from there to the ranks that have entries in it
  std::vector<std::int64_t> wish(columns.size()), number(std::size_t(A.domain().local_size()), -1), of_ghost(A.ghosts().size(), -1);
  std::iota(wish.begin(), wish.end(), p.columns.begin());
  column_forest.reduce(wish.data(), number.data(), comm::ReduceOp::replace);
  A.halo().bcast(number.data(), of_ghost.data());

  auto const mine = A.to_rows();
  p.pattern = pattern_of(mine);
  std::vector<std::int64_t> kept_columns, counts;
  for (std::size_t r = 0; r + 1 < mine.offsets.size(); ++r) {
    for (auto e = mine.offsets[r]; e < mine.offsets[r + 1]; ++e) {
      auto const c = mine.columns[std::size_t(e)];
      auto const to = A.domain().owns(c)
                          ? number[std::size_t(c - A.domain().begin())]
                          : of_ghost[std::size_t(std::lower_bound(A.ghosts().begin(), A.ghosts().end(), c) - A.ghosts().begin())];
      if (to < 0) continue;
      p.kept.push_back(e);
      kept_columns.push_back(to);
    }
    counts.push_back(std::int64_t(p.kept.size()));
  }
  std::adjacent_difference(counts.begin(), counts.end(), counts.begin());
  auto section = comm::section(row_forest, counts);
  p.entries = std::move(section.forest);
  p.entries.set_name("entries of a sub-matrix");
  p.offsets.assign(1, 0);
  for (auto const n : section.leaf_dofs) p.offsets.push_back(p.offsets.back() + n);
  std::vector<std::int64_t> arrived(std::size_t(p.offsets.back()));
  p.entries.bcast(kept_columns.data(), arrived.data());
  p.sorted.resize(arrived.size());
  std::iota(p.sorted.begin(), p.sorted.end(), 0);
  for (std::size_t r = 0; r + 1 < p.offsets.size(); ++r)
    std::sort(p.sorted.begin() + p.offsets[r], p.sorted.begin() + p.offsets[r + 1],
              [&](auto a, auto b) { return arrived[std::size_t(a)] < arrived[std::size_t(b)]; });
  p.column_indices.reserve(arrived.size());
  for (auto const e : p.sorted) p.column_indices.push_back(arrived[std::size_t(e)]);
  p.take_values(mine);
}

void Submatrix::Plan::take_values(GlobalRows const& A) {
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const* const all = A.values.as<T>();
    std::vector<T> sent, arrived(sorted.size()), values;
    sent.reserve(kept.size());
    for (auto const e : kept) sent.push_back(all[e]);
    entries.bcast(sent.data(), arrived.data());
    values.reserve(sorted.size());
    for (auto const e : sorted) values.push_back(arrived[std::size_t(e)]);
    matrix = Matrix::from_rows<std::int64_t>(rows, columns, dtype, offsets, column_indices, values.data());
  });
}

Matrix const& Submatrix::matrix() const { return plan_->matrix; }

void Submatrix::update(Matrix const& A) {
  static int const event = profile::event("MatSubmatrix");
  profile::Scope const scope(event);
  auto const mine = A.to_rows();
  agree(plan_->rows.comm(), [&] {
    ASTERISM_REQUIRE(A.dtype() == plan_->dtype, dtype, "submatrix: the matrix is {} now, it was {}.", name_of(A.dtype()),
                     name_of(plan_->dtype));
    ASTERISM_REQUIRE(pattern_of(mine) == plan_->pattern, value,
                     "submatrix: the matrix has other entries than before ({} here now). Extract anew.", mine.columns.size());
  });
  plan_->take_values(mine);
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
  auto B = Submatrix(A, order_, order_).matrix();
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
