#include "asterism/solve/null_space.hpp"

#include "asterism/la/near_null_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace asterism::solve {
namespace {

using la::Components;
using la::Vector;

/// What rounding of the user's vectors may leave, in epsilons.
constexpr double null_rounding_of_given = 1e4;

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
    largest_ = found[0].largest[0];
    size_ = largest_ > 0 ? found[1].largest[0] / largest_ : 0;
  }
  /// ||A z|| / ||z|| in the largest entries: to be compared with the largest sum of a row.
  double size() const { return size_; }
  bool is_zero(double norm_A) const {
    double const unit = epsilon_of(z_.dtype()) * norm_A;
    if (!is_finite_ || size_ > la::null_rounding_of_rows * unit) return false;
    double const length = norm(z_).real();
    return std::abs(dot(z_, product_).value()) <= la::null_rounding_of_sum(entries_of_a_row_) * unit * length * length;
  }
  /// In rows that are not zero, whatever the component is that they are in.
  void mark(double norm_A, std::uint64_t bit, std::vector<std::uint64_t>& rows) const {
    double const limit = la::null_rounding_of_rows * epsilon_of(z_.dtype()) * norm_A * largest_;
    with_dtype(z_.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = product_.host<T>();
      for (std::size_t i = 0; i < v.size(); ++i)
        if (!(double(magnitude(v[i])) <= limit)) rows[i] |= bit;
    });
  }

 private:
  Vector const& z_;
  Vector product_;
  double size_, largest_ = 0, entries_of_a_row_ = 0;
  bool is_finite_;
};

/// try_one(z) for the vectors that often are in null spaces.
template <class F>
void each_candidate(la::Matrix const& A, F const& try_one) {
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
}

/// Entries of a row, at most.
std::int64_t longest_row(la::Matrix const& A) {
  if (A.half()) return A.global_cols();
  auto const d = A.diagonal_block().row_offsets(), o = A.coupling_block().row_offsets();
  std::int64_t most = 0;
  for (std::size_t i = 0; i + 1 < d.size(); ++i) most = std::max(most, d[i + 1] - d[i] + o[i + 1] - o[i]);
  return A.comm().max(most);
}

/// A matrix as its connected components, each judged by its own size.
class Apart {
 public:
  explicit Apart(la::Matrix const& A) : A_(A), components_(A), has_null_vector_(components_.first_rows().size(), 0) {
    if (is_connected()) return;
    auto const of = components_.of_rows();
    auto const count = has_null_vector_.size();
    norms_.assign(count, 0);
    rows_and_entries_.assign(2 * count, 0);
    auto const &block = A.half() ? A.half()->expanded() : A.diagonal_block(), &coupling = A.coupling_block();
    with_dtype(A.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::size_t i = 0; i < of.size(); ++i) {
        auto const c = std::size_t(of[i]);
        double sum = 0;
        for (auto const* const a : {&block, &coupling}) {
          auto const first = a->row_offsets()[i], last = a->row_offsets()[i + 1];
          for (auto p = first; p < last; ++p) sum += double(magnitude(a->template entries<T>()[std::size_t(p)]));
          rows_and_entries_[2 * c + 1] += double(last - first);
        }
        norms_[c] = std::max(norms_[c], sum);
        rows_and_entries_[2 * c] += 1;
      }
    });
    components_.max(norms_);
    components_.sum(rows_and_entries_, 2);
  }
  bool is_connected() const { return components_.count() <= 1; }

  /// Keeps what z is on the components that it is a null vector of. given: by the user, who knows that it is one. False: on a component
  /// it is neither zero nor a null vector.
  bool take(Vector const& z, bool given) {
    auto product = z.like();
    A_.apply(z, product);
    auto const count = has_null_vector_.size();
    auto const of = components_.of_rows();
    std::vector<char> is_null(count, 0);
    bool everywhere = true;
    auto kept = z.like();
    with_dtype(z.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = z.host<T>(), w = product.host<T>(), out = kept.host<T>();
      std::vector<double> largest(2 * count, 0), sums(3 * count, 0);  // of z and A z; z^H A z and z^H z
      for (std::size_t i = 0; i < v.size(); ++i) {
        auto const c = std::size_t(of[i]);
        double const size = double(magnitude(w[i]));
        largest[2 * c] = std::max(largest[2 * c], double(magnitude(v[i])));
        largest[2 * c + 1] = std::max(largest[2 * c + 1], std::isfinite(size) ? size : infinite);
        if (given) continue;
        auto const term = std::conj(to_complex(v[i])) * to_complex(w[i]);
        sums[3 * c] += term.real(), sums[3 * c + 1] += term.imag(), sums[3 * c + 2] += std::norm(to_complex(v[i]));
      }
      components_.max(largest, 2);
      if (!given) components_.sum(sums, 3);
      for (std::size_t c = 0; c < count; ++c) {
        if (largest[2 * c] == 0) continue;
        double const unit = epsilon_of(z.dtype()) * norms_[c], rows = given ? null_rounding_of_given : la::null_rounding_of_rows;
        double const sum = la::null_rounding_of_sum(rows_and_entries_[2 * c + 1] / rows_and_entries_[2 * c]);
        is_null[c] = largest[2 * c + 1] <= rows * unit * largest[2 * c] &&
                     (given || std::hypot(sums[3 * c], sums[3 * c + 1]) <= sum * unit * sums[3 * c + 2]);
        everywhere = everywhere && is_null[c];
      }
      for (std::size_t i = 0; i < v.size(); ++i) out[i] = is_null[std::size_t(of[i])] ? v[i] : T(0);
    });
    auto const& comm = A_.comm();
    if (comm.max(std::int64_t(std::ranges::count(is_null, 1))) > 0) {
      for (std::size_t c = 0; c < count; ++c) has_null_vector_[c] |= is_null[c];
      kept_.push_back(std::move(kept));
    }
    return comm.min(std::int64_t(everywhere)) == 1;
  }

  /// Of what was kept; `whole`, spanned by vectors of the whole matrix, if that is on too many components.
  NullSpace null_space(NullSpace whole) const {
    auto const first = components_.chosen(has_null_vector_);
    if (std::int64_t(first.size()) > NullSpace::most_components) {
      whole.components_not_taken_apart = std::int64_t(first.size());
      return whole;
    }
    if (first.empty()) return {};
    auto const of = components_.of_rows();
    la::RowParts parts{std::int64_t(first.size()), la::Array(of.size() * sizeof(std::int32_t))};
    for (std::size_t i = 0; i < of.size(); ++i) {
      auto const row = components_.first_rows()[std::size_t(of[i])];
      auto const at = std::lower_bound(first.begin(), first.end(), row);
      parts.of.as<std::int32_t>()[i] = at != first.end() && *at == row ? std::int32_t(at - first.begin()) : -1;
    }
    return {kept_, std::move(parts), components_.count()};
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  la::Matrix const& A_;
  Components components_;
  std::vector<double> norms_, rows_and_entries_;
  std::vector<char> has_null_vector_;
  std::vector<Vector> kept_;
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
  dimension_ = basis_.size();
}

NullSpace::NullSpace(std::vector<Vector> const& vectors, la::RowParts parts, std::int64_t components_of_matrix)
    : parts_(std::move(parts)), components_of_matrix_(components_of_matrix) {
  auto const count = std::size_t(parts_.count);
  std::vector<std::size_t> filled(count, 0);  // of each part, how many vectors of the basis are there
  for (auto const& given : vectors) {
    auto const of = std::span(parts_.of.as<std::int32_t>(), std::size_t(given.local_size()));
    auto z = given.like();
    copy(given, z);
    // each part times a number of its own
    auto const scale_parts = [&](std::vector<double> const& by) {
      with_dtype(z.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        auto const v = z.host<T>();
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = of[i] < 0 ? T(0) : from_complex<T>(to_complex(v[i]) * by[std::size_t(of[i])]);
      });
    };
    auto const one_over_lengths = [&](double least) {
      auto lengths = part_dots(parts_, std::span(&z, 1), z)[0].values();
      std::vector<double> out;
      for (auto const& square : lengths) out.push_back(std::sqrt(square.real()) > least ? 1 / std::sqrt(square.real()) : 0);
      return out;
    };
    std::vector<double> largest(count, 0);  // squares of entries are summed
    with_dtype(z.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = z.host<T>();
      for (std::size_t i = 0; i < v.size(); ++i)
        if (of[i] >= 0) largest[std::size_t(of[i])] = std::max(largest[std::size_t(of[i])], double(magnitude(v[i])));
    });
    z.comm().max(std::span(largest));
    for (auto& l : largest) l = l > 0 ? std::exp2(-std::ilogb(l)) : 0;
    scale_parts(largest);
    scale_parts(one_over_lengths(0));
    for (int pass = 0; pass < 2; ++pass) remove_from(z);
    auto const left = one_over_lengths(1e3 * epsilon_of(z.dtype()));
    scale_parts(left);
    for (std::size_t p = 0; p < count; ++p) {
      if (left[p] == 0) continue;
      if (filled[p] == basis_.size()) {
        basis_.push_back(z.like());
        fill(basis_.back(), 0.0);
      }
      ++dimension_;
    }
    with_dtype(z.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto const v = z.host<T>();
      for (std::size_t i = 0; i < v.size(); ++i)
        if (of[i] >= 0 && left[std::size_t(of[i])] != 0) basis_[filled[std::size_t(of[i])]].host<T>()[i] = v[i];
    });
    for (std::size_t p = 0; p < count; ++p) filled[p] += left[p] != 0;
  }
}

std::string NullSpace::where() const {
  if (parts_.count == 0) return {};
  return format(", in {} of the {} connected components of the matrix,", parts_.count, components_of_matrix_);
}

std::vector<la::Scalar> NullSpace::remove_from(Vector& y) const {
  if (basis_.empty()) return {};
  std::vector<Vector> here;  // on the queue of y
  for (auto const& z : basis_) here.push_back(Vector::wrap(z.space(), z.dtype(), 1, z.data(), y.queue()));
  std::vector<la::Scalar> parts;
  if (parts_.count > 0) {
    parts = part_dots(parts_, here, y);
    for (std::size_t i = 0; i < here.size(); ++i) part_axpy(parts_, -parts[i], here[i], y);
    return parts;
  }
  std::vector<std::pair<Vector const*, Vector const*>> pairs;
  for (auto const& z : here) pairs.emplace_back(&z, &y);
  parts = dots(pairs);
  for (std::size_t i = 0; i < here.size(); ++i) axpy(-parts[i], here[i], y);
  return parts;
}

NullSpace detected_null_space(la::Matrix const& A) {
  if (A.global_rows() < 2) return {};
  double const largest = 2 * A.largest_entry();
  double const most = largest * double(A.global_cols());
  std::optional<double> norm_A;
  std::vector<Vector> found;
  std::vector<std::uint64_t> failing(std::size_t(A.range().local_size()), 0);  // rows, by candidates
  std::uint64_t all = 0, bit = 1;
  auto const longest = longest_row(A);
  each_candidate(A, [&](Vector const& z) {
    Image const image(A, z);
    image.mark(largest * double(longest), bit, failing);
    all |= std::exchange(bit, bit << 1);
    if (!image.is_zero(most)) return;  // nor is the norm beyond that: it takes longer
    if (!norm_A) norm_A = A.scaled_row_sum_norm();
    if (image.is_zero(*norm_A)) found.push_back(z);
  });
  NullSpace whole(found);
  // a component without a row that fails may be singular where others are not
  if (found.empty() && (A.half() || bit == 0 || marks_spread(A, std::move(failing), all))) return whole;
  Apart apart(A);
  if (apart.is_connected()) return whole;
  each_candidate(A, [&](Vector const& z) { apart.take(z, false); });
  return apart.null_space(std::move(whole));
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
          size <= null_rounding_of_given * epsilon_of(A.dtype()) * norm_A, value,
          "null_space: A times column {} is {} of ||A|| times that column, in the largest entries, and should be zero. A vector "
          "that A maps to nearly zero belongs into near_null_space.",
          j, size / norm_A);
    }
    columns.push_back(std::move(z));
  }
  NullSpace whole(columns);
  if (!matrix || !matrix->range().fits(matrix->domain())) return whole;
  Apart apart(*matrix);
  if (apart.is_connected()) return whole;
  for (auto const& z : columns)
    if (!apart.take(z, true)) return whole;
  return apart.null_space(std::move(whole));
}

}  // namespace asterism::solve
