#include "asterism/la/near_null_space.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "asterism/base/log.hpp"

namespace asterism::la {
namespace {

using i64 = std::int64_t;

/// k values of each of my columns and of the ghosts behind them.
template <class T>
std::vector<T> with_ghosts(Matrix const& A, T const* own, i64 k) {
  auto const mine = std::size_t(A.domain().local_size() * k);
  std::vector<T> all(mine + A.ghosts().size() * std::size_t(k));
  std::copy_n(own, mine, all.begin());
  A.halo().bcast(own, all.data() + mine, k);
  return all;
}

/// f(local row, place, value) for the entries of each row r of mine, between begin(r) and end(r). place: among own columns, then ghosts.
template <class T, class Begin, class F, class End>
void each_row(Matrix const& A, Begin const& begin, F const& f, End const& end) {
  auto const &D = A.diagonal_block(), &O = A.coupling_block();
  auto const dp = D.row_offsets(), op = O.row_offsets();
  auto const dc = D.column_indices(), oc = O.column_indices();
  auto const dv = D.template entries<T>(), ov = O.template entries<T>();
  for (std::size_t r = 0; r < std::size_t(D.rows); ++r) {
    begin(r);
    for (auto p = std::size_t(dp[r]); p < std::size_t(dp[r + 1]); ++p) f(r, std::size_t(dc[p]), dv[p]);
    for (auto p = std::size_t(op[r]); p < std::size_t(op[r + 1]); ++p) f(r, std::size_t(D.cols) + std::size_t(oc[p]), ov[p]);
    end(r);
  }
}

Entries require_finite(Vector const& x, char const* name, char const* unit) {
  auto const found = look_at_entries(x);
  ASTERISM_REQUIRE_ALIKE(found.not_finite == 0, value, "{} has {} values that are NaN or infinite; the first belongs to {} {}.", name,
                         found.not_finite, unit, found.first_not_finite);
  return found;
}

bool maps_rows_to_rows(Matrix const& A) { return A.range().fits(A.domain()); }

/// |A b|_i / (|A| |b|)_i, its mean over all rows where that is not 0 / 0, for each column b. Of a vector that has nothing to do with A it
/// is about a half; of the constants it is 0 but beside boundaries.
std::vector<double> mean_images(Matrix const& A, Vector const& B) {
  auto const m = std::size_t(B.columns());
  std::vector<double> sums(m + m, 0.0);  // of the ratios, and their number
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const b = with_ghosts<T>(A, B.host<T>().data(), B.columns());
    std::vector<std::complex<double>> image(m);
    std::vector<double> size(m);
    each_row<T>(
        A,
        [&](std::size_t) {
          std::fill(image.begin(), image.end(), 0);
          std::fill(size.begin(), size.end(), 0);
        },
        [&](std::size_t, std::size_t place, T a) {
          for (std::size_t j = 0; j < m; ++j) {
            auto const term = to_complex(a) * to_complex(b[place * m + j]);
            image[j] += term;
            size[j] += std::abs(term);
          }
        },
        [&](std::size_t) {
          for (std::size_t j = 0; j < m; ++j)
            if (size[j] > 0) sums[j] += std::abs(image[j]) / size[j], sums[m + j] += 1;
        });
  });
  A.comm().sum(std::span<double>(sums));
  for (std::size_t j = 0; j < m; ++j) sums[j] = sums[m + j] > 0 ? sums[j] / sums[m + j] : 0;
  sums.resize(m);
  return sums;
}

/// What A does with the rigid-body modes of its nodes, row by row.
struct ModesSeen {
  i64 steady = 0;        ///< rows that map translations to zero, away from nodes that are held
  i64 wrong = 0;         ///< of these, rows that do not map rotations to zero
  i64 by_component = 0;  ///< rows that map translations to zero if the unknowns are ordered component by component
  i64 first_wrong = std::numeric_limits<i64>::max();
};

/// Translations are judged relative to |a| and rotations about the row's own node relative to |a| |x_j - x_i|, so that neither the size of
/// the body nor where it lies matters. Beside held nodes (a row of theirs is mostly its diagonal entry) a rotation may well be resisted
/// where translations are not: a roller.
ModesSeen look_at_modes(Matrix const& A, std::span<double const> xyz, i64 dimension) {
  auto const d = std::size_t(dimension);
  auto const n = A.global_rows(), first = A.domain().begin();
  auto const rows = std::size_t(A.range().local_size());
  auto const column = [&](std::size_t place) { return place < rows ? first + i64(place) : A.ghosts()[place - rows]; };
  ModesSeen seen;
  with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    // the place of each row's node, and whether it is held
    std::vector<double> own(rows * (d + 1), 0.0);
    for (std::size_t r = 0; r < rows; ++r)
      std::copy_n(xyz.begin() + std::ptrdiff_t(r / d * d), d, own.begin() + std::ptrdiff_t(r * (d + 1)));
    double diagonal = 0, others = 0;
    each_row<T>(
        A, [&](std::size_t) { diagonal = others = 0; },
        [&](std::size_t r, std::size_t place, T a) { (place == r ? diagonal : others) += double(magnitude(a)); },
        [&](std::size_t r) {
          if (others < 0.5 * diagonal)
            for (std::size_t c = 0; c < d; ++c) own[(r / d * d + c) * (d + 1) + d] = 1;
        });
    auto const all = with_ghosts<double>(A, own.data(), dimension + 1);
    std::array<std::complex<double>, 3> shift, shift_by_component, turn;
    double size = 0, size_of_turn = 0;
    bool held = false;
    each_row<T>(
        A,
        [&](std::size_t) {
          shift = shift_by_component = turn = {};
          size = size_of_turn = 0;
          held = false;
        },
        [&](std::size_t r, std::size_t place, T value) {
          auto const a = to_complex(value);
          auto const c = std::size_t(column(place) % dimension);
          double const *x = all.data() + place * (d + 1), *center = all.data() + r * (d + 1);
          std::array<double, 3> from{};
          double length = 0;
          for (std::size_t k = 0; k < d; ++k) from[k] = x[k] - center[k], length = std::max(length, std::abs(from[k]));
          shift[c] += a;
          shift_by_component[std::size_t(column(place) / (n / dimension))] += a;
          // component c of the rotation in the plane of axes k, l: -x_l for c = k, x_k for c = l
          for (std::size_t k = 0; k < d; ++k)
            for (std::size_t l = k + 1; l < d; ++l)
              if (c == k || c == l) turn[k + l - 1] += a * (c == k ? -from[l] : from[k]);
          size += std::abs(a);
          size_of_turn += std::abs(a) * length;
          held = held || x[d] != 0;
        },
        [&](std::size_t r) {
          auto const largest = [](auto const& sums) {
            double most = 0;
            for (auto const& s : sums) most = std::max(most, std::abs(s));
            return most;
          };
          if (!(size > 0)) return;
          double const moved = largest(shift) / size;
          seen.by_component += largest(shift_by_component) <= 1e-3 * size;
          if (held || !(moved <= 1e-3) || !(size_of_turn > 0)) return;
          ++seen.steady;
          if (largest(turn) <= (0.01 + 10 * moved) * size_of_turn) return;
          ++seen.wrong;
          seen.first_wrong = std::min(seen.first_wrong, A.range().begin() + i64(r));
        });
  });
  i64 sums[3] = {seen.steady, seen.wrong, seen.by_component};
  A.comm().sum(std::span<i64>(sums));
  return {sums[0], sums[1], sums[2], A.comm().min(seen.first_wrong)};
}

void warn_of_coordinates(Matrix const& A, std::span<double const> xyz, i64 dimension) {
  if (!maps_rows_to_rows(A)) return;
  auto const seen = look_at_modes(A, xyz, dimension);
  if (A.comm().rank() > 0) return;
  if (seen.by_component > A.global_rows() / 10 && seen.by_component > 10 * seen.steady)
    log::warning(
        "coordinates: the matrix's unknowns seem to be ordered component by component, all x before all y, but rigid-body modes of "
        "coordinates are for nodes one after the other, each with its {} unknowns. Reorder the unknowns.",
        dimension);
  else if (double(seen.wrong) > 1e-3 * double(seen.steady))
    log::warning(
        "coordinates: rotations of the body are not nearly zero under the matrix in {} of the {} rows where translations are; the first is "
        "row {}. amg may need more iterations than with the right ones. Are the nodes in the order of the matrix's rows, and x, y{} in the "
        "order of a node's unknowns? If the matrix is not one of elasticity, give near_null_space= or block_size= instead.",
        seen.wrong, seen.steady, seen.first_wrong, dimension == 3 ? ", z" : "");
}

}  // namespace

Vector rigid_body_modes(Space const& space, Dtype dtype) {
  auto const& xyz = space.coordinates();
  auto const d = xyz.columns();
  ASTERISM_REQUIRE(xyz && (d == 2 || d == 3) && space.block_size() == d, shape,
                   "rigid-body modes exist for coordinates in 2 or 3 dimensions and as many unknowns a node; here {} and {}.", xyz ? d : 0,
                   space.block_size());
  auto const m = d == 2 ? 3 : 6;
  // in a plain space, since the space may keep it
  Vector modes(static_cast<comm::Layout const&>(space), dtype, m);
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const b = modes.host<T>();
    auto const places = xyz.host<double>();
    std::fill(b.begin(), b.end(), T(0));
    for (i64 v = 0; v < xyz.local_size(); ++v) {
      auto const* p = places.data() + v * d;
      auto const put = [&](i64 c, i64 mode, double value) { b[std::size_t((v * d + c) * m + mode)] = T(real_t<T>(value)); };
      for (i64 c = 0; c < d; ++c) put(c, c, 1);
      if (d == 2) {
        put(0, 2, -p[1]), put(1, 2, p[0]);
      } else {
        put(0, 3, -p[1]), put(1, 3, p[0]);
        put(1, 4, -p[2]), put(2, 4, p[1]);
        put(2, 5, -p[0]), put(0, 5, p[2]);
      }
    }
  });
  return modes;
}

Vector near_null_space_of(Space const& space, Dtype dtype) {
  if (auto const& given = space.near_null_space()) {
    // those of a matrix that was converted have the dtype from before; its field is changed first, its precision then
    Vector wide(given.space(), with_precision_of(dtype, real_of(given.dtype())), given.columns()),
        modes(given.space(), dtype, given.columns());
    copy(given, wide);
    copy(wide, modes);
    std::vector<int> exponents;  // squares of entries are summed
    for (auto const size : look_at_entries(modes).largest)
      exponents.push_back(size > 0 && (size > 1e75 || size < 1e-75) ? -std::ilogb(size) : 0);
    if (std::any_of(exponents.begin(), exponents.end(), [](int e) { return e != 0; })) scale_by_powers(modes, exponents);
    return modes;
  }
  auto const d = space.coordinates().columns();
  if (space.coordinates() && d == space.block_size() && (d == 2 || d == 3)) return rigid_body_modes(space, dtype);
  return {};
}

void attach_near_null_space(Matrix& A, Vector B) {
  auto const entries = require_finite(B, "near_null_space", "row");
  for (std::size_t j = 0; j < entries.largest.size() && A.global_rows() > 0; ++j)
    ASTERISM_REQUIRE_ALIKE(entries.largest[j] > 0, value, "near_null_space: column {} is zero. Leave it out.", j);
  A.set_space(A.range().with_near_null_space(B));
  if (!maps_rows_to_rows(A)) return;
  auto const images = mean_images(A, B);
  for (std::size_t j = 0; j < images.size(); ++j)
    if (images[j] > 0.3 && A.comm().rank() == 0) {
      log::warning(
          "near_null_space: the matrix does not map column {} to nearly zero: |A b|_i is {} of sum_j |a_ij b_j|, in the mean of all rows "
          "i. amg may need more iterations than with vectors that fit. Are its rows in the order of the matrix's?",
          j, images[j]);
      return;
    }
}

void attach_coordinates(Matrix& A, std::span<double const> xyz, i64 d) {
  auto const layout = A.range();
  comm::agree(layout.comm(), [&] {
    ASTERISM_REQUIRE(d == 2 || d == 3, shape, "coordinates are in {} dimensions; 2 or 3 are needed.", d);
    ASTERISM_REQUIRE(layout.local_size() % d == 0, shape,
                     "coordinates in {} dimensions are for nodes of {} unknowns, but the matrix has {} rows here. Give whole nodes.", d, d,
                     layout.local_size());
    ASTERISM_REQUIRE(
        i64(xyz.size()) == layout.local_size(), shape,
        "coordinates has {} nodes where the matrix has {} rows of {}; ({}, {}) is needed here. Coordinates are for nodes of as "
        "many unknowns as dimensions.",
        i64(xyz.size()) / d, layout.local_size(), d, layout.local_size() / d, d);
  });
  auto const space = layout.with_block_size(d);
  Vector nodes(space.nodes(), Dtype::float64, d);
  std::copy(xyz.begin(), xyz.end(), nodes.host<double>().begin());
  require_finite(nodes, "coordinates", "node");
  A.set_space(space.with_near_null_space({}).with_coordinates(std::move(nodes)));
  warn_of_coordinates(A, xyz, d);
}

}  // namespace asterism::la
