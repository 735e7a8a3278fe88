// Scalings, matching, order and symbolic phase of a sparse factorisation.
#include "asterism/direct/symbolic/analysis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "asterism/base/dtype.hpp"
#include "asterism/base/error.hpp"
#include "asterism/direct/permutations.hpp"
#include "asterism/direct/symbolic/pairs.hpp"
#include "asterism/direct/symbolic/preparation.hpp"
#include "asterism/la/ordering/diagonal.hpp"
#include "asterism/la/ordering/matching.hpp"
#include "asterism/la/ordering/ordering.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct {
namespace {

using Ints = std::vector<std::int32_t>;

/// The share of the entries of A + A^T beside the diagonal that A has.
double symmetry_of(la::Csr const& a, la::Graph const& graph) {
  auto const offsets = a.row_offsets();
  auto const columns = a.column_indices();
  std::int64_t beside = 0;
  for (std::int32_t i = 0; i < a.rows; ++i)
    for (auto p = offsets[std::size_t(i)]; p < offsets[std::size_t(i) + 1]; ++p) beside += columns[std::size_t(p)] != i;
  return graph.neighbours.empty() ? 1 : std::min(1.0, double(beside) / double(graph.neighbours.size()));
}

std::string to_take_less_work(std::string const& ordering) { return what_to_try(ordering, {}, {"a larger -pc_factor_flop_limit"}); }

}  // namespace

char const* Analysis::name() const {
  return options.kind == FactorKind::lu ? "lu" : options.kind == FactorKind::cholesky ? "cholesky" : "cholesky (L D L^H)";
}

Analysis::Analysis(la::Csr const& a, FactorOptions const& given) : options(given), dtype(a.dtype), n(a.rows) {
  require_square_and_finite(a, name());
  rows.resize(std::size_t(n));
  std::iota(rows.begin(), rows.end(), 0);
  columns = rows;
  // where rows stay as they are, work that is too much is found before the entries are looked at
  bool const order_first = hermitian() && !options.pairs && options.flop_limit > 0;
  if (order_first) analyse(a);
  if (hermitian()) require_hermitian(a, "cholesky");
  match(a);
  if (!order_first) analyse(a);
  predict(a.nnz());
}

void Analysis::require_work() const {
  ASTERISM_REQUIRE(options.flop_limit == 0 || predicted.flops <= options.flop_limit, value,
                   "{}: the factors of {} rows take {} floating-point operations ({} entries, {} order), and {} are allowed. {}", name(), n,
                   predicted.flops, predicted.entries, ordering, options.flop_limit, to_take_less_work(ordering));
}

bool Analysis::rescale(la::Csr const& a) {
  ASTERISM_REQUIRE(a.rows == n && a.dtype == dtype, shape, "{}: update with {} rows of {} instead of {} of {}.", name(), a.rows,
                   asterism::name_of(a.dtype), n, asterism::name_of(dtype));
  require_square_and_finite(a, name());
  if (hermitian()) require_hermitian(a, "cholesky");
  if (!matched) equilibrate(a);
  if (options.kind == FactorKind::hermitian) {
    scaled_by_matching = asks_for_scales(la::look_at_diagonal(a, row_scale, column_scale));
    if (scaled_by_matching) scale_alike(matching_of(a));
  }
  if (options.kind != FactorKind::lu || options.matching != Matching::automatic) return true;
  Ints column_of_row(matched ? std::size_t(n) : 0);
  for (std::size_t k = 0; k < column_of_row.size(); ++k) column_of_row[std::size_t(rows[k])] = columns[k];
  return la::look_at_diagonal(a, row_scale, column_scale, column_of_row).weak == 0;
}

la::Csr Analysis::arranged(la::Csr const& a) const { return la::permuted(a, rows, columns, row_scale, column_scale); }

void Analysis::match(la::Csr const& a) {
  equilibrate(a);
  auto const diagonal = la::look_at_diagonal(a, row_scale, column_scale);
  matched = !hermitian() && (options.matching == Matching::yes || (options.matching == Matching::automatic && diagonal.weak > 0));
  scaled_by_matching = asks_for_scales(diagonal);
  bool const paired = hermitian() && options.pairs && diagonal.weak > 0;
  if (diagonal.zeros > 0 || matched || scaled_by_matching || paired) {
    auto const found = matching_of(a);
    if (scaled_by_matching) scale_alike(found);
    if (paired) partner = partners(scaled(a), found);
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
  if (options.equilibrate) equilibrate_by_powers_of_two(a, row_scale, column_scale);
}

la::Matching Analysis::matching_of(la::Csr const& a) const {
  auto found = la::maximum_product_matching(a);
  require_structural_rank(found, n, name());
  return found;
}

bool Analysis::asks_for_scales(la::Diagonal const& diagonal) const {
  if (options.kind != FactorKind::hermitian || !options.equilibrate) return false;
  return options.matching == Matching::yes || (options.matching == Matching::automatic && diagonal.weak > 0);
}

/// The scale of a Hermitian matrix from those of its rows and columns (Duff and Pralet 2005). Entries of the diagonal that are small beside
/// their rows, as those of a barrier are, then are pivots, and are not delayed until fronts fill up.
void Analysis::scale_alike(la::Matching const& found) {
  for (std::size_t i = 0; i < std::size_t(n); ++i)
    row_scale[i] = power_of_two(std::sqrt(found.row_scale[i]) * std::sqrt(found.column_scale[i]));
  column_scale = row_scale;
}

la::Csr Analysis::scaled(la::Csr const& a) const {
  Ints as_they_are(static_cast<std::size_t>(n));
  std::iota(as_they_are.begin(), as_they_are.end(), 0);
  return la::permuted(a, as_they_are, as_they_are, row_scale, column_scale);
}

/// Least degree; of many rows nested dissection, where it may save more time than it takes. An error as soon as the work is too much.
Ints Analysis::automatic_order(la::Graph const& graph) {
  constexpr double most_saved = 8;  // the work of least degree over that of nested dissection: 2.8 for a 7-point grid of 60^3 points
  bool const many = graph.size() >= 5000 && !la::metis_library().empty();
  double const worth_dissection = 1.5e4 * double(graph.neighbours.size());  // about 1.5 microseconds for each edge
  double const limit = options.flop_limit > 0 ? options.flop_limit / flops_of_one() : std::numeric_limits<double>::infinity();
  bool const may_help = many && most_saved * limit > worth_dissection;
  auto found = la::minimum_degree_within(graph, may_help ? most_saved * limit : limit);
  bool const dissects = many && found.flops > worth_dissection;
  ASTERISM_REQUIRE(found.flops <= (dissects ? most_saved : 1) * limit, value,
                   "{}: the factors of {} rows take more than {} floating-point operations (amd order), and {} are allowed. {}", name(), n,
                   found.flops * flops_of_one(), options.flop_limit, to_take_less_work("amd"));
  ordering = "amd";
  if (!dissects) return std::move(found.order);
  auto other = la::nested_dissection(graph);
  if (flops_of_order(graph, other) >= flops_of_order(graph, found.order)) return std::move(found.order);
  ordering = "nd";
  return other;
}

Ints Analysis::order_of(la::Csr const& pattern, la::Graph const& graph) {
  Ints order(std::size_t(pattern.rows));
  std::iota(order.begin(), order.end(), 0);
  ordering = options.ordering;
  if (options.ordering == "auto") {
    order = automatic_order(graph);
  } else if (options.ordering != "natural") {
    order = la::ordering_by_name(options.ordering, pattern);
  }
  return order;
}

void Analysis::analyse(la::Csr const& a) {
  if (partner.empty()) {
    auto const pattern = matched ? la::permuted(a, rows, columns) : a;
    la::Graph const graph(pattern);
    symbolic = direct::analyse(graph, order_of(pattern, graph), symmetry_of(pattern, graph));
  } else {
    PairedPattern const pattern(a, partner);
    auto const order = order_of(pattern.compressed, la::Graph(pattern.compressed));
    symbolic = direct::analyse(la::Graph(pattern.alike), pattern.expanded(order));
    symbolic.joined.assign(std::size_t(n), false);
    for (std::size_t k = 1; k < symbolic.order.size(); ++k)
      symbolic.joined[k] = partner[std::size_t(symbolic.order[k])] == symbolic.order[k - 1];
  }
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
  p.flops = symbolic.flops * flops_of_one();
  auto const number = std::int64_t(size_of(dtype));
  p.bytes = std::size_t(peak * number + (hermitian() ? 1 : 2) * nnz * (number + 4) + 8 * std::int64_t(nodes.row_indices.size()));
}

}  // namespace asterism::direct
