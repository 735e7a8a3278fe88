// A matrix from a function of its rows: each rank makes its own.
#pragma once
#include <cstdint>
#include <ranges>
#include <string>
#include <vector>

#include "asterism/base/progress.hpp"
#include "asterism/comm/communicator/same_on_all.hpp"
#include "asterism/la/matrix.hpp"

namespace asterism::apps {

/// A problem by its name and by what else all ranks must say alike.
struct Problem {
  char const* name;
  std::vector<comm::Fact> facts;
};

template <std::ranges::range R>
comm::Fact fact(char const* name, R const& numbers) {
  comm::Fact out{name, ""};
  for (auto const x : numbers) out.value += format("{}{}", out.value.empty() ? "" : ", ", x);
  return out;
}

/// Calls row(i, put) for each of my rows, where put(column, value) is called in any order of the columns.
template <class F>
la::Matrix from_row_function(Problem problem, comm::Layout const& layout, Dtype dtype, std::int64_t entries_per_row, F const& row) {
  problem.facts.push_back({"dtype", std::string(name_of(dtype))});
  comm::require_same(layout.comm(), problem.name, problem.facts);
  std::vector<std::int64_t> offsets{0}, columns;
  std::vector<double> values;
  auto const n = std::int64_t(checked_local_index(layout.local_size(), "rows of one rank"));
  offsets.reserve(std::size_t(n) + 1);
  columns.reserve(std::size_t(n * entries_per_row));
  values.reserve(std::size_t(n * entries_per_row));
  Progress progress("gallery: the rows of a matrix", double(n));
  for (auto i = layout.begin(); i < layout.end(); ++i) {
    progress.at(double(i - layout.begin()));
    row(i, [&](std::int64_t c, double v) {
      columns.push_back(c);
      values.push_back(v);
    });
    offsets.push_back(std::int64_t(columns.size()));
  }
  if (dtype == Dtype::float64) return la::Matrix::from_rows<std::int64_t>(layout, layout, dtype, offsets, columns, values.data());
  return with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> v;
    v.reserve(values.size());
    for (auto const x : values) v.push_back(T(real_t<T>(x)));
    return la::Matrix::from_rows<std::int64_t>(layout, layout, dtype, offsets, columns, v.data());
  });
}

}  // namespace asterism::apps
