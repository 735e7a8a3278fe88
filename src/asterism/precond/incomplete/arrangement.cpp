#include "asterism/precond/incomplete/arrangement.hpp"

#include <algorithm>
#include <numeric>

#include "asterism/base/format.hpp"
#include "asterism/la/ordering/diagonal.hpp"
#include "asterism/la/ordering/matching.hpp"
#include "asterism/la/ordering/ordering.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::precond {
namespace {

std::vector<std::int32_t> in_order(std::vector<std::int32_t> const& all, std::vector<std::int32_t> const& order) {
  std::vector<std::int32_t> out;
  out.reserve(order.size());
  for (auto const k : order) out.push_back(all[std::size_t(k)]);
  return out;
}

}  // namespace

la::Csr Arrangement::of(la::Csr const& a) const {
  if (!matched) return la::permuted(a, rows, columns);
  std::vector<double> r(rows.size()), c(columns.size());
  for (std::size_t k = 0; k < rows.size(); ++k) r[std::size_t(rows[k])] = row_factor[k], c[std::size_t(columns[k])] = column_factor[k];
  return la::permuted(a, rows, columns, r, c);
}

std::string Arrangement::describe() const {
  std::string out;
  if (matched && structural_rank < std::int32_t(rows.size()))
    out += format(", matched up to its structural rank {} of {}", structural_rank, rows.size());
  else if (matched) out += ", matched";
  if (ordering != "natural") out += format(", {} order{}", ordering, la::library_of_ordering(ordering));
  return out;
}

std::size_t Arrangement::memory_bytes() const {
  return 4 * (rows.size() + columns.size()) + 8 * (row_factor.size() + column_factor.size());
}

OptionSpec ArrangementRule::matching_option() {
  return choice_option("pc_factor_matching", "auto", {"auto", "true", "false"},
                       "rows are permuted and scaled so that the diagonal is 1 and nothing is larger (Duff and Koster 2001); auto: if "
                       "entries of the diagonal are zero, or small beside their row and column");
}

std::vector<OptionSpec> ArrangementRule::options() {
  return {
      matching_option(),
      choice_option("pc_factor_mat_ordering_type", "auto", {"auto", "natural", "rcm", "amd", "nd"},
                    "order of the rows that are factored; rcm: a small profile, amd: little fill, nd: nested dissection by "
                    "METIS (pip install pymetis); auto: amd for ilut of a matched matrix, else natural"),
  };
}

ArrangementRule::ArrangementRule(OptionReader& r, bool by_size_, bool keep_symmetric_, bool definite)
    : matching([&] {
        auto const text = r.text("pc_factor_matching");
        if (text == "auto") return definite ? Matching::no : Matching::automatic;
        return text == "true" ? Matching::yes : Matching::no;
      }()),
      ordering(r.text("pc_factor_mat_ordering_type")),
      by_size(by_size_),
      keep_symmetric(keep_symmetric_ && !by_size_) {}

bool ArrangementRule::wants_matching(la::Csr const& a) const {
  if (matching != Matching::automatic) return matching == Matching::yes;
  auto const found = la::look_at_diagonal(a);
  return keep_symmetric ? found.zeros > 0 : found.weak > 0;
}

ArrangementPtr ArrangementRule::arrange(la::Csr const& a) const {
  bool const matches = wants_matching(a);
  auto const order = ordering != "auto" ? ordering : by_size && matches ? "amd" : "natural";
  if (!matches && order == "natural") return nullptr;
  auto out = std::make_shared<Arrangement>();
  out->matched = matches;
  out->ordering = order;
  auto const n = std::size_t(a.rows);
  out->rows.resize(n);
  std::iota(out->rows.begin(), out->rows.end(), 0);
  out->columns = out->rows;
  la::Matching found;
  if (matches) {
    found = la::maximum_product_matching(a);
    out->structural_rank = found.structural_rank;
    std::size_t next = 0;  // of the columns without a row
    for (std::size_t i = 0; i < n; ++i) {
      auto j = found.column_of_row[i];
      if (j < 0) {
        while (found.row_of_column[next] >= 0) ++next;
        j = std::int32_t(next++);
      }
      // columns keep their order, so that what is near the diagonal stays near it
      out->rows[std::size_t(j)] = std::int32_t(i);
    }
  }
  if (order != "natural") {
    auto const pattern = matches ? la::permuted(a, out->rows, out->columns) : a;
    auto const by = la::ordering_by_name(order, pattern);
    out->rows = in_order(out->rows, by);
    out->columns = in_order(out->columns, by);
  }
  if (matches)
    for (std::size_t k = 0; k < n; ++k) {
      out->row_factor.push_back(found.row_scale[std::size_t(out->rows[k])]);
      out->column_factor.push_back(found.column_scale[std::size_t(out->columns[k])]);
    }
  return out;
}

bool ArrangementRule::suits(Arrangement const* made, la::Csr const& a) const {
  bool const matched = made && made->matched;
  if (!matched) return !wants_matching(a);
  return la::look_at_diagonal(made->of(a)).weak == std::int64_t(made->rows.size()) - made->structural_rank;
}

}  // namespace asterism::precond
