#include "asterism/la/products/rows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/device/parallel.hpp"

namespace asterism::la {

using i32 = std::int32_t;
using i64 = std::int64_t;

i32 ColumnMap::local(i64 g) const {
  if (g >= begin && g < begin + own) return below + i32(g - begin);
  auto const at = i32(std::lower_bound(ghosts.begin(), ghosts.end(), g) - ghosts.begin());
  return at < below ? at : at + own;
}

ColumnMap ColumnMap::make(Layout const& layout, std::vector<i64> ghosts) {
  ColumnMap m;
  m.begin = layout.begin();
  m.own = i32(layout.local_size());
  m.ghosts = std::move(ghosts);
  m.below = i32(std::lower_bound(m.ghosts.begin(), m.ghosts.end(), m.begin) - m.ghosts.begin());
  checked_local_index(layout.local_size() + i64(m.ghosts.size()), "columns with ghosts of one rank");
  return m;
}

Halo::Halo(Layout const& layout, ColumnMap const& map) : below_(map.below), active_(layout.comm().size() > 1) {
  if (!active_) return;
  std::vector<i64> leaves(map.ghosts.size());
  std::vector<comm::RemoteRoot> remote(map.ghosts.size());
  for (std::size_t g = 0; g < leaves.size(); ++g) {
    leaves[g] = i64(g) < map.below ? i64(g) : i64(g) + map.own;
    auto const r = layout.owner(map.ghosts[g]);
    remote[g] = {r, map.ghosts[g] - layout.first_of(r)};
  }
  forest_ = comm::StarForest(layout.comm(), layout.local_size(), std::move(leaves), remote, map.size());
  forest_.set_name("multigrid set-up");
}

template <class T>
Rows<T> rows_of(Matrix const& A) {
  Rows<T> r;
  auto const& D = A.diagonal_block();
  r.count = D.rows;
  r.map = ColumnMap::make(A.domain(), A.ghosts());
  if (A.comm().size() == 1) {
    r.ptr = Buffer<i64>(D.offsets);
    r.col = Buffer<i32>(D.columns);
    r.val = Buffer<T>(D.values);
    return r;
  }
  auto const& O = A.coupling_block();
  auto const nnz = D.nnz() + O.nnz();
  r.ptr = Buffer<i64>(r.count + 1);
  r.col = Buffer<i32>(nnz);
  r.val = Buffer<T>(nnz);
  auto const *dp = D.offsets.as<i64>(), *op = O.offsets.as<i64>();
  auto const *dc = D.columns.as<i32>(), *oc = O.columns.as<i32>();
  auto const *dv = D.values.as<T>(), *ov = O.values.as<T>();
  device::Executor executor;
  device::parallel_for(executor, r.count + 1, [=, to = r.ptr.data()](i64 i) { to[i] = dp[i] + op[i]; });
  device::parallel_for(executor, r.count, [=, below = r.map.below, own = r.map.own, tc = r.col.data(), tv = r.val.data()](i64 i) {
    auto at = dp[i] + op[i];
    auto q = op[i];
    for (auto const end = op[i + 1]; q < end && oc[q] < below; ++q, ++at) tc[at] = oc[q], tv[at] = ov[q];
    for (auto p = dp[i], end = dp[i + 1]; p < end; ++p, ++at) tc[at] = dc[p] + below, tv[at] = dv[p];
    for (auto const end = op[i + 1]; q < end; ++q, ++at) tc[at] = oc[q] + own, tv[at] = ov[q];
  });
  return r;
}

template <class T>
void take_values(Rows<T>& rows, Matrix const& A) {
  auto const& D = A.diagonal_block();
  if (A.comm().size() == 1) return (void)(rows.val = Buffer<T>(D.values));
  auto const& O = A.coupling_block();
  auto const *dp = D.offsets.as<i64>(), *op = O.offsets.as<i64>();
  auto const *dv = D.values.as<T>(), *ov = O.values.as<T>();
  device::Executor executor;
  device::parallel_ranges(
      executor, rows.count,
      [=, col = rows.col.data(), ptr = rows.ptr.data(), to = rows.val.data(), below = rows.map.below](i64 begin, i64 end) {
        for (auto i = begin; i < end; ++i) {
          auto const first = i;
          while (i < end && op[i] == op[i + 1]) ++i;
          std::copy(dv + dp[first], dv + dp[i], to + ptr[first]);  // rows without columns of other ranks
          if (i == end) break;
          auto at = ptr[i], q = op[i];
          for (; q < op[i + 1] && col[at] < below; ++q) to[at++] = ov[q];
          at = i64(std::copy(dv + dp[i], dv + dp[i + 1], to + at) - to);
          std::copy(ov + q, ov + op[i + 1], to + at);
        }
      });
}

template <class T>
Matrix matrix_of(Rows<T> const& r, Layout const& row_layout, Layout const& columns) {
  Csr D, O;
  D.dtype = O.dtype = dtype_v<T>;
  D.rows = O.rows = r.count;
  D.cols = i32(columns.local_size());
  if (columns.comm().size() == 1) {
    D.offsets = r.ptr.array();
    D.columns = r.col.array();
    D.values = r.val.array();
    O = Csr(dtype_v<T>, r.count, 0, 0);
    return Matrix::from_blocks(row_layout, columns, std::move(D), std::move(O), {});
  }
  // those of a row in the diagonal block follow each other
  i32 const below = r.map.below, own = r.map.own;
  auto const* const rp = r.ptr.data();
  auto const* const rc = r.col.data();
  auto const* const rv = r.val.data();
  auto const inside = [=](i64 i) {
    auto first = rp[i], last = rp[i + 1];
    while (first < last && rc[first] < below) ++first;
    while (first < last && rc[last - 1] >= below + own) --last;
    return std::pair(first, last);
  };
  Buffer<i64> before(r.count + 1);  // entries of the diagonal block in earlier rows
  device::Executor executor;
  device::parallel_for(executor, r.count, [=, n = before.data()](i64 i) {
    auto const [first, last] = inside(i);
    n[i + 1] = last - first;
  });
  before[0] = 0;
  for (i32 i = 0; i < r.count; ++i) before[i + 1] += before[i];
  D = Csr(dtype_v<T>, r.count, i32(columns.local_size()), before[r.count]);
  O = Csr(dtype_v<T>, r.count, i32(r.map.ghosts.size()), r.nnz() - before[r.count]);
  auto *const dp = D.offsets.template as<i64>(), *const op = O.offsets.template as<i64>();
  auto *const dc = D.columns.template as<i32>(), *const oc = O.columns.template as<i32>();
  auto *const dv = D.values.template as<T>(), *const ov = O.values.template as<T>();
  device::parallel_for(executor, r.count, [=, n = before.data()](i64 i) {
    auto const [first, last] = inside(i);
    auto d = n[i], o = rp[i] - n[i];
    dp[i + 1] = n[i + 1];
    op[i + 1] = rp[i + 1] - n[i + 1];
    for (auto p = first; p < last; ++p, ++d) dc[d] = rc[p] - below, dv[d] = rv[p];
    for (auto p = rp[i]; p < first; ++p, ++o) oc[o] = rc[p], ov[o] = rv[p];
    for (auto p = last; p < rp[i + 1]; ++p, ++o) oc[o] = rc[p] - own, ov[o] = rv[p];
  });
  return Matrix::from_blocks(row_layout, columns, std::move(D), std::move(O), r.map.ghosts);
}

template <class T>
Matrix matrix_of(Rows<T>&& rows, Layout const& row_layout, Layout const& columns) {
  Rows<T> const r = std::move(rows);
  auto const alone = [](device::Array const& a) { return a.buffer().use_count() <= 1; };
  if (columns.comm().size() == 1 || r.count == 0 || device::host::team_size() > 1 || !alone(r.ptr.array()) || !alone(r.col.array()) ||
      !alone(r.val.array()))
    return matrix_of(r, row_layout, columns);
  i32 const below = r.map.below, above = below + r.map.own;
  auto* const ptr = r.ptr.data();
  auto* const col = r.col.data();
  auto* const val = r.val.data();
  i64 outside = 0;
  for (i64 p = 0; p < r.nnz(); ++p) outside += col[p] < below || col[p] >= above;
  Csr O(dtype_v<T>, r.count, i32(r.map.ghosts.size()), outside);
  auto* const op = O.offsets.template as<i64>();
  auto* const oc = O.columns.template as<i32>();
  auto* const ov = O.values.template as<T>();
  i64 begin = 0, d = 0, o = 0;
  op[0] = 0;
  for (i32 i = 0; i < r.count; ++i) {
    auto const end = ptr[i + 1];
    auto p = begin;
    for (; p < end && col[p] < below; ++p, ++o) oc[o] = col[p], ov[o] = val[p];
    for (; p < end && col[p] < above; ++p, ++d) col[d] = col[p] - below, val[d] = val[p];
    for (; p < end; ++p, ++o) oc[o] = col[p] - r.map.own, ov[o] = val[p];
    ptr[i + 1] = d;
    op[i + 1] = o;
    begin = end;
  }
  Csr D;
  D.dtype = dtype_v<T>;
  D.rows = r.count;
  D.cols = i32(columns.local_size());
  D.offsets = r.ptr.array();
  D.columns = r.col.array().view(0, std::size_t(d) * sizeof(i32));
  D.values = r.val.array().view(0, std::size_t(d) * sizeof(T));
  return Matrix::from_blocks(row_layout, columns, std::move(D), std::move(O), r.map.ghosts);
}

template <class T>
GhostRows<T> ghost_rows(Layout const& B_rows, ColumnMap const& map,
                        std::function<void(i32, std::vector<i64>&, std::vector<T>&)> const& append_row) {
  // ask the owners, who answer with lengths, columns and values
  auto const& comm = B_rows.comm();
  std::vector<comm::Parcel> asks;
  for (std::size_t g = 0; g < map.ghosts.size();) {
    int const r = B_rows.owner(map.ghosts[g]);
    auto const end = B_rows.first_of(r + 1);
    auto const first = g;
    while (g < map.ghosts.size() && map.ghosts[g] < end) ++g;
    comm::Parcel p{r, {}};
    comm::append<i64>(p.data, std::span(map.ghosts).subspan(first, g - first));
    asks.push_back(std::move(p));
  }
  std::vector<comm::Parcel> answers;
  for (auto const& ask : comm::exchange(comm, std::move(asks))) {
    GhostRows<T> rows;
    for (auto const g : comm::items_of<i64>(ask.data)) {
      auto const before = rows.columns.size();
      append_row(i32(g - B_rows.begin()), rows.columns, rows.values);
      rows.lengths.push_back(i64(rows.columns.size() - before));
    }
    comm::Parcel p{ask.rank, {}};
    comm::append<i64>(p.data, rows.lengths);
    comm::append<i64>(p.data, rows.columns);
    comm::append<T>(p.data, rows.values);
    answers.push_back(std::move(p));
  }
  GhostRows<T> out;
  std::size_t g = 0;
  for (auto const& a : comm::exchange(comm, std::move(answers))) {
    std::size_t n = 0;
    auto const end = B_rows.first_of(a.rank + 1);
    while (g + n < map.ghosts.size() && map.ghosts[g + n] < end) ++n;
    auto const* at = a.data.data();
    auto const take = [&at](auto* to, std::size_t count) {
      if (count > 0) std::memcpy(static_cast<void*>(to), at, count * sizeof *to);
      at += count * sizeof *to;
    };
    std::vector<i64> l(n);
    take(l.data(), n);
    auto const total = std::size_t(std::accumulate(l.begin(), l.end(), i64(0)));
    auto const c0 = out.columns.size();
    out.columns.resize(c0 + total);
    out.values.resize(c0 + total);
    take(out.columns.data() + c0, total);
    take(out.values.data() + c0, total);
    out.lengths.insert(out.lengths.end(), l.begin(), l.end());
    g += n;
  }
  return out;
}

ColumnMap joined(ColumnMap const& map, std::span<i64 const> columns, Layout const& layout) {
  std::vector<i64> ghosts(map.ghosts);
  for (auto const c : columns)
    if (!layout.owns(c)) ghosts.push_back(c);
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  return ColumnMap::make(layout, std::move(ghosts));
}

std::vector<i32> renumbering(ColumnMap const& from, ColumnMap const& to) {
  std::vector<i32> out(std::size_t(from.size()));
  for (i32 l = 0; l < from.size(); ++l) out[std::size_t(l)] = to.local(from.global(l));
  return out;
}

template <class T>
GhostRows<T> ghost_rows(Rows<T> const& B, Layout const& B_rows, ColumnMap const& map) {
  return ghost_rows<T>(B_rows, map, [&](i32 i, std::vector<i64>& columns, std::vector<T>& values) {
    for (auto p = B.ptr[i]; p < B.ptr[i + 1]; ++p) columns.push_back(B.map.global(B.col[p]));
    values.insert(values.end(), B.val.data() + B.ptr[i], B.val.data() + B.ptr[i + 1]);
  });
}

template <class T>
Rows<T> with_ghost_rows(Rows<T> const& B, Layout const& B_rows, Layout const& B_columns, ColumnMap const& map) {
  if (B_rows.comm().size() == 1) return B;
  auto const far = ghost_rows(B, B_rows, map);
  Rows<T> out;
  out.map = joined(B.map, far.columns, B_columns);
  out.count = map.size();
  out.ptr = Buffer<i64>(out.count + 1);
  auto const total = B.nnz() + i64(far.columns.size());
  out.col = Buffer<i32>(total);
  out.val = Buffer<T>(total);
  auto const renumber = renumbering(B.map, out.map);
  // those of lower ranks, mine, those of higher ranks
  i64 at = 0, from = 0;
  std::size_t ghost = 0;
  auto const append_far = [&](i32 first, i32 last) {
    for (i32 i = first; i < last; ++i, ++ghost) {
      out.ptr[i] = at;
      for (i64 e = 0; e < far.lengths[ghost]; ++e, ++from, ++at)
        out.col[at] = out.map.local(far.columns[std::size_t(from)]), out.val[at] = far.values[std::size_t(from)];
    }
  };
  append_far(0, map.below);
  device::Executor executor;
  device::parallel_for(executor, B.count, [to = out.ptr.data() + map.below, ptr = B.ptr.data(), at](i64 i) { to[i] = at + ptr[i]; });
  device::parallel_for(executor, B.nnz(),
                       [tc = out.col.data() + at, tv = out.val.data() + at, col = B.col.data(), val = B.val.data(),
                        number = renumber.data()](i64 p) { tc[p] = number[col[p]], tv[p] = val[p]; });
  at += B.nnz();
  append_far(map.below + map.own, out.count);
  out.ptr[out.count] = at;
  return out;
}

namespace {
i32 begin_of_share(i32 n, i64 const* work, i64 share, i64 shares) {
  if (share == 0 || share == shares) return share == 0 ? 0 : n;
  return i32(std::lower_bound(work, work + n, work[n] / shares * share) - work);
}
}  // namespace

template <class T>
Rows<T> transpose(Rows<T> const& B, Layout const& rows, Layout const& columns, bool conjugate, comm::Cancellation& cancel) {
  auto const mirrored = [conjugate](T v) { return conjugate ? conj(v) : v; };
  struct Entry {
    i64 row, col;
    T val;
  };
  auto const& comm = rows.comm();
  // entries of other ranks' columns travel; sources arrive in rank order, so inner indices ascend
  std::vector<comm::Parcel> parcels;
  if (comm.size() > 1) {
    std::vector<std::vector<Entry>> to(static_cast<std::size_t>(comm.size()));
    std::vector<int> owner(B.map.ghosts.size());
    for (std::size_t g = 0; g < owner.size(); ++g) owner[g] = columns.owner(B.map.ghosts[g]);
    for (i32 i = 0; i < B.count; ++i)
      for (auto p = B.ptr[i]; p < B.ptr[i + 1]; ++p)
        if (i32 const c = B.col[p]; !B.map.is_own(c)) {
          auto const g = std::size_t(c < B.map.below ? c : c - B.map.own);
          to[std::size_t(owner[g])].push_back({B.map.ghosts[g], rows.begin() + i, mirrored(B.val[p])});
        }
    for (int r = 0; r < comm.size(); ++r)
      if (!to[std::size_t(r)].empty()) {
        comm::Parcel p{r, {}};
        comm::append<Entry>(p.data, to[std::size_t(r)]);
        parcels.push_back(std::move(p));
      }
    parcels = comm::exchange(comm, std::move(parcels));
  }
  std::vector<std::vector<Entry>> received;
  std::vector<i64> ghosts;
  for (auto const& p : parcels) {
    std::vector<Entry> e(p.data.size() / sizeof(Entry));
    std::memcpy(static_cast<void*>(e.data()), p.data.data(), p.data.size());
    for (auto const& x : e) ghosts.push_back(x.col);
    received.push_back(std::move(e));
  }
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  Rows<T> t;
  t.count = B.map.own;
  t.map = ColumnMap::make(rows, std::move(ghosts));
  t.ptr = Buffer<i64>(t.count + 1);
  auto const begin = columns.begin();
  auto const each_received = [&](bool lower, auto const& f) {
    for (std::size_t s = 0; s < received.size(); ++s)
      if ((parcels[s].rank < comm.rank()) == lower)
        for (auto const& e : received[s]) f(i32(e.row - begin), t.map.local(e.col), e.val);
  };
  i32 const below = B.map.below, own = B.map.own;
  auto const* const bc = B.col.data();
  auto const* const bp = B.ptr.data();
  auto const* const bv = B.val.data();
  // each share of the rows counts its entries of each row of t, and so knows where its own go
  auto const shares = std::clamp<i64>(B.nnz() / std::max(t.count, 1), 1, device::host::team_size());
  Buffer<i32> counts(shares * own, 0);
  device::Executor executor;
  auto const in_shares_of_rows = [&](auto const& f) {
    device::parallel_ranges(
        executor, shares,
        [&](i64 b, i64 e) {
          for (auto s = b; s < e; ++s) f(begin_of_share(B.count, bp, s, shares), begin_of_share(B.count, bp, s + 1, shares), s * own);
        },
        1);
  };
  in_shares_of_rows([&](i32 first, i32 last, i64 at) {
    auto* const count = counts.data() + at;
    if (first == last) return;
    for (i64 p = bp[first], end = bp[last]; p < end; ++p)
      if (i32 const c = bc[p] - below; c >= 0 && c < own) ++count[c];
  });
  // where the next entry of a row of t goes: of lower ranks, of each share, of higher ranks
  Buffer<i64> before(own, i64(0)), next(shares * own), after(own, i64(0));
  each_received(true, [&](i32 r, i32, T) { ++before[r]; });
  each_received(false, [&](i32 r, i32, T) { ++after[r]; });
  i64 total = 0;
  for (i32 r = 0; r < own; ++r) {
    t.ptr[r] = total;
    total += std::exchange(before[r], total);
    for (i64 s = 0; s < shares; ++s) {
      next[s * own + r] = total;
      total += counts[s * own + r];
    }
    total += std::exchange(after[r], total);
  }
  t.ptr[own] = total;
  t.col = Buffer<i32>(total);
  t.val = Buffer<T>(total);
  auto const put_at = [&](Buffer<i64> const& places) {
    return [&](i32 r, i32 c, T v) {
      auto const at = places[r]++;
      t.col[at] = c;
      t.val[at] = v;
    };
  };
  each_received(true, put_at(before));
  in_shares_of_rows([&, tc = t.col.data(), tv = t.val.data(), own_begin = t.map.below](i32 first, i32 last, i64 share_at) {
    auto* const to = next.data() + share_at;
    for (i32 i = first; i < last; ++i) {
      if (is_look(i) && cancel.requested()) return;
      for (auto p = bp[i]; p < bp[i + 1]; ++p)
        if (i32 const c = bc[p] - below; c >= 0 && c < own) {
          auto const at = to[c]++;
          tc[at] = own_begin + i;
          tv[at] = mirrored(bv[p]);
        }
    }
  });
  cancel.throw_if_requested();
  each_received(false, put_at(after));
  return t;
}

template <class T>
void Piece<T>::reserve(i64 n) {
  Buffer<i32> c(n * times);
  Buffer<T> v(n * times);
  std::copy_n(col.data(), size, c.data());
  std::copy_n(val.data(), size, v.data());
  col = std::move(c);
  val = std::move(v);
}

void in_shares(i32 n, i64 const* work, std::function<void(i32, i32)> const& f) {
  auto const shares = i64(device::host::team_size());
  device::Executor executor;
  device::parallel_ranges(
      executor, shares,
      [&](i64 b, i64 e) {
        for (auto s = b; s < e; ++s) f(begin_of_share(n, work, s, shares), begin_of_share(n, work, s + 1, shares));
      },
      1);
}

template <class T>
void append_in_shares(i32 n, i64 const* work, Rows<T>& rows, comm::Cancellation& cancel,
                      std::function<void(i32, i32, Piece<T>&)> const& append) {
  auto const shares = i64(device::host::team_size());
  std::vector<Piece<T>> pieces(static_cast<std::size_t>(shares));
  device::Executor executor;
  device::parallel_ranges(
      executor, shares,
      [&](i64 b, i64 e) {
        for (auto s = b; s < e; ++s) {
          Piece<T> piece;  // of this thread alone: neighbours in the vector share cache lines
          if (s == 0) piece.times = shares;
          append(begin_of_share(n, work, s, shares), begin_of_share(n, work, s + 1, shares), piece);
          pieces[std::size_t(s)] = std::move(piece);
        }
      },
      1);
  cancel.throw_if_requested();
  rows.ptr[0] = 0;
  for (i32 i = 0; i < rows.count; ++i) rows.ptr[i + 1] += rows.ptr[i];
  // the first piece stays where it is if the others have room behind it
  auto const total = rows.ptr[rows.count];
  bool const stays = total > 0 && pieces[0].col.size() >= total;
  if (stays) {
    rows.col = std::move(pieces[0].col);
    rows.val = std::move(pieces[0].val);
    rows.col.shrink(total);
    rows.val.shrink(total);
  } else {
    rows.col = Buffer<i32>(total);
    rows.val = Buffer<T>(total);
  }
  i64 first = stays ? pieces[0].size : 0;
  for (auto s = std::size_t(stays); s < pieces.size(); ++s) {
    auto const piece = std::exchange(pieces[s], {});
    device::parallel_ranges(executor, piece.size, [&, col = piece.col.data(), val = piece.val.data()](i64 b, i64 e) {
      std::copy(col + b, col + e, rows.col.data() + first + b);
      std::copy(val + b, val + e, rows.val.data() + first + b);
    });
    first += piece.size;
  }
}

#define INSTANTIATE(T)                                                                                                                    \
  template Rows<T> rows_of(Matrix const&);                                                                                                \
  template void take_values(Rows<T>&, Matrix const&);                                                                                     \
  template Matrix matrix_of(Rows<T> const&, Layout const&, Layout const&);                                                                \
  template Matrix matrix_of(Rows<T>&&, Layout const&, Layout const&);                                                                     \
  template GhostRows<T> ghost_rows(Layout const&, ColumnMap const&, std::function<void(i32, std::vector<i64>&, std::vector<T>&)> const&); \
  template GhostRows<T> ghost_rows(Rows<T> const&, Layout const&, ColumnMap const&);                                                      \
  template Rows<T> with_ghost_rows(Rows<T> const&, Layout const&, Layout const&, ColumnMap const&);                                       \
  template Rows<T> transpose(Rows<T> const&, Layout const&, Layout const&, bool, comm::Cancellation&);                                    \
  template struct Piece<T>;                                                                                                               \
  template void append_in_shares(i32, i64 const*, Rows<T>&, comm::Cancellation&, std::function<void(i32, i32, Piece<T>&)> const&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Complex<float>)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::la
