#include "asterism/precond/amg/prolongation.hpp"

#include <algorithm>
#include <cmath>

#include "asterism/base/profile.hpp"
#include "asterism/base/reproducible_sum.hpp"
#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/device/parallel.hpp"
#include "asterism/la/products/group_sum.hpp"
#include "asterism/la/products/row_shapes.hpp"
#include "asterism/la/products/sparse_sum.hpp"

namespace asterism::precond::amg {
namespace {

using i32 = std::int32_t;
using i64 = std::int64_t;

/// Gram-Schmidt twice on an (r, m) row-major block in place; R is (m, m) with a non-negative diagonal.
/// A column that depends on the others (relative to 1e-10) becomes zero.
template <class T>
void orthonormalise(T* Q, i64 r, i64 m, T* R) {
  std::fill(R, R + m * m, T(0));
  for (i64 j = 0; j < m; ++j) {
    double before = 0;
    for (i64 i = 0; i < r; ++i) before += double(abs2(Q[i * m + j]));
    for (int pass = 0; pass < 2; ++pass)
      for (i64 l = 0; l < j; ++l) {
        T s(0);
        for (i64 i = 0; i < r; ++i) s += conj(Q[i * m + l]) * Q[i * m + j];
        R[l * m + j] += s;
        for (i64 i = 0; i < r; ++i) Q[i * m + j] -= s * Q[i * m + l];
      }
    double after = 0;
    for (i64 i = 0; i < r; ++i) after += double(abs2(Q[i * m + j]));
    bool const keep = after > 1e-20 * before && after > 0;
    double const length = keep ? std::sqrt(after) : 0;
    R[j * m + j] = T(real_t<T>(length));
    T const inverse = T(real_t<T>(keep ? 1 / length : 0));
    for (i64 i = 0; i < r; ++i) Q[i * m + j] = Q[i * m + j] * inverse;
  }
}

/// A diagonal entry and what is lumped to it, unless that turns it around.
template <class T>
T filtered_diagonal(T alone, T weak) {
  T const lumped = alone + weak;
  return double(real(conj(alone) * lumped)) > 0 ? lumped : alone;
}

/// For each unknown of each of the map's nodes what the near-null vector of its component is there; 0 where the node's block of B is not
/// upper triangular with positive numbers on the diagonal. Collective.
template <class T>
Buffer<T> own_modes(NodeGraph const& g, T const* B, i64 bs, i64 m) {
  Buffer<T> out(i64(g.map.size()) * bs, T(0));
  for (i64 v = 0; v < g.count && bs == m; ++v) {
    auto const* const block = B + v * bs * m;
    bool triangular = true;
    for (i64 k = 0; k < bs; ++k) {
      triangular = triangular && double(real(block[k * m + k])) > 0;
      for (i64 j = 0; j < k; ++j) triangular = triangular && block[k * m + j] == T(0);
    }
    for (i64 k = 0; k < bs && triangular; ++k) out[(v + g.map.below) * bs + k] = block[k * m + k];
  }
  g.halo.update(out.data(), bs);
  return out;
}

/// smoothed_prolongation() for one unknown a node and one near-null vector: the common case, without inner loops. Rows that couple to
/// aggregates in the same way, but for a shift of their numbers, share columns, and which terms make each of them.
template <class T>
void scalar_prolongation(Rows<T> const& A, NodeGraph const& g, i32 const* column_of, T const* P0, T const* B, double omega, Rows<T>& P,
                         comm::Cancellation& cancel) {
  constexpr i32 most_terms = 64;               // of rows that are looked for: what a new one takes grows with the square
  i64 const stands_out = g.with_self ? 0 : 1;  // a row's diagonal
  i64 longest = 0;
  for (i32 i = 0; i < A.count; ++i) longest = std::max(longest, A.ptr[i + 1] - A.ptr[i]);
  append_in_shares<T>(A.count, A.ptr.data(), P, cancel, [&, size = P.map.size()](i32 begin, i32 end, Piece<T>& piece) {
    // held here: a store may be one into what the closure points to
    auto const *const ap = A.ptr.data(), *const gp = g.ptr.data();
    auto const *const ac = A.col.data(), *const gc = g.col.data();
    auto const* const av = A.val.data();
    auto const* const column = column_of;
    auto const* const tentative = P0;
    auto const* const modes = B;
    i32 const below = g.map.below;
    la::ProductShapes shapes;
    la::SparseSum<T> sum(size);
    Buffer<i32> const column_buffer(longest);  // of the terms of a row
    Buffer<T> const term_buffer(longest);
    i32* const term_columns = column_buffer.data();
    T* const terms = term_buffer.data();
    std::vector<i32> terms_of;  // of each column of a shape: how many, and which
    la::EntryPlace diagonal_place;
    piece.reserve(gp[end] - gp[begin] + end - begin);  // at most one entry per strong coupling and one for itself
    for (i64 i = begin; i < end; ++i) {
      if (is_look(i) && cancel.requested()) return;
      auto const first = ap[i], last = ap[i + 1];
      i32 n = 0;
      auto const scale_for = [=](T diagonal) { return diagonal == T(0) ? T(0) : T(real_t<T>(-omega)) / diagonal; };
      auto const add = [&](i32 l, T factor, bool counts) {  // written always, kept where l is in an aggregate
        term_columns[n] = column[l];
        terms[n] = factor * tentative[l];
        n += counts & (column[l] >= 0);
      };
      auto const at = diagonal_place(ac, first, last, i32(i) + below);
      T const a_ii = at >= 0 ? av[at] : T(0);
      if (gp[i + 1] - gp[i] == last - first - stands_out) {  // none is weak
        T const scale = scale_for(a_ii);
        for (auto p = first; p < last; ++p) add(ac[p], T(real_t<T>(p == at)) + scale * av[p], true);
      } else {
        // f(p, it is the diagonal, it is strong): which one is strong is a coin toss, so no branch asks
        auto const each = [&](auto const& f) {
          auto strong = gp[i];
          auto const end = gp[i + 1];
          i32 next = strong < end ? gc[strong] : -1;
          for (auto p = first; p < last; ++p) {
            bool const is_strong = ac[p] == next;
            f(p, p == at, is_strong);
            strong += is_strong;
            next = strong < end ? gc[strong] : -1;
          }
        };
        T weak(0);
        each([&](i64 p, bool self, bool is_strong) { weak += self | is_strong ? T(0) : av[p] * modes[ac[p]]; });
        T const mode = modes[i32(i) + below], diagonal = filtered_diagonal(a_ii, mode == T(0) ? T(0) : weak / mode);
        T const scale = scale_for(diagonal);
        each([&](i64 p, bool self, bool is_strong) { add(ac[p], self ? T(1) + scale * diagonal : scale * av[p], self | is_strong); });
      }
      i32* const to = piece.col.data() + piece.size;
      T* const values = piece.val.data() + piece.size;
      bool const looks = n <= most_terms && shapes.pays();
      i32 length;
      i32 const found = looks ? shapes.find(n, [=](i64 t) { return la::RowShape{0, term_columns[t]}; }) : -1;
      if (found >= 0) {
        auto const& shape = shapes[found];
        length = shape.length;
        i32 const *const from = shapes.columns(shape), shift = shapes.shift();
        auto const* next = terms_of.data() + shape.places;
        for (i32 l = 0; l < length; ++l) {
          to[l] = from[l] + shift;
          T total(0);
          for (auto const* const end = next + 1 + *next; ++next < end;) total += terms[*next];
          values[l] = total;
        }
      } else {
        auto const [columns, factors, products] = sum.room_for(n);
        for (i32 t = 0; t < n; ++t) {
          columns[t] = term_columns[t];
          factors[t] = T(1);
          products[t] = terms[t];
        }
        sum.added(n);
        length = sum.take(to, values, true);
        if (looks) {
          if (shapes.is_full()) shapes.forget(false), terms_of.clear();
          shapes.add(to, length, {i64(terms_of.size())});
          for (i32 l = 0; l < length; ++l) {
            auto const at = terms_of.size();
            terms_of.push_back(0);
            for (i32 t = 0; t < n; ++t)
              if (term_columns[t] == to[l]) terms_of.push_back(t);
            terms_of[at] = i32(terms_of.size() - at - 1);
          }
        }
      }
      P.ptr[i + 1] = length;
      piece.size += length;
    }
  });
}

}  // namespace

template <class T>
Tentative<T> tentative_prolongation(NodeGraph const& g, Aggregates const& a, i64 bs, i64 m, T const* B, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGTentative");
  profile::Scope const scope(event);
  auto const& comm = g.layout.comm();
  i32 const below = g.map.below, n = g.count;
  i64 const node_values = bs * m;
  Tentative<T> out;
  out.columns = m;
  out.values = Buffer<T>(i64(g.map.size()) * node_values, T(0));
  auto const my_coarse = a.coarse.local_size(), c0 = a.coarse.begin();
  out.coarse = Buffer<T>(my_coarse * m * m);

  // rows of foreign aggregates travel to their owner and come back orthonormalised, in the same order
  struct Guest {
    int rank;
    std::vector<i64> aggregates;
    std::vector<T> values;
  };
  std::vector<std::vector<i32>> sent(static_cast<std::size_t>(comm.size()));
  std::vector<Guest> guests;
  if (comm.size() > 1) {
    for (i32 v = 0; v < n; ++v)
      if (auto const c = a.of_node[v + below]; c >= 0 && !a.coarse.owns(c)) sent[std::size_t(a.coarse.owner(c))].push_back(v);
    std::vector<comm::Parcel> parcels;
    for (int r = 0; r < comm.size(); ++r) {
      if (sent[std::size_t(r)].empty()) continue;
      std::vector<i64> ids;
      std::vector<T> values;
      for (auto const v : sent[std::size_t(r)]) {
        ids.push_back(a.of_node[v + below]);
        values.insert(values.end(), B + v * node_values, B + (v + 1) * node_values);
      }
      comm::Parcel p{r, {}};
      comm::append<i64>(p.data, ids);
      comm::append<T>(p.data, values);
      parcels.push_back(std::move(p));
    }
    for (auto const& p : comm::exchange(comm, std::move(parcels))) {
      auto const count = p.data.size() / (8 + std::size_t(node_values) * sizeof(T));
      Guest guest{p.rank, std::vector<i64>(count), std::vector<T>(count * std::size_t(node_values))};
      std::memcpy(guest.aggregates.data(), p.data.data(), count * 8);
      std::memcpy(static_cast<void*>(guest.values.data()), p.data.data() + count * 8, guest.values.size() * sizeof(T));
      guests.push_back(std::move(guest));
    }
  }
  // members of my aggregates in global order: guests of lower ranks, mine, guests of higher ranks
  auto const each = [&](auto const& f) {
    for (auto& guest : guests)
      if (guest.rank < comm.rank())
        for (std::size_t e = 0; e < guest.aggregates.size(); ++e) f(guest.aggregates[e] - c0, guest.values.data() + i64(e) * node_values);
    for (i32 v = 0; v < n; ++v)
      if (auto const c = a.of_node[v + below] - c0; c >= 0 && c < my_coarse) f(c, static_cast<T*>(nullptr), v);
    for (auto& guest : guests)
      if (guest.rank > comm.rank())
        for (std::size_t e = 0; e < guest.aggregates.size(); ++e) f(guest.aggregates[e] - c0, guest.values.data() + i64(e) * node_values);
  };
  if (node_values == 1) {  // the common case: a column is divided by its length
    Buffer<double> squares(my_coarse, 0.0);
    each([&](i64 c, T const* guest, i32 v = 0) { squares[c] += double(abs2(guest ? *guest : B[v])); });
    for (i64 c = 0; c < my_coarse; ++c) out.coarse[c] = T(real_t<T>(squares[c] > 0 ? std::sqrt(squares[c]) : 0));
    each([&](i64 c, T* guest, i32 v = 0) {
      auto const length = real(out.coarse[c]);
      T const inverse(length > 0 ? 1 / length : 0);
      (guest ? *guest : out.values[v + below]) = (guest ? *guest : B[v]) * inverse;
    });
  } else {
    Buffer<i64> first(my_coarse + 1, i64(0));
    struct Member {
      T* guest;  // or my node
      i32 node;
    };
    each([&](i64 c, T*, i32 = 0) { ++first[c + 1]; });
    for (i64 c = 0; c < my_coarse; ++c) first[c + 1] += first[c];
    Buffer<Member> members(first[my_coarse]);
    {
      Buffer<i64> next(my_coarse + 1);
      std::copy(first.begin(), first.end(), next.begin());
      each([&](i64 c, T* guest, i32 v = 0) { members[next[c]++] = {guest, v}; });
    }
    device::Executor executor;
    device::parallel_ranges(executor, my_coarse, [&](i64 begin, i64 end) {
      std::vector<T> Q;
      for (i64 c = begin; c < end; ++c) {
        if (is_look(c) && cancel.requested()) return;
        auto const count = first[c + 1] - first[c];
        Q.resize(std::size_t(count * node_values));
        auto const place = [&](i64 e) {
          auto const& x = members[first[c] + e];
          return x.guest ? x.guest : out.values.data() + i64(x.node + below) * node_values;
        };
        for (i64 e = 0; e < count; ++e) {
          auto const& x = members[first[c] + e];
          T const* from = x.guest ? x.guest : B + i64(x.node) * node_values;
          std::copy(from, from + node_values, Q.begin() + e * node_values);
        }
        orthonormalise(Q.data(), count * bs, m, out.coarse.data() + c * m * m);
        for (i64 e = 0; e < count; ++e) std::copy(Q.begin() + e * node_values, Q.begin() + (e + 1) * node_values, place(e));
      }
    });
  }
  cancel.throw_if_requested();
  if (comm.size() > 1) {
    std::vector<comm::Parcel> parcels;
    for (auto const& guest : guests) {
      comm::Parcel p{guest.rank, {}};
      comm::append<T>(p.data, guest.values);
      parcels.push_back(std::move(p));
    }
    for (auto const& p : comm::exchange(comm, std::move(parcels))) {
      std::vector<T> values(p.data.size() / sizeof(T));
      std::memcpy(static_cast<void*>(values.data()), p.data.data(), p.data.size());
      auto const& nodes = sent[std::size_t(p.rank)];
      for (std::size_t e = 0; e < nodes.size(); ++e)
        std::copy(values.begin() + i64(e) * node_values, values.begin() + i64(e + 1) * node_values,
                  out.values.begin() + i64(nodes[e] + below) * node_values);
    }
    g.halo.update(out.values.data(), node_values);
  }
  return out;
}

template <class T>
Rows<T> smoothed_prolongation(Rows<T> const& A, NodeGraph const& g, Aggregates const& a, Tentative<T> const& P0, T const* B, i64 bs,
                              double omega, Layout const& coarse, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGSmoothP");
  profile::Scope const scope(event, double(A.nnz()) * 12);
  i64 const m = P0.columns;
  i32 const below = g.map.below;
  std::vector<i64> ghosts;
  if (coarse.comm().size() > 1) {
    for (i32 l = 0; l < g.map.size(); ++l)
      if (auto const c = a.of_node[l]; c >= 0 && !a.coarse.owns(c))
        for (i64 j = 0; j < m; ++j) ghosts.push_back(c * m + j);
    std::sort(ghosts.begin(), ghosts.end());
    ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  }
  Rows<T> P;
  P.count = A.count;
  P.map = ColumnMap::make(coarse, std::move(ghosts));
  P.ptr = Buffer<i64>(P.count + 1);
  // first local coarse column of each node's aggregate
  auto const column_of_node = [&](i32 l) { return a.of_node[l] < 0 ? -1 : P.map.local(a.of_node[l] * m); };
  Buffer<i32> column_of(g.map.size());
  cancellable_for(cancel, g.map.size(), [&, of = column_of.data()](i64 l) { of[l] = column_of_node(i32(l)); });
  if (bs == 1 && m == 1) {
    Buffer<T> modes(g.map.size());
    std::copy_n(B, A.count, modes.data() + below);
    g.halo.update(modes.data());
    scalar_prolongation(A, g, column_of.data(), P0.values.data(), modes.data(), omega, P, cancel);
    return P;
  }
  auto const modes_of = g.complete ? Buffer<T>() : own_modes(g, B, bs, m);
  // of a scalar column
  Buffer<i32> node_of(A.map.size()), component_of(A.map.size());
  for (i32 l = 0; l < A.map.size(); ++l) {
    auto const global = A.map.global(l);
    node_of[l] = g.map.local(global / bs);
    component_of[l] = i32(global % bs);
  }
  append_in_shares<T>(g.count, g.ptr.data(), P, cancel, [&](i32 first, i32 last, Piece<T>& piece) {
    piece.reserve((last - first) * bs * m * 4);
    la::GroupSum<T> sum(P.map.size(), i32(m));
    auto const* const ac = A.col.data();
    auto const* const av = A.val.data();
    auto const* const gc = g.col.data();
    auto const *const node = node_of.data(), *const component = component_of.data(), *const column = column_of.data();
    T const *const rows_of_P0 = P0.values.data(), *const modes = modes_of.data();
    for (i32 v = first; v < last; ++v) {
      if (is_look(v) && cancel.requested()) return;
      i32 const self = v + below;
      auto const strong_end = g.ptr[v + 1];
      for (i32 k = 0; k < bs; ++k) {
        auto const r = i64(v) * bs + k;
        auto const row = A.ptr[r], end = A.ptr[r + 1];
        // filtered diagonal: weak couplings are lumped
        T alone(0), weak(0);
        auto strong = g.ptr[v];
        for (auto p = row; p < end; ++p) {
          i32 const l = ac[p], w = node[l];
          if (w == self) {
            if (component[l] == k) alone += av[p];
            continue;
          }
          if (g.complete) continue;
          while (strong < strong_end && gc[strong] < w) ++strong;
          // only the same component is lumped: the null space of translations is kept
          if ((strong == strong_end || gc[strong] != w) && component[l] == k) {
            T const here = modes[i64(self) * bs + k], there = modes[i64(w) * bs + k];
            weak += here == T(0) || there == T(0) ? av[p] : av[p] * (there / here);
          }
        }
        T const diagonal = filtered_diagonal(alone, weak);
        T const scale = diagonal == T(0) ? T(0) : T(real_t<T>(-omega)) / diagonal;
        auto const add = [=, &sum](i32 l, i32 w, T factor) {
          if (column[w] >= 0) sum.add(factor, column + w, rows_of_P0 + (i64(w) * bs + component[l]) * m, m);
        };
        strong = g.ptr[v];
        for (auto p = row; p < end; ++p) {
          i32 const l = ac[p], w = node[l];
          if (w == self) {
            add(l, w, component[l] == k ? T(1) + scale * diagonal : scale * av[p]);
            continue;
          }
          if (!g.complete) {
            while (strong < strong_end && gc[strong] < w) ++strong;
            if (strong == strong_end || gc[strong] != w) continue;
          }
          add(l, w, scale * av[p]);
        }
        la::append_row(piece, sum, P.ptr[r + 1], true);
      }
    }
  });
  return P;
}

template <class T>
double spectral_radius(Rows<T> const& A, Layout const& layout, RowFacts<T> const& facts, comm::Cancellation& cancel) {
  static int const event = profile::event("AMGSpectralRadius");
  profile::Scope const scope(event);
  double const bound = facts.row_sum;
  if (bound <= 2.2) return bound;
  i32 const below = A.map.below, n = A.count;
  auto const& comm = layout.comm();
  device::Executor executor;
  Buffer<T> inverse(std::max(n, 1));
  device::parallel_for(executor, n,
                       [inv = inverse.data(), d = facts.diagonal.data()](i64 i) { inv[i] = d[i] == T(0) ? T(0) : T(1) / d[i]; });
  auto const* const ap = A.ptr.data();
  auto const* const ac = A.col.data();
  auto const* const av = A.val.data();

  // Lanczos through the coefficients of CG for D^-1 A, with sums of which neither ranks nor threads change a bit.
  Buffer<T> r(std::max(n, 1)), p(A.map.size() + 1, T(0)), s(std::max(n, 1));
  Halo const halo(layout, A.map);
  auto const exact_dot = [&](T const* x, T const* y, T const* weight) {
    std::vector<i64> sum(ReproducibleSum::words, 0);
    double terms[ReproducibleSum::most];
    for (i64 begin = 0; begin < n; begin += ReproducibleSum::most) {
      int const m = int(std::min<i64>(ReproducibleSum::most, n - begin));
      for (int t = 0; t < m; ++t) {
        auto const i = begin + t;
        terms[t] = double(real(conj(x[i]) * y[i] * (weight ? weight[i] : T(1))));
      }
      ReproducibleSum::add(terms, m, sum.data());
    }
    comm.sum(sum);
    double const v = ReproducibleSum::value(sum);
    return std::isfinite(v) ? v : 0.0;
  };
  device::parallel_for(executor, n, [&](i64 i) {
    std::uint64_t z = std::uint64_t(layout.begin() + i) * 0x9e3779b97f4a7c15ull + 0x1234567ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z ^= z >> 27;
    // of one size in D^-1/2 A D^-1/2, so that no part of the spectrum is missed where the diagonal varies
    auto const w = double(magnitude(inverse[i]));
    r[i] = T(real_t<T>((double(z >> 11) * 0x1.0p-52 - 1.0) * (w > 0 ? 1 / std::sqrt(w) : 1)));
  });
  auto const direction = [&](double beta) {
    device::parallel_for(executor, n, [&](i64 i) { p[i + below] = inverse[i] * r[i] + T(real_t<T>(beta)) * p[i + below]; });
    halo.update(p.data());
  };
  direction(0);
  double rz = exact_dot(r.data(), r.data(), inverse.data()), alpha_old = 1, beta_old = 0;
  std::vector<double> diagonal, off;
  for (int k = 0; k < 10 && rz > 0; ++k) {
    cancel.throw_if_requested();
    device::parallel_for(executor, n, [=, x = p.data(), y = s.data()](i64 i) {
      T sums[4] = {};  // so that fewer adds wait
      auto e = ap[i];
      auto const end = ap[i + 1];
      for (; e + 4 <= end; e += 4)
        for (int l = 0; l < 4; ++l) sums[l] += av[e + l] * x[ac[e + l]];
      for (; e < end; ++e) sums[0] += av[e] * x[ac[e]];
      y[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    });
    double const ps = exact_dot(p.data() + below, s.data(), nullptr);
    if (!(ps > 0)) break;
    double const alpha = rz / ps;
    diagonal.push_back(1 / alpha + (k ? beta_old / alpha_old : 0));
    if (k) off.push_back(std::sqrt(beta_old) / alpha_old);
    device::parallel_for(executor, n, [&](i64 i) { r[i] -= T(real_t<T>(alpha)) * s[i]; });
    double const next = exact_dot(r.data(), r.data(), inverse.data());
    beta_old = next / rz;
    alpha_old = alpha;
    rz = next;
    direction(beta_old);
  }
  if (diagonal.empty()) return bound;
  double lo = 0, hi = bound;
  for (int it = 0; it < 60; ++it) {  // the largest root by the Sturm count
    double const mid = (lo + hi) / 2;
    bool above = false;
    double d = 1;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      d = diagonal[i] - mid - (i ? off[i - 1] * off[i - 1] / d : 0);
      if (d == 0) d = 1e-300;
      above = above || d > 0;
    }
    (above ? lo : hi) = mid;
  }
  return std::min(bound, 1.1 * hi);
}

#define INSTANTIATE(T)                                                                                                                    \
  template Tentative<T> tentative_prolongation(NodeGraph const&, Aggregates const&, i64, i64, T const*, comm::Cancellation&);             \
  template Rows<T> smoothed_prolongation(Rows<T> const&, NodeGraph const&, Aggregates const&, Tentative<T> const&, T const*, i64, double, \
                                         Layout const&, comm::Cancellation&);                                                             \
  template double spectral_radius(Rows<T> const&, Layout const&, RowFacts<T> const&, comm::Cancellation&);
INSTANTIATE(double)
INSTANTIATE(Complex<double>)
#undef INSTANTIATE

}  // namespace asterism::precond::amg
