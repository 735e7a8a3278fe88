#include "asterism/direct/distributed/top_assembly.hpp"

#include <algorithm>
#include <utility>

#include "asterism/direct/at.hpp"
#include "asterism/direct/distributed/block_column.kernels.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

/// Numbers before the values of a block that is sent: they begin at a multiple of 16 bytes.
std::size_t header(std::int64_t rows, std::int64_t columns) { return at((4 + rows + columns + 3) / 4 * 4); }

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
void TopAssembly::add_block(Block const& block, Ints rows, Ints columns, T const* lower, std::int64_t lower_next, T const* upper,
                            std::int64_t upper_next) const {
  auto const [i, j, m, n] = block;
  place(i, j, rows, columns);
  if (i == j) {
    auto* const to = reinterpret_cast<T*>(top_.lower->diagonal(j));
    return kernel::add_block(m, n, lower, lower_next, rows.data(), columns.data(), to, parts_.top->nodes().width(j));
  }
  kernel::add_block(m, n, lower, lower_next, rows.data(), columns.data(), reinterpret_cast<T*>(top_.lower->panel(j)),
                    top_.lower->panel_rows(j));
  if (top_.kind == FactorKind::lu)
    kernel::add_transposed_block(m, n, upper, upper_next, rows.data(), columns.data(), reinterpret_cast<T*>(top_.upper->panel(j)),
                                 top_.upper->panel_rows(j));
}

template <class T>
void TopAssembly::add_updates(NumericFactors& factors) {
  auto const& starts = parts_.top->nodes().starts;
  Ints top_number;  // of this rank's numbers beyond its subtrees
  for (auto const k : parts_.touched)
    for (auto g = starts[at(k)]; g < starts[at(k) + 1]; ++g) top_number.push_back(g);
  auto const own = std::int32_t(parts_.own.size());
  // f(block, its owner, rows of the block, and columns; its first row in the update, and column)
  auto const each_block = [&](RootUpdate const& u, auto const& f) {
    Ints rows;
    for (auto const r : u.rows) rows.push_back(top_number[at(r - own)]);
    std::vector<std::size_t> segments{0};
    for (std::size_t r = 1; r < rows.size(); ++r)
      if (parts_.node_of[at(rows[r])] != parts_.node_of[at(rows[r - 1])]) segments.push_back(r);
    segments.push_back(rows.size());
    auto const part = [&](std::size_t s) { return std::span(rows).subspan(segments[s], segments[s + 1] - segments[s]); };
    for (std::size_t c = 0; c + 1 < segments.size(); ++c)
      for (std::size_t r = c; r + 1 < segments.size(); ++r) {
        auto const of_rows = part(r), of_columns = part(c);
        Block const block{parts_.node_of[at(of_rows[0])], parts_.node_of[at(of_columns[0])], std::int32_t(of_rows.size()),
                          std::int32_t(of_columns.size())};
        f(block, top_.lower->grid().owner(block.i, block.j), of_rows, of_columns, std::int64_t(segments[r]), std::int64_t(segments[c]));
      }
  };
  auto const values_of = [&](Block const& block) {
    return at(block.m) * at(block.n) * (top_.kind == FactorKind::lu && block.i > block.j ? 2 : 1);
  };
  Outgoing out;
  {
    std::vector<std::size_t> bytes(at(comm_.size()), 0);
    for (auto const& u : factors.updates)
      each_block(u, [&](Block const& block, int to, auto...) {
        bytes[at(to)] += header(block.m, block.n) * sizeof(std::int32_t) + values_of(block) * sizeof(T);
      });
    for (int r = 0; r < comm_.size(); ++r)
      if (r != comm_.rank() && bytes[at(r)] > 0) out.reserve(r, bytes[at(r)]);
  }
  Ints head;
  for (auto& u : factors.updates) {
    auto const b = std::int64_t(u.rows.size());
    each_block(u, [&](Block const& block, int to, auto rows, auto columns, std::int64_t first_row, std::int64_t first_column) {
      T const* const lower = u.square.as<T>() + first_column * b + first_row;
      T const* const upper = u.square.as<T>() + first_row * b + first_column;
      if (to == comm_.rank())
        return add_block(block, Ints(rows.begin(), rows.end()), Ints(columns.begin(), columns.end()), lower, b, upper, b);
      head.assign({block.i, block.j, block.m, block.n});
      head.insert(head.end(), rows.begin(), rows.end());
      head.insert(head.end(), columns.begin(), columns.end());
      head.resize(header(block.m, block.n), 0);
      out.put(to, head.data(), head.size());
      for (std::int64_t q = 0; q < block.n; ++q) out.put(to, lower + q * b, std::size_t(block.m));
      if (values_of(block) == at(block.m) * at(block.n)) return;
      for (std::int64_t p = 0; p < block.m; ++p) out.put(to, upper + p * b, std::size_t(block.n));
    });
    u = {};
  }
  factors.updates.clear();
  for (auto const& parcel : comm::exchange(comm_, out.take())) {
    auto const* from = parcel.data.data();
    auto const* const end = from + parcel.data.size();
    while (from < end) {
      std::int32_t found[4];
      std::memcpy(found, from, sizeof found);
      Block const block{found[0], found[1], found[2], found[3]};
      auto const* const numbers = reinterpret_cast<std::int32_t const*>(from) + 4;
      from += header(block.m, block.n) * sizeof(std::int32_t);
      auto const size = std::int64_t(block.m) * block.n;
      auto const* const values = reinterpret_cast<T const*>(from);
      add_block(block, Ints(numbers, numbers + block.m), Ints(numbers + block.m, numbers + block.m + block.n), values, block.m,
                values + size, block.n);
      from += values_of(block) * sizeof(T);
    }
  }
}

#define ASTERISM_INSTANTIATE(T)                    \
  template void TopAssembly::add(Entry<T> const&); \
  template void TopAssembly::add_updates<T>(NumericFactors&);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct
