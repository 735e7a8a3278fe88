#include "asterism/direct/distributed/shared_on_gpus.hpp"

namespace asterism::direct {

std::shared_ptr<GpuFactors> factors_on_gpus(comm::Communicator const& comm, SharedFactors const& f) {
  auto const at = [](std::int64_t i) { return std::size_t(i); };
  auto const& a = f.analysis;
  auto const& parts = f.parts;
  auto const& starts = parts.top->nodes().starts;
  GpuFactorsSource source{f.numeric, {}, parts.top, f.top.lower.get(), f.top.upper.get(), f.top.pivots, parts.outside, {}};
  auto here = parts.own;  // numbers of B
  for (std::int32_t k = 0; k < parts.top->count(); ++k)
    if (f.top.lower->owns_diagonal(k))
      for (auto g = starts[at(k)]; g < starts[at(k) + 1]; ++g) here.push_back(parts.top_columns[at(g)]);
  auto& p = source.places;
  p.rows = f.numeric.row_order, p.columns = f.numeric.column_order;
  for (auto i = parts.own.size(); i < here.size(); ++i) p.rows.push_back(std::int32_t(i)), p.columns.push_back(std::int32_t(i));
  for (auto const b : here) {
    p.row_scale.push_back(a.row_scale[at(a.rows[at(b)])]);
    p.column_scale.push_back(a.column_scale[at(a.columns[at(b)])]);
  }
  for (auto const k : parts.touched)
    for (auto g = starts[at(k)]; g < starts[at(k) + 1]; ++g) source.place_of_rows.push_back(std::int32_t(parts.own.size()) + g);
  return std::make_shared<GpuFactors>(comm, a.dtype, source);
}

}  // namespace asterism::direct
