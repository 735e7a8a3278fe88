#include "asterism/direct/distributed/dealt_entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "asterism/direct/at.hpp"
#include "asterism/la/ordering/diagonal.hpp"
#include "asterism/la/ordering/permuted.hpp"

namespace asterism::direct {
template <class T>
DealtEntries<T> deal_entries(la::Matrix const& A, Analysis const& analysis, Numbers const& numbers, Distribution const& parts,
                             ProcessGrid const& grid) {
  auto const& comm = A.comm();
  auto const owner = [&](std::int32_t i, std::int32_t j) { return grid.owner(std::max(i, j), std::min(i, j)); };
  DealtEntries<T> dealt;
  auto const rows = A.to_rows();
  Outgoing out;
  double largest = 0;
  std::vector<double> sums(at(analysis.n), 0);
  for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r) {
    auto const i = at(A.range().begin()) + r;
    auto const k = numbers.rows[i];
    for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) {
      auto const j = at(rows.columns[at(p)]);
      auto const l = numbers.columns[j];
      T const v = rows.values.as<T>()[p];
      Entry<T> const e{k, l, la::scaled_by(v, analysis.row_scale[i] * analysis.column_scale[j])};
      auto const size = double(magnitude(e.value));
      largest = std::max(largest, size);
      sums[at(l)] += size;
      if (analysis.hermitian() && k > l) continue;
      auto const first = std::min(k, l);
      auto const to = parts.rank_of[at(first)] >= 0 ? parts.rank_of[at(first)]
                                                    : owner(parts.node_of[at(parts.number[at(k)])], parts.node_of[at(parts.number[at(l)])]);
      out.put(to, &e, 1);
    }
  }
  dealt.largest = comm.max(largest);
  comm.sum(std::span<double>(sums));
  dealt.norm = sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
  auto const local = [&](std::int32_t b) {
    auto const number = parts.number[at(b)];
    if (parts.rank_of[at(b)] >= 0) return number;
    auto const k = parts.node_of[at(number)];
    return parts.place_of_touched[at(k)] + number - parts.top->nodes().starts[at(k)];
  };
  for (auto const& parcel : comm::exchange(comm, out.take()))
    for (auto const& e : comm::items_of<Entry<T>>(parcel.data)) {
      if (parts.rank_of[at(std::min(e.row, e.column))] >= 0) dealt.forest.push_back({local(e.row), local(e.column), e.value});
      else dealt.top.push_back({parts.number[at(e.row)], parts.number[at(e.column)], e.value});
    }
  return dealt;
}

bool scales_suit(la::Matrix const& A, Analysis const& analysis, Numbers const& numbers) {
  constexpr double alike = 0x1p10;
  bool const asks_diagonal = analysis.options.matching == Matching::automatic;
  auto const rows = A.to_rows();
  double most = 0, least = std::numeric_limits<double>::infinity();
  bool good = true;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r) {
      auto const i = at(A.range().begin()) + r;
      double largest = 0, diagonal = 0;
      for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p) {
        auto const j = at(rows.columns[at(p)]);
        double const size = double(magnitude(rows.values.as<T>()[p])) * analysis.row_scale[i] * analysis.column_scale[j];
        good = good && std::isfinite(size);
        largest = std::max(largest, size);
        if (numbers.rows[i] == numbers.columns[j]) diagonal = size;
      }
      most = std::max(most, largest);
      least = std::min(least, largest);
      if (asks_diagonal) good = good && diagonal > 2 * la::weak_diagonal * largest;
    }
  });
  most = A.comm().max(most);
  least = -A.comm().max(-least);
  return A.comm().min(std::int64_t(good)) == 1 && most <= alike * least;
}

#define ASTERISM_INSTANTIATE(T) \
  template DealtEntries<T> deal_entries(la::Matrix const&, Analysis const&, Numbers const&, Distribution const&, ProcessGrid const&);
ASTERISM_FOR_DTYPES(ASTERISM_INSTANTIATE)
#undef ASTERISM_INSTANTIATE

}  // namespace asterism::direct
