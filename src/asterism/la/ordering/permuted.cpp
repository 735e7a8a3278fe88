#include "asterism/la/ordering/permuted.hpp"

#include <numeric>

namespace asterism::la {
std::vector<std::int32_t> inverse_permutation(std::span<std::int32_t const> p) {
  std::vector<std::int32_t> out(p.size());
  for (std::size_t k = 0; k < p.size(); ++k) out[std::size_t(p[k])] = std::int32_t(k);
  return out;
}

Csr permuted(Csr const& a, std::span<std::int32_t const> rows, std::span<std::int32_t const> columns, std::span<double const> row_scale,
             std::span<double const> column_scale) {
  auto const place = inverse_permutation(columns);
  auto const ap = a.row_offsets();
  auto const ac = a.column_indices();
  Csr out(a.dtype, a.rows, a.cols, a.nnz());
  auto const op = out.row_offsets();
  auto const oc = out.column_indices();
  with_dtype(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const av = a.entries<T>(), ov = out.entries<T>();
    // by columns, which brings rows in order, and then by rows, which brings columns in order
    std::vector<std::size_t> first(std::size_t(a.cols) + 1, 0);
    for (auto const j : ac) ++first[std::size_t(place[std::size_t(j)]) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    struct Entry {
      std::int32_t row;
      std::size_t from;
    };
    std::vector<Entry> by_column(ac.size());
    op[0] = 0;
    {
      auto next = first;
      for (std::size_t k = 0; k < std::size_t(a.rows); ++k) {
        auto const i = std::size_t(rows[k]);
        op[k + 1] = op[k] + ap[i + 1] - ap[i];
        for (auto p = std::size_t(ap[i]); p < std::size_t(ap[i + 1]); ++p)
          by_column[next[std::size_t(place[std::size_t(ac[p])])]++] = {std::int32_t(k), p};
      }
    }
    std::vector<std::int64_t> next(op.begin(), op.end() - 1);
    bool const scales = !row_scale.empty() || !column_scale.empty();
    for (std::size_t c = 0; c < std::size_t(a.cols); ++c) {
      double const of_column = column_scale.empty() ? 1 : column_scale[std::size_t(columns[c])];
      for (auto e = first[c]; e < first[c + 1]; ++e) {
        auto const [k, p] = by_column[e];
        auto const to = std::size_t(next[std::size_t(k)]++);
        oc[to] = std::int32_t(c);
        // in double: one factor may be beyond the range of T and the product within it
        double const of_row = row_scale.empty() ? 1 : row_scale[std::size_t(rows[std::size_t(k)])];
        ov[to] = scales ? scaled_by(av[p], of_row * of_column) : av[p];
      }
    }
  });
  return out;
}

}  // namespace asterism::la
