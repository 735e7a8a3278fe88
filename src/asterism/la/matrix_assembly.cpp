// Matrices from rows and from entries.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "asterism/base/limits.hpp"
#include "asterism/base/profile.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::la {

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
    return most <= limits().narrow_index ? by_rows(std::int32_t()) : by_rows(std::int64_t());
  });
}
template Matrix Matrix::from_coo<std::int32_t>(Layout const&, Layout const&, Dtype, std::span<std::int32_t const>,
                                               std::span<std::int32_t const>, void const*);
template Matrix Matrix::from_coo<std::int64_t>(Layout const&, Layout const&, Dtype, std::span<std::int64_t const>,
                                               std::span<std::int64_t const>, void const*);

}  // namespace asterism::la
