#include "asterism/la/ordering/diagonal.hpp"

#include <algorithm>
#include <vector>

namespace asterism::la {

Diagonal look_at_diagonal(Csr const& a, std::span<double const> row_scale, std::span<double const> column_scale,
                          std::span<std::int32_t const> column_of_row) {
  Diagonal out;
  with_dtype(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const ptr = a.row_offsets();
    auto const col = a.column_indices();
    auto const val = a.entries<T>();
    std::vector<double> of_row(std::size_t(a.rows), 0), of_column(std::size_t(a.cols), 0), diagonal(std::size_t(a.rows), 0);
    auto const place = [&](std::size_t i) { return column_of_row.empty() ? i : std::size_t(column_of_row[i]); };
    for (std::size_t i = 0; i < std::size_t(a.rows); ++i)
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
        auto size = double(magnitude(val[p]));
        if (!row_scale.empty()) size *= row_scale[i] * column_scale[std::size_t(col[p])];
        auto& column = of_column[std::size_t(col[p])];
        column = std::max(column, size);
        of_row[i] = std::max(of_row[i], size);
        if (std::size_t(col[p]) == place(i)) diagonal[i] = size;
      }
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      out.zeros += diagonal[i] == 0;
      out.weak += diagonal[i] <= weak_diagonal * std::min(of_row[i], of_column[place(i)]);
    }
  });
  return out;
}

}  // namespace asterism::la
