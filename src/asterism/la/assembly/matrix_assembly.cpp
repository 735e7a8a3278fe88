// Matrices from rows and from entries.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "asterism/base/profile.hpp"
#include "asterism/la/assembly/ascending_rows.kernels.hpp"
#include "asterism/la/assembly/assembly.hpp"

namespace asterism::la {

namespace {

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

/// Rows whose columns ascend, each once.
template <class T, class I>
struct AscendingRows {
  std::vector<I> offsets;
  Array columns, values;

  /// Of rows in any order; values of one column are added in theirs.
  AscendingRows(std::int64_t n, I const* from, I const* given_columns, T const* given_values)
      : offsets(std::size_t(n) + 1, 0), columns(std::size_t(from[n]) * sizeof(I)), values(std::size_t(from[n]) * sizeof(T)) {
    auto* const c = columns.as<I>();
    auto* const v = values.template as<T>();
    device::Executor executor;
    kernel::ascending_rows(executor, n, from, given_columns, given_values, offsets.data() + 1, c, v);
    // those that became shorter move together
    for (std::size_t r = 0; r < std::size_t(n); ++r) {
      auto const at = offsets[r], count = offsets[r + 1];
      if (at < from[r]) std::copy_n(c + from[r], count, c + at), std::copy_n(v + from[r], count, v + at);
      offsets[r + 1] = at + count;
    }
  }
};

}  // namespace

template <class I>
Matrix Matrix::from_rows(Layout const& rows, Layout const& columns, Dtype dtype, std::span<I const> offsets, std::span<I const> cols,
                         void const* values) {
  static int const event = profile::event("MatAssemble");
  profile::Scope const scope(event);
  auto const n = rows.local_size();
  int descents = 0;
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
      ASTERISM_REQUIRE(std::int64_t(offsets[std::size_t(r) + 1]) <= std::int64_t(cols.size()), value,
                       "from_rows: local row {} ends at {}, but there are {} columns given.", r, offsets[std::size_t(r) + 1], cols.size());
      std::int64_t last = -1;
      for (auto p = offsets[std::size_t(r)]; p < offsets[std::size_t(r) + 1]; ++p) {
        auto const c = std::int64_t(cols[std::size_t(p)]);
        ASTERISM_REQUIRE(c >= 0 && c < width, value, "from_rows: global row {} has column {} outside [0, {}).", rows.begin() + r, c, width);
        descents |= int(c <= last);  // no branch: in rows in any order it would be a coin toss
        last = c;
      }
    }
  });
  Csr diagonal, coupling;
  std::vector<std::int64_t> ghosts;
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const split = [&](I const* ptr, I const* col, T const* val) {
      split_blocks<T, I>(columns, std::int32_t(n), ptr, col, val, diagonal, coupling, ghosts);
    };
    auto const* const given = static_cast<T const*>(values);
    if (descents == 0) return split(offsets.data(), cols.data(), given);
    AscendingRows<T, I> const ascending(n, offsets.data(), cols.data(), given);  // each rank's own affair
    split(ascending.offsets.data(), ascending.columns.template as<I>(), ascending.values.template as<T>());
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
  std::array const stacks{single_entries(rows, "coo", i, j)};
  // all of it by rows already, as files often are
  std::vector<I> offsets;
  auto const resize = [&](std::int64_t n, I value) {
    try {
      offsets.resize(std::size_t(n) + 1, value);
    } catch (std::bad_alloc const&) {
      fail(ErrorKind::memory, "coo: out of memory: {} bytes for where {} rows of one rank begin cannot be allocated. Use more ranks.",
           (std::size_t(n) + 1) * sizeof(I), n);
    }
  };
  bool ordered = columns.global_size() > 0;
  for (std::size_t e = 0; e < i.size() && ordered; ++e) {
    ordered = rows.owns(i[e]) && j[e] >= 0 && j[e] < columns.global_size() &&
              (e == 0 || i[e] > i[e - 1] || (i[e] == i[e - 1] && j[e] > j[e - 1]));
    if (ordered) resize(std::int64_t(i[e]) - rows.begin(), I(e));
  }
  if (rows.comm().min(std::int64_t(ordered ? 1 : 0)) > 0) {
    resize(rows.local_size(), I(i.size()));
    return from_rows<I>(rows, columns, dtype, offsets, j, values);
  }
  Assembly const once(rows, columns, std::span<EntryStack<I> const>(stacks), Remote::send, "coo");
  auto const bytes = size_of(dtype) * i.size();
  return once.matrix(Vector::wrap(once.entries(), dtype, 1, Array::wrap(const_cast<void*>(values), bytes, nullptr)));
}
template Matrix Matrix::from_coo<std::int32_t>(Layout const&, Layout const&, Dtype, std::span<std::int32_t const>,
                                               std::span<std::int32_t const>, void const*);
template Matrix Matrix::from_coo<std::int64_t>(Layout const&, Layout const&, Dtype, std::span<std::int64_t const>,
                                               std::span<std::int64_t const>, void const*);

}  // namespace asterism::la
