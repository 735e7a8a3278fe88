#include "asterism/direct/distributed/gathered_triangles.hpp"

#include <span>
#include <utility>

#include "asterism/comm/communicator/exchange.hpp"
#include "asterism/direct/at.hpp"
#include "asterism/direct/multifrontal/explicit_triangles.hpp"
#include "asterism/direct/permutations.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

/// Of all ranks.
template <class U>
std::vector<U> all_of(comm::Communicator const& comm, std::vector<U> const& mine) {
  return comm::items_of<U>(comm.all_gather_bytes(std::as_bytes(std::span<U const>(mine))));
}

/// Places of the top's numbers in the order of pivots.
struct Places {
  Ints rows, columns;
};

/// f(k, first place, width) for each diagonal block of the top that this rank has.
template <class F>
void each_diagonal(SharedFactors const& f, F const& call) {
  auto const& nodes = f.parts.top->nodes();
  for (std::int32_t k = 0; k < nodes.count(); ++k)
    if (f.top.lower->owns_diagonal(k)) call(k, f.parts.top_columns[at(nodes.starts[at(k)])], nodes.width(k));
}

template <class T>
void add_top(SharedFactors const& f, Places const& places, TriangleEntries<T>& to) {
  auto const& pattern = *f.parts.top;
  auto const& nodes = pattern.nodes();
  bool const lu = f.top.kind == FactorKind::lu;
  auto const values = [](LocalTriangle const& t, std::int32_t k, bool diagonal) {
    return reinterpret_cast<T const*>(diagonal ? t.diagonal(k) : t.panel(k));
  };
  each_diagonal(f, [&](std::int32_t k, std::int32_t first, std::int32_t w) {
    T const* const l = values(*f.top.lower, k, true);
    for (std::int32_t j = 0; j < w; ++j)
      for (auto i = j; i < w; ++i) to.put_lower(first + i, first + j, l[std::int64_t(j) * w + i]);
    if (!lu) return;
    T const* const u = values(*f.top.upper, k, true);  // transposed
    for (std::int32_t i = 0; i < w; ++i)
      for (auto j = i; j < w; ++j) to.put_upper(first + i, first + j, u[std::int64_t(i) * w + j]);
  });
  for (std::int32_t k = 0; k < pattern.count(); ++k) {
    auto const first = f.parts.top_columns[at(nodes.starts[at(k)])];
    auto const m = f.top.lower->panel_rows(k);
    auto const [begin, end] = pattern.of_column(k);
    for (auto b = begin; b < end; ++b) {
      if (!f.top.lower->owns(b)) continue;
      auto row = f.top.lower->row_in_panel(b);
      for (auto const r : pattern.rows(pattern.block(b))) {
        for (std::int32_t j = 0; j < nodes.width(k); ++j) {
          to.put_lower(places.rows[at(r)], first + j, values(*f.top.lower, k, false)[j * m + row]);
          if (lu) to.put_upper(first + j, places.columns[at(r)], values(*f.top.upper, k, false)[j * m + row]);
        }
        ++row;
      }
    }
  }
}

/// D of all ranks: diagonal, then what is below it.
template <class T>
std::vector<T> all_pivots(comm::Communicator const& comm, SharedFactors const& f) {
  std::vector<Entry<T>> mine;  // column 0: on the diagonal
  if (f.top.kind == FactorKind::hermitian) {
    for (std::size_t p = 0; p < f.parts.own.size(); ++p) {
      mine.push_back({f.parts.own[p], 0, f.numeric.diagonal.as<T>()[p]});
      mine.push_back({f.parts.own[p], 1, f.numeric.lower.as<T>()[p]});
    }
    T const* d = f.top.pivots.as<T>();
    each_diagonal(f, [&](std::int32_t, std::int32_t first, std::int32_t w) {
      for (std::int32_t part = 0; part < 2; ++part)
        for (std::int32_t j = 0; j < w; ++j) mine.push_back({first + j, part, *d++});
    });
  }
  auto const n = at(f.analysis.n);
  std::vector<T> out(2 * n, T(0));
  for (auto const& e : all_of(comm, mine)) out[at(e.row) + at(e.column) * n] = e.value;
  return out;
}

template <class T>
std::pair<la::Csr, la::Csr> gathered(comm::Communicator const& comm, SharedFactors const& f, PivotOrder const& order) {
  auto const& parts = f.parts;
  auto const place_of_row = la::inverse_permutation(order.rows), place_of_column = la::inverse_permutation(order.columns);
  Places const top{in_order(place_of_row, parts.top_columns), in_order(place_of_column, parts.top_columns)};
  // of this rank's numbers: its subtrees' pivots, then what they have entries in
  Ints rows(parts.own), columns(parts.own);
  auto const& starts = parts.top->nodes().starts;
  for (auto const k : parts.touched)
    for (auto g = starts[at(k)]; g < starts[at(k) + 1]; ++g) rows.push_back(top.rows[at(g)]), columns.push_back(top.columns[at(g)]);
  TriangleEntries<T> entries;
  add_fronts<T>(f.numeric, rows, columns, entries);
  add_top<T>(f, top, entries);
  entries.lower = all_of(comm, entries.lower);
  entries.upper = all_of(comm, entries.upper);
  auto const d = all_pivots<T>(comm, f);
  return triangles_of<T>(f.top.kind, f.analysis.n, entries, {f.analysis.n, d.data(), d.data() + f.analysis.n});
}

}  // namespace

PivotOrder pivot_order(comm::Communicator const& comm, SharedFactors const& f) {
  auto const& parts = f.parts;
  struct Pivot {
    std::int32_t place, row, column;
  };
  std::vector<Pivot> mine;
  for (std::size_t p = 0; p < parts.own.size(); ++p)
    mine.push_back({parts.own[p], parts.own[at(f.numeric.row_order[p])], parts.own[at(f.numeric.column_order[p])]});
  each_diagonal(f, [&](std::int32_t k, std::int32_t first, std::int32_t w) {
    auto const* const order = f.top.lower->order(k);
    for (std::int32_t i = 0; i < w; ++i) {
      auto const row = first + (order ? order[i] : i);
      mine.push_back({first + i, row, f.top.kind == FactorKind::lu ? first + i : row});
    }
  });
  PivotOrder out;
  out.rows.resize(at(f.analysis.n)), out.columns = out.rows;
  for (auto const& p : all_of(comm, mine)) out.rows[at(p.place)] = p.row, out.columns[at(p.place)] = p.column;
  return out;
}

std::shared_ptr<ExplicitFactors> gathered_triangles(comm::Communicator const& comm, SharedFactors const& f, std::int64_t entries) {
  auto const& a = f.analysis;
  comm::agree(comm, [&] { require_memory_for_triangles(a.name(), entries, a.dtype); });
  auto const order = pivot_order(comm, f);
  auto [L, U] = with_dtype(a.dtype, [&](auto tag) { return gathered<typename decltype(tag)::type>(comm, f, order); });
  return std::make_shared<ExplicitFactors>(ExplicitFactors{std::move(L), std::move(U), in_order(a.rows, order.rows),
                                                           in_order(a.columns, order.columns), a.row_scale, a.column_scale});
}

}  // namespace asterism::direct
