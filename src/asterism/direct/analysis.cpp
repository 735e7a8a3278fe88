// Scalings, matching, order and symbolic phase of a sparse factorisation.
#include "asterism/direct/analysis.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "asterism/base/dtype.hpp"
#include "asterism/base/error.hpp"
#include "asterism/direct/permutations.hpp"
#include "asterism/la/ordering/diagonal.hpp"
#include "asterism/la/ordering/matching.hpp"
#include "asterism/la/ordering/ordering.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

double power_of_two(double v) { return v > 0 && std::isfinite(v) ? std::exp2(std::round(std::log2(v))) : 1; }

void check(la::Csr const& a, char const* name) {
  ASTERISM_REQUIRE(a.rows == a.cols, shape, "{}: the matrix is {} x {}; a square one is needed.", name, a.rows, a.cols);
  each_size(a, [&](std::int32_t i, std::int32_t j, double size) {
    ASTERISM_REQUIRE(std::isfinite(size), value, "{}: the entry in row {}, column {} is not finite.", name, i, j);
  });
}

/// An error with the entry that differs most from its partner's conjugate, if that is more than rounding.
template <class T>
void require_hermitian(la::Csr const& a) {
  auto const other = la::transpose(a, true);
  auto const p = a.row_offsets(), q = other.row_offsets();
  auto const c = a.column_indices(), d = other.column_indices();
  auto const v = a.entries<T>(), w = other.entries<T>();
  double largest = 0, difference = 0;
  std::int64_t row = 0, column = 0;
  for (auto const x : v) largest = std::max(largest, double(magnitude(x)));
  for (std::int32_t i = 0; i < a.rows; ++i) {
    auto s = std::size_t(p[std::size_t(i)]), t = std::size_t(q[std::size_t(i)]);
    auto const s_end = std::size_t(p[std::size_t(i) + 1]), t_end = std::size_t(q[std::size_t(i) + 1]);
    while (s < s_end || t < t_end) {
      bool const mine = t == t_end || (s < s_end && c[s] <= d[t]), theirs = s == s_end || (t < t_end && d[t] <= c[s]);
      auto const j = mine ? c[s] : d[t];
      auto const by = double(magnitude((mine ? v[s] : T(0)) - (theirs ? w[t] : T(0))));
      if (by > difference) difference = by, row = i, column = j;
      s += mine, t += theirs;
    }
  }
  ASTERISM_REQUIRE(
      difference <= 1e3 * epsilon_of(a.dtype) * largest, value,
      "cholesky: the matrix is not Hermitian: the entry in row {}, column {} differs by {} from the conjugate of its partner; the "
      "largest entry is {}. Use -pc_type lu.",
      row, column, difference, largest);
}

/// Brings the largest entry of each row and column near 1, both at once, again and again (Ruiz 2001). Powers of two, so that nothing is
/// rounded.
void bring_near_one(la::Csr const& a, std::vector<double>& r, std::vector<double>& c) {
  auto const n = std::size_t(a.rows);
  r.assign(n, 1.0);
  c.assign(n, 1.0);
  std::vector<double> of_row(n), of_column(n);
  for (int step = 0; step < 12; ++step) {
    std::fill(of_row.begin(), of_row.end(), 0.0);
    std::fill(of_column.begin(), of_column.end(), 0.0);
    each_size(a, [&](std::int32_t i, std::int32_t j, double size) {
      auto &row = of_row[std::size_t(i)], &column = of_column[std::size_t(j)];
      double const scaled = size * r[std::size_t(i)] * c[std::size_t(j)];
      row = std::max(row, scaled);
      column = std::max(column, scaled);
    });
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

}  // namespace

char const* Analysis::name() const {
  return options.kind == FactorKind::lu ? "lu" : options.kind == FactorKind::cholesky ? "cholesky" : "cholesky (L D L^H)";
}

Analysis::Analysis(la::Csr const& a, FactorOptions const& given) : options(given), dtype(a.dtype), n(a.rows) {
  check(a, name());
  if (hermitian()) with_dtype(dtype, [&](auto tag) { require_hermitian<typename decltype(tag)::type>(a); });
  match(a);
  analyse(a);
  predict(a.nnz());
}

bool Analysis::rescale(la::Csr const& a) {
  ASTERISM_REQUIRE(a.rows == n && a.dtype == dtype, shape, "{}: update with {} rows of {} instead of {} of {}.", name(), a.rows,
                   asterism::name_of(a.dtype), n, asterism::name_of(dtype));
  check(a, name());
  if (hermitian()) with_dtype(dtype, [&](auto tag) { require_hermitian<typename decltype(tag)::type>(a); });
  if (!matched) equilibrate(a);
  if (options.kind != FactorKind::lu || options.matching != Matching::automatic) return true;
  return la::look_at_diagonal(matched ? arranged(a) : scaled(a)).weak == 0;
}

la::Csr Analysis::arranged(la::Csr const& a) const { return la::permuted(a, rows, columns, row_scale, column_scale); }

void Analysis::match(la::Csr const& a) {
  rows.resize(std::size_t(n));
  std::iota(rows.begin(), rows.end(), 0);
  columns = rows;
  equilibrate(a);
  auto const diagonal = la::look_at_diagonal(scaled(a));
  matched = !hermitian() && (options.matching == Matching::yes || (options.matching == Matching::automatic && diagonal.weak > 0));
  if (diagonal.zeros > 0 || matched) {
    auto const found = la::maximum_product_matching(a);
    if (found.structural_rank < n) {
      auto const where = found.empty_row >= 0      ? format("Row {} has no entry that is not zero.", found.empty_row)
                         : found.empty_column >= 0 ? format("Column {} has no entry that is not zero.", found.empty_column)
                                                   : std::string("Some rows have entries in too few columns together.");
      fail(ErrorKind::value,
           "{}: the matrix is structurally singular: its structural rank is {} of {}, whatever the values are. {} Look for an equation or "
           "an unknown that is missing; am.least_squares takes singular matrices.",
           name(), found.structural_rank, n, where);
    }
    if (matched) {
      for (std::int32_t i = 0; i < n; ++i) rows[std::size_t(found.column_of_row[std::size_t(i)])] = i;
      for (std::size_t i = 0; i < std::size_t(n); ++i)
        if (options.equilibrate) row_scale[i] = power_of_two(found.row_scale[i]), column_scale[i] = power_of_two(found.column_scale[i]);
    }
  }
}

void Analysis::equilibrate(la::Csr const& a) {
  row_scale.assign(std::size_t(n), 1.0);
  column_scale = row_scale;
  if (options.equilibrate) bring_near_one(a, row_scale, column_scale);
}
la::Csr Analysis::scaled(la::Csr const& a) const {
  Ints as_they_are(static_cast<std::size_t>(n));
  std::iota(as_they_are.begin(), as_they_are.end(), 0);
  return la::permuted(a, as_they_are, as_they_are, row_scale, column_scale);
}

void Analysis::analyse(la::Csr const& a) {
  auto const pattern = matched ? la::permuted(a, rows, columns) : a;
  la::Graph const graph(pattern);
  Ints order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  ordering = options.ordering;
  if (options.ordering == "auto") {
    ordering = "amd";
    order = la::approximate_minimum_degree(pattern);
    // nested dissection takes about a microsecond for each edge
    double const seconds = 1.5e-6 * double(graph.neighbours.size());
    double const flops = n >= 5000 ? flops_of_order(graph, order) : 0;
    if (flops > 1e10 * seconds && !la::metis_library().empty()) {
      auto other = la::nested_dissection(pattern);
      if (flops_of_order(graph, other) < flops) order = std::move(other), ordering = "nd";
    }
  } else if (options.ordering != "natural") {
    order = la::ordering_by_name(options.ordering, pattern);
  }
  symbolic = direct::analyse(graph, order);
  rows = in_order(rows, symbolic.order);
  columns = in_order(columns, symbolic.order);
}

void Analysis::predict(std::int64_t nnz) {
  auto const& nodes = symbolic.nodes;
  std::int64_t held = 0, peak = 0;
  std::vector<std::int64_t> of_children(std::size_t(nodes.count()), 0);
  auto& p = predicted;
  p = {};
  for (std::int32_t s = 0; s < nodes.count(); ++s) {
    auto const w = std::int64_t(nodes.width(s)), b = std::int64_t(nodes.below(s));
    p.entries += hermitian() ? w * (w + 1) / 2 + w * b : w * w + 2 * w * b;
    held += w * (w + b) + (hermitian() ? 0 : w * b) + b * b;
    peak = std::max(peak, held);
    held -= of_children[std::size_t(s)];
    if (auto const parent = nodes.parent[std::size_t(s)]; parent >= 0) of_children[std::size_t(parent)] += b * b;
    else held -= b * b;
  }
  p.flops = symbolic.flops * (hermitian() ? 1 : 2) * (is_complex(dtype) ? 4 : 1);
  auto const number = std::int64_t(size_of(dtype));
  p.bytes = std::size_t(peak * number + (hermitian() ? 1 : 2) * nnz * (number + 4) + 8 * std::int64_t(nodes.row_indices.size()));
}

}  // namespace asterism::direct
