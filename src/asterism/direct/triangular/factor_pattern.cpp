#include "asterism/direct/triangular/factor_pattern.hpp"

#include <numeric>
#include <utility>

#include "asterism/base/error.hpp"
#include "asterism/direct/symbolic/symbolic.hpp"
#include "asterism/la/ordering/ordering.hpp"

namespace asterism::direct {

FactorPattern factor_pattern(la::Csr const& a, std::string const& ordering, std::int32_t widest) {
  ASTERISM_REQUIRE(a.rows == a.cols, shape, "{} x {}: triangular factors are of a square matrix.", a.rows, a.cols);
  FactorPattern out;
  out.ordering = ordering != "auto" ? ordering : la::metis_library().empty() ? "amd" : "nd";
  std::vector<std::int32_t> order(std::size_t(a.rows));
  std::iota(order.begin(), order.end(), 0);
  if (out.ordering != "natural") order = la::ordering_by_name(out.ordering, a);
  auto const symbolic = analyse(la::Graph(a), order);
  out.blocks = std::make_shared<BlockPattern const>(std::make_shared<Supernodes const>(cut_supernodes(symbolic.nodes, widest)));
  out.entries = symbolic.entries;
  return out;
}

}  // namespace asterism::direct
