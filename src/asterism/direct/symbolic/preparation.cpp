#include "asterism/direct/symbolic/preparation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "asterism/base/dtype.hpp"
#include "asterism/base/error.hpp"

namespace asterism::direct {
namespace {

/// An error with the entry that differs most from its partner's conjugate, if that is more than rounding.
template <class T>
void require_hermitian_values(la::Csr const& a, std::string const& name) {
  auto const other = la::transpose(a, true);
  auto const p = a.row_offsets(), q = other.row_offsets();
  auto const c = a.column_indices(), d = other.column_indices();
  auto const v = a.entries<T>(), w = other.entries<T>();
  std::vector<double> largest(std::size_t(a.rows), 0);
  for (std::int32_t i = 0; i < a.rows; ++i)
    for (auto s = p[std::size_t(i)]; s < p[std::size_t(i) + 1]; ++s)
      largest[std::size_t(i)] = std::max(largest[std::size_t(i)], double(magnitude(v[std::size_t(s)])));
  double worst = 0, difference = 0, beside = 0;
  std::int64_t row = 0, column = 0;
  for (std::int32_t i = 0; i < a.rows; ++i) {
    auto s = std::size_t(p[std::size_t(i)]), t = std::size_t(q[std::size_t(i)]);
    auto const s_end = std::size_t(p[std::size_t(i) + 1]), t_end = std::size_t(q[std::size_t(i) + 1]);
    while (s < s_end || t < t_end) {
      bool const mine = t == t_end || (s < s_end && c[s] <= d[t]), theirs = s == s_end || (t < t_end && d[t] <= c[s]);
      auto const j = mine ? c[s] : d[t];
      auto const by = double(magnitude((mine ? v[s] : T(0)) - (theirs ? w[t] : T(0))));
      auto const lesser = std::min(largest[std::size_t(i)], largest[std::size_t(j)]);
      if (by > worst * lesser)
        worst = lesser > 0 ? by / lesser : std::numeric_limits<double>::infinity(), difference = by, beside = lesser, row = i, column = j;
      s += mine, t += theirs;
    }
  }
  // large entries of other rows, as penalties are, hide nothing
  ASTERISM_REQUIRE(worst <= 1e3 * epsilon_of(a.dtype), value,
                   "{}: the matrix is not Hermitian: the entry in row {}, column {} differs by {} from the conjugate of its partner; the "
                   "largest entry of one of their rows is {}. Use -pc_type lu.",
                   name, row, column, difference, beside);
}

}  // namespace

double power_of_two(double v) {
  if (!(v > 0 && std::isfinite(v))) return 1;
  int exponent = 0;
  double const mantissa = std::frexp(v, &exponent);  // from 0.5 to 1
  return std::ldexp(1.0, mantissa < 0.7071067811865476 ? exponent - 1 : exponent);
}

void require_square_and_finite(la::Csr const& a, std::string const& name) {
  ASTERISM_REQUIRE(a.rows == a.cols, shape, "{}: the matrix is {} x {}; a square one is needed.", name, a.rows, a.cols);
  each_size(a, [&](std::int32_t i, std::int32_t j, double size) {
    ASTERISM_REQUIRE(std::isfinite(size), value, "{}: the entry in row {}, column {} is not finite.", name, i, j);
  });
}

void require_hermitian(la::Csr const& a, std::string const& name) {
  with_dtype(a.dtype, [&](auto tag) { require_hermitian_values<typename decltype(tag)::type>(a, name); });
}

void require_structural_rank(la::Matching const& found, std::int32_t n, std::string const& name) {
  if (found.structural_rank == n) return;
  auto const where = found.empty_row >= 0      ? format("Row {} has no entry that is not zero.", found.empty_row)
                     : found.empty_column >= 0 ? format("Column {} has no entry that is not zero.", found.empty_column)
                                               : std::string("Some rows have entries in too few columns together.");
  fail(ErrorKind::value,
       "{}: the matrix is structurally singular: its structural rank is {} of {}, whatever the values are. {} Look for an equation or "
       "an unknown that is missing; am.least_squares takes singular matrices.",
       name, found.structural_rank, n, where);
}

std::string what_to_try(std::string const& ordering, std::optional<Dtype> dtype, std::vector<std::string> ways) {
  if (ordering != "nd") ways.emplace_back("-pc_factor_mat_ordering_type nd (less fill)");
  if (dtype && real_of(*dtype) == Dtype::float64) ways.emplace_back("-pc_dtype float32");
  std::string out = "Use ";
  for (auto const& way : ways) out += way + ", ";
  return out + (ways.empty() ? "" : "or ") + "an iterative method.";
}

void equilibrate_by_powers_of_two(la::Csr const& a, std::vector<double>& r, std::vector<double>& c) {
  auto const n = std::size_t(a.rows);
  r.assign(n, 1.0);
  c.assign(n, 1.0);
  std::vector<double> of_row(n), of_column(n), sizes;
  sizes.reserve(std::size_t(a.nnz()));
  each_size(a, [&](std::int32_t, std::int32_t, double size) { sizes.push_back(size); });
  auto const ptr = a.row_offsets();
  auto const col = a.column_indices();
  for (int step = 0; step < 12; ++step) {
    std::fill(of_row.begin(), of_row.end(), 0.0);
    std::fill(of_column.begin(), of_column.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (auto p = std::size_t(ptr[i]); p < std::size_t(ptr[i + 1]); ++p) {
        auto const j = std::size_t(col[p]);
        double const scaled = sizes[p] * r[i] * c[j];
        of_row[i] = std::max(of_row[i], scaled);
        of_column[j] = std::max(of_column[j], scaled);
      }
    bool changed = false;
    auto const scale = [&](double& by, double largest) {
      double const more = largest == 0 ? 1 : power_of_two(1 / std::sqrt(largest));
      by *= more;
      changed = changed || more != 1;
    };
    for (std::size_t i = 0; i < n; ++i) scale(r[i], of_row[i]), scale(c[i], of_column[i]);
    if (!changed) break;
  }
}

}  // namespace asterism::direct
