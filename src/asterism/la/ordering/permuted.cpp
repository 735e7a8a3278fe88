#include "asterism/la/ordering/permuted.hpp"

#include <algorithm>
#include <utility>

namespace asterism::la {
namespace {}  // namespace

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
    std::vector<std::pair<std::int32_t, std::size_t>> order;  // new column, entry
    std::size_t at = 0;
    op[0] = 0;
    for (std::size_t k = 0; k < std::size_t(a.rows); ++k) {
      auto const i = std::size_t(rows[k]);
      order.clear();
      for (auto p = std::size_t(ap[i]); p < std::size_t(ap[i + 1]); ++p) order.emplace_back(place[std::size_t(ac[p])], p);
      std::sort(order.begin(), order.end());
      for (auto const& [column, p] : order) {
        oc[at] = column;
        // in double: one factor may be beyond the range of T and the product within it
        double const by = (row_scale.empty() ? 1 : row_scale[i]) * (column_scale.empty() ? 1 : column_scale[std::size_t(ac[p])]);
        ov[at++] = row_scale.empty() && column_scale.empty() ? av[p] : scaled_by(av[p], by);
      }
      op[k + 1] = std::int64_t(at);
    }
  });
  return out;
}

}  // namespace asterism::la
