// A tolerance relative to ||b|| says nothing of rows that are small beside others.
#include <algorithm>
#include <cmath>

#include "asterism/base/log.hpp"
#include "asterism/solve/solver.hpp"

namespace asterism::solve {

/// Rows that are small beside others, and whose residual is large: beside themselves, or beside what b and the large rows' part of x ask of
/// them. Errors that are smooth show in the latter only. What is to be told; nothing where they are right.
std::string Solver::wrong_small_rows(Vector const& b, Vector const& x, Vector const& residual) const {
  auto const largest = la::look_at_entries(x).largest;
  auto const k = std::size_t(x.columns());
  auto const& sizes = *inspection_.row_sizes;
  auto const& comm = A_->range().comm();
  auto const of_large = comm.max(sizes.empty() ? 0.0 : std::ranges::max(sizes)) / small_row;
  auto of_large_rows = x.like(), asked = x.like();
  std::vector<std::int64_t> wrong(k, 0);
  std::vector<double> squares(2 * k, 0);  // of residuals and of what is asked, in units of the rows
  with_dtype(residual.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const r = residual.host<T>(), from = x.host<T>(), to = of_large_rows.host<T>();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      for (auto at = i * k; at < (i + 1) * k; ++at) to[at] = sizes[i] > of_large ? from[at] : T(0);
    A_->residual(b, of_large_rows, asked);
    auto const f = asked.host<T>();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      for (std::size_t j = 0; j < k; ++j) {
        double const size = double(magnitude(r[i * k + j])) / sizes[i];
        wrong[j] += size > 1e-2 * largest[j];
        if (sizes[i] > of_large) continue;
        squares[j] += size * size;
        squares[k + j] += std::pow(double(magnitude(f[i * k + j])) / sizes[i], 2);
      }
  });
  comm.sum(std::span<std::int64_t>(wrong));
  comm.sum(std::span<double>(squares));
  auto const most = std::ranges::max(wrong);
  auto const n = A_->range().global_size();
  double left = 0;  // of what small rows are asked for
  for (std::size_t j = 0; j < k; ++j)
    if (squares[k + j] > 0) left = std::max(left, std::sqrt(squares[j] / squares[k + j]));
  bool const many = 10 * most >= n;
  if (!many && !(left > std::max(1e-3, 10 * rule_.rtol))) return {};
  auto const what = many ? format("in {} of {} rows |b - A x| is more than 1 % of the largest entry times the largest x", most, n)
                         : format("in rows of small entries ||b - A x|| is {} of what b and the other rows ask of them",
                                  std::round(10000 * left) / 10000);
  return what;
}

/// By factors, where auto may take them and they cost little: the error of each row is small then. Else x stays as it is.
bool Solver::solves_small_rows(Attempted const& now, SolveInfo& all, Vector const& b, Vector& x, la::Entries const& of_b,
                               Watch const& watch) {
  // a method that was named would end at once, since its tolerance is met
  if (wanted_method_ != "auto" || looked_for_cheap_factors_ || !has_stronger() || all.iterations >= rule_.max_it) return false;
  auto const before = in_use();
  if (!take_cheap_factors(
          format("after {} iterations of {} with {} {}", all.iterations, method_name_, preconditioner_type_, now.small_rows)))
    return false;
  auto first = x.like();
  copy(x, first);
  auto by_factors = goes_on(all, b, x, of_b, watch);
  if (by_factors.converged) {
    all = std::move(by_factors);
    return true;
  }
  copy(first, x);
  use(before);
  return false;
}

/// Where nothing is done about it: in the notes, and once in the log.
void Solver::tell_small_rows(Attempted& now) {
  if (now.small_rows.empty()) return;
  now.info.notes.push_back(
      format("{}: x is wrong there. Other rows are "
             "far larger, as those of penalties, and so is the tolerance, which is relative to ||b||. Divide large rows and their "
             "b by their size, take a smaller -ksp_rtol, or solve directly: -ksp_type preonly -pc_type lu",
             now.small_rows));
  if (A_->range().comm().rank() == 0 && !std::exchange(small_rows_told_, true)) log::warning("{}.", now.info.notes.back());
}

}  // namespace asterism::solve
