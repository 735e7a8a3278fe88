#include "asterism/direct/distributed/top_assembly.hpp"

#include <algorithm>
#include <utility>

#include "asterism/direct/distributed/block_column.kernels.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

std::size_t at(std::int64_t i) { return std::size_t(i); }

}  // namespace

void TopAssembly::place(std::int32_t i, std::int32_t j, Ints& rows, Ints& columns) const {
  auto const& starts = parts_.top->nodes().starts;
  for (auto& c : columns) c -= starts[at(j)];
  if (i == j) {
    for (auto& r : rows) r -= starts[at(i)];
    return;
  }
  auto const index = parts_.top->find(i, j);
  auto const all = parts_.top->rows(parts_.top->block(index));
  auto const first = top_.lower->row_in_panel(index);
  for (auto& r : rows) r = std::int32_t(first + (std::lower_bound(all.begin(), all.end(), r) - all.begin()));
}

template <class T>
void TopAssembly::add(Entry<T> const& e) {
  auto const& starts = parts_.top->nodes().starts;
  auto const i = parts_.node_of[at(e.row)], j = parts_.node_of[at(e.column)];
  auto const row_in = [&](std::int32_t I, std::int32_t J, std::int32_t row) {
    auto const index = parts_.top->find(I, J);
    auto const rows = parts_.top->rows(parts_.top->block(index));
    return top_.lower->row_in_panel(index) + (std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
  };
  auto const put = [&](LocalTriangle& to, std::int32_t row, std::int32_t column, T v) {
    auto const I = parts_.node_of[at(row)], J = parts_.node_of[at(column)];
    auto const q = std::int64_t(column - starts[at(J)]);
    if (I == J) reinterpret_cast<T*>(to.diagonal(J))[q * parts_.top->nodes().width(J) + row - starts[at(I)]] += v;
    else reinterpret_cast<T*>(to.panel(J))[q * to.panel_rows(J) + row_in(I, J, row)] += v;
  };
  if (top_.kind != FactorKind::lu) return put(*top_.lower, e.column, e.row, conj(e.value));  // of the upper triangle
  if (i >= j) put(*top_.lower, e.row, e.column, e.value);
  else put(*top_.upper, e.column, e.row, e.value);
}

template <class T>
void TopAssembly::add_updates(NumericFactors& factors) {
  auto const& starts = parts_.top->nodes().starts;
  Ints top_number;  // of this rank's numbers beyond its subtrees
  for (auto const k : parts_.touched)
    for (auto g = starts[at(k)]; g < starts[at(k) + 1]; ++g) top_number.push_back(g);
  Outgoing out;
  std::vector<T> values;
  auto const own = std::int32_t(parts_.own.size());
  for (auto& u : factors.updates) {
    auto const b = std::int64_t(u.rows.size());
    T const* const square = u.square.as<T>();
    Ints rows;
    for (auto const r : u.rows) rows.push_back(top_number[at(r - own)]);
    std::vector<std::size_t> segments{0};
    for (std::size_t r = 1; r < rows.size(); ++r)
      if (parts_.node_of[at(rows[r])] != parts_.node_of[at(rows[r - 1])]) segments.push_back(r);
    segments.push_back(rows.size());
    for (std::size_t c = 0; c + 1 < segments.size(); ++c)
      for (std::size_t r = c; r + 1 < segments.size(); ++r) {
        auto const i = parts_.node_of[at(rows[segments[r]])], j = parts_.node_of[at(rows[segments[c]])];
        auto const m = segments[r + 1] - segments[r], n = segments[c + 1] - segments[c];
        std::int32_t const head[] = {i, j, std::int32_t(m), std::int32_t(n)};
        auto const to = top_.lower->grid().owner(i, j);
        if (to == comm_.rank()) {
          Ints mine(rows.begin() + segments[r], rows.begin() + segments[r + 1]),
              columns(rows.begin() + segments[c], rows.begin() + segments[c + 1]);
          place(i, j, mine, columns);
          auto const add = [&](std::byte* target, std::int64_t leading) {
            kernel::add_block(std::int64_t(m), std::int64_t(n), square + std::int64_t(segments[c]) * b + std::int64_t(segments[r]), b,
                              mine.data(), columns.data(), reinterpret_cast<T*>(target), leading);
          };
          if (i == j) {
            add(top_.lower->diagonal(j), parts_.top->nodes().width(j));
            continue;
          }
          add(top_.lower->panel(j), top_.lower->panel_rows(j));
          if (top_.kind != FactorKind::lu) continue;
          auto* const panel = reinterpret_cast<T*>(top_.upper->panel(j));
          for (std::size_t p = 0; p < m; ++p)
            for (std::size_t q = 0; q < n; ++q)
              panel[columns[q] * top_.upper->panel_rows(j) + mine[p]] +=
                  square[std::int64_t(segments[r] + p) * b + std::int64_t(segments[c] + q)];
          continue;
        }
        values.clear();
        for (auto q = segments[c]; q < segments[c + 1]; ++q) {
          T const* const column = square + std::int64_t(q) * b;
          values.insert(values.end(), column + segments[r], column + segments[r + 1]);
        }
        if (top_.kind == FactorKind::lu && i > j)
          for (auto q = segments[c]; q < segments[c + 1]; ++q)
            for (auto p = segments[r]; p < segments[r + 1]; ++p) values.push_back(square[std::int64_t(p) * b + std::int64_t(q)]);
        out.put(to, head, 4);
        out.put(to, rows.data() + segments[r], m);
        out.put(to, rows.data() + segments[c], n);
        out.put(to, values.data(), values.size());
      }
    u = {};
  }
  factors.updates.clear();
  for (auto const& parcel : comm::exchange(comm_, out.take())) {
    auto const* from = parcel.data.data();
    auto const* const end = from + parcel.data.size();
    while (from < end) {
      std::int32_t head[4];
      read(from, head, 4);
      auto const [i, j, m, n] = head;
      Ints rows(at(m)), columns(at(n));
      read(from, rows.data(), rows.size());
      read(from, columns.data(), columns.size());
      place(i, j, rows, columns);
      auto const add = [&](std::byte* to, std::int64_t leading) {
        values.resize(at(m) * at(n));
        read(from, values.data(), values.size());
        kernel::add_block(m, n, values.data(), m, rows.data(), columns.data(), reinterpret_cast<T*>(to), leading);
      };
      if (i == j) {
        add(top_.lower->diagonal(j), parts_.top->nodes().width(j));
        continue;
      }
      add(top_.lower->panel(j), top_.lower->panel_rows(j));
      if (top_.kind == FactorKind::lu) add(top_.upper->panel(j), top_.upper->panel_rows(j));
    }
  }
}

#define ASTERISM_INSTANTIATE(T)                    \
  template void TopAssembly::add(Entry<T> const&); \
  template void TopAssembly::add_updates<T>(NumericFactors&);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct
