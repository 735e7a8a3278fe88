#include "asterism/solve/null_space.hpp"

#include "asterism/la/near_null_space.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace asterism::solve {
namespace {

using la::Vector;

/// A z for a vector z that is not zero.
class Image {
 public:
  Image(la::Operator const& A, Vector const& z) : z_(z), product_(z.like()) {
    A.apply(z, product_);
    Vector const* const both[] = {&z, &product_};
    auto const found = look_at_entries(both);
    is_finite_ = found[1].not_finite == 0;
    if (auto const* const matrix = A.matrix())
      entries_of_a_row_ = double(matrix->nnz()) / double(std::max<std::int64_t>(matrix->global_rows(), 1));
    size_ = found[0].largest[0] > 0 ? found[1].largest[0] / found[0].largest[0] : 0;
  }
  /// ||A z|| / ||z|| in the largest entries: to be compared with the largest sum of a row.
  double size() const { return size_; }
  bool is_zero(double norm_A) const {
    double const unit = epsilon_of(z_.dtype()) * norm_A;
    if (!is_finite_ || size_ > la::null_rounding_of_rows * unit) return false;
    double const length = norm(z_).real();
    return std::abs(dot(z_, product_).value()) <= la::null_rounding_of_sum(entries_of_a_row_) * unit * length * length;
  }

 private:
  Vector const& z_;
  Vector product_;
  double size_, entries_of_a_row_ = 0;
  bool is_finite_;
};

}  // namespace

NullSpace::NullSpace(std::vector<Vector> const& vectors) {
  for (auto const& given : vectors) {
    auto z = given.like();
    copy(given, z);
    double const before = norm(z).real();
    if (before == 0) continue;
    scale(1 / before, z);
    for (int pass = 0; pass < 2; ++pass) remove_from(z);
    double const left = norm(z).real();
    if (left < 1e3 * epsilon_of(z.dtype())) continue;
    scale(1 / left, z);
    basis_.push_back(std::move(z));
  }
}

std::vector<la::Scalar> NullSpace::remove_from(Vector& y) const {
  if (basis_.empty()) return {};
  std::vector<Vector> here;  // on the queue of y
  std::vector<std::pair<Vector const*, Vector const*>> pairs;
  for (auto const& z : basis_) here.push_back(Vector::wrap(z.space(), z.dtype(), 1, z.data(), y.queue()));
  for (auto const& z : here) pairs.emplace_back(&z, &y);
  auto const parts = dots(pairs);
  for (std::size_t i = 0; i < here.size(); ++i) axpy(-parts[i], here[i], y);
  return parts;
}

NullSpace detected_null_space(la::Matrix const& A) {
  if (A.global_rows() < 2) return {};
  double const most = 2 * A.largest_entry() * double(A.global_cols());
  std::optional<double> norm_A;
  std::vector<Vector> found;
  auto const try_one = [&](Vector const& z) {
    Image const image(A, z);
    if (!image.is_zero(most)) return;  // nor is the norm beyond that: it takes longer
    if (!norm_A) norm_A = A.scaled_row_sum_norm();
    if (image.is_zero(*norm_A)) found.push_back(z);
  };
  Vector ones(A.range(), A.dtype());
  fill(ones, 1.0);
  try_one(ones);
  auto const bs = A.range().block_size();
  for (std::int64_t c = 0; bs > 1 && c < bs; ++c) {
    auto z = ones.like();
    with_dtype(z.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = z.host<T>();
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = T(i % std::size_t(bs) == std::size_t(c) ? 1 : 0);
    });
    try_one(z);
  }
  if (auto const modes = la::near_null_space_of(A.range(), A.dtype()))
    for (std::int64_t j = 0; j < modes.columns(); ++j) try_one(column_of(modes, j));
  return NullSpace(found);
}

NullSpace detected_null_space(la::Operator const& A, double size) {
  if (A.range().global_size() < 2) return {};
  Vector ones(A.range(), A.dtype());
  fill(ones, 1.0);
  return Image(A, ones).is_zero(size) ? NullSpace({ones}) : NullSpace();
}

NullSpace given_null_space(la::Operator const& A, Vector const& vectors, double size_of_A) {
  la::require_layout(vectors, A.domain(), A.dtype(), "null_space");
  auto const* const matrix = A.matrix();
  std::vector<Vector> columns;
  for (std::int64_t j = 0; j < vectors.columns(); ++j) {
    auto z = column_of(vectors, j);
    auto const entries = look_at_entries(z);
    ASTERISM_REQUIRE_ALIKE(entries.not_finite == 0, value, "null_space: column {} has an entry that is NaN or infinite in {}.", j,
                           z.space().entry_name(entries.first_not_finite));
    ASTERISM_REQUIRE_ALIKE(!entries.all_zero(), value, "null_space: column {} is zero. Leave it out.", j);
    if (matrix || size_of_A > 0) {
      double const size = Image(A, z).size(), norm_A = matrix ? matrix->scaled_row_sum_norm() : size_of_A;
      ASTERISM_REQUIRE_ALIKE(
          size <= 1e4 * epsilon_of(A.dtype()) * norm_A, value,
          "null_space: A times column {} is {} of ||A|| times that column, in the largest entries, and should be zero. A vector "
          "that A maps to nearly zero belongs into near_null_space.",
          j, size / norm_A);
    }
    columns.push_back(std::move(z));
  }
  return NullSpace(columns);
}

}  // namespace asterism::solve
