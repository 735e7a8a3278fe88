// Smoothers and cycles against dense ones that are made by the book.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "asterism/apps/gallery.hpp"
#include "asterism/base/mixed_bits.hpp"
#include "asterism/la/products/matrix_product.hpp"
#include "asterism/precond/multigrid/cycle.hpp"
#include "asterism/precond/multigrid/smoothers/colouring.hpp"
#include "harness/bare.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using precond::ChebyshevKind, precond::CycleType, precond::GridLevel, precond::SmootherPtr, precond::SweepOrder;
using std::int64_t;

namespace {

/// W_k(1 - 2 x / hi) / (2 k + 1) = sin((2 k + 1) t / 2) / ((2 k + 1) sin(t / 2)) with cos t = 1 - 2 x / hi, of x = D^-1 A, by its
/// recurrence W_k = 2 y W_(k - 1) - W_(k - 2); and z so that it is I - z A.
Dense fourth_kind(Dense const& a, Dense const& d, double hi, int degree) {
  auto const one = Dense::identity(a.rows());
  auto const y = one - Value(2 / hi) * (d * a);
  auto before = one, now = Value(2) * y + one;
  for (int k = 1; k < degree; ++k) {
    auto const next = Value(2) * (y * now) - before;
    before = now;
    now = next;
  }
  return (one - Value(1.0 / (2 * degree + 1)) * now) * inverse(a);
}

/// The inverse of a triangle of a: its entries (i, j) that `needs` names, and diagonal(i).
Dense triangle_inverse(Dense const& a, std::function<bool(int64_t, int64_t)> const& needs, std::function<Value(int64_t)> const& diagonal) {
  Dense t(a.rows(), a.cols());
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.cols(); ++j) t(i, j) = i == j ? diagonal(i) : needs(i, j) ? a(i, j) : Value(0);
  return inverse(t);
}

/// Halves a line of n: linear interpolation from every second point.
Dense interpolation(int64_t n) {
  Dense p(n, n / 2);
  for (int64_t c = 0; c < n / 2; ++c) {
    p(2 * c + 1, c) = 1;
    p(2 * c, c) = 0.5;
    if (2 * c + 2 < n) p(2 * c + 2, c) = 0.5;
  }
  return p;
}

Dense line(int64_t n, bool complex, bool hermitian = false) {
  auto a = Dense(n, n);
  for (int64_t i = 0; i < n; ++i) {
    a(i, i) = 2.1;
    if (i == 0) continue;
    a(i, i - 1) = complex ? Value(-0.8, 0.3) : -0.8;
    a(i - 1, i) = hermitian ? std::conj(a(i, i - 1)) : complex ? Value(-1, 0.2) : -1;
  }
  return a;
}

/// Weights of even rows alone, and of odd ones.
std::vector<la::Vector> odd_and_even(la::Vector const& weights) {
  std::vector<la::Vector> out;
  for (int64_t const first : {0, 1}) {
    auto d = to_dense(weights);
    for (int64_t i = 1 - first; i < d.rows(); i += 2) d(i, 0) = 0;
    out.push_back(to_vector(d, weights.space(), weights.dtype()));
  }
  return out;
}

Dense columns(precond::Cycle const& cycle, la::Layout const& layout, Dtype dtype) {
  auto const all = to_vector(Dense::identity(layout.global_size()), layout, dtype);
  auto out = all.like();
  cycle.apply(all, out);
  return to_dense(out);
}

/// Colours of all rows.
std::vector<int64_t> all_colours(la::Matrix const& A, bool symmetric) {
  auto const mine = precond::colours_of(A, symmetric);
  la::Vector v(A.range(), Dtype::float64);
  for (std::size_t i = 0; i < mine.size(); ++i) v.host<double>()[i] = mine[i];
  auto const d = to_dense(v);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < d.rows(); ++i) out.push_back(int64_t(d(i, 0).real()));
  return out;
}

/// A step with that times the inverse diagonal on each side.
std::function<SmootherPtr(la::Matrix const&)> damped(double omega) {
  return [omega](la::Matrix const& A) {
    auto w = A.diagonal();
    precond::invert_entries(w, "test", true);
    scale(omega, w);
    return precond::weighted_steps(w, {1, 1}, "w");
  };
}

/// The Galerkin hierarchy of a line, three levels, the last solved.
std::vector<GridLevel> levels_of(Dense const& a, Dtype dtype, std::function<SmootherPtr(la::Matrix const&)> const& smoother) {
  std::vector<GridLevel> out;
  auto now = a;
  auto layout = uneven(world(), a.rows());
  for (int l = 0; l < 3; ++l) {
    auto const A = to_sparse(now, layout, layout, dtype);
    GridLevel level{std::make_shared<Bare>(A), nullptr, nullptr, nullptr, nullptr};
    if (l == 2) {
      level.solver = std::make_shared<Bare>(to_sparse(inverse(now), layout, layout, dtype));
    } else {
      level.smoother = smoother(A);
      auto const p = interpolation(now.rows());
      auto const coarse = la::Layout::even(world(), p.cols());
      level.P = std::make_shared<Bare>(to_sparse(p, layout, coarse, dtype));
      level.R = std::make_shared<Bare>(to_sparse(adjoint(p), coarse, layout, dtype));
      now = adjoint(p) * now * p;
      layout = coarse;
    }
    out.push_back(level);
  }
  return out;
}

}  // namespace

TEST(Multigrid, TheCycleIsThatOfTheBook) {
  // two levels of operators; the book: smooth, correct, smooth
  struct Case {
    std::string name;
    std::function<SmootherPtr(la::Matrix const&, la::Vector const&)> make;         // weights: 1 / diagonal
    std::function<std::pair<Dense, Dense>(Dense const&, la::Matrix const&)> book;  // what is in x after steps from 0: before, after
  };
  auto const twice = [](Dense s) { return std::pair(s, s); };
  auto const diagonal = [](Dense const& a) {
    return triangle_inverse(a, [](auto, auto) { return false; }, [&](int64_t i) { return a(i, i); });
  };
  auto const polynomial = [&](ChebyshevKind kind, int before, int after) {
    return [=](la::Matrix const&, la::Vector const& w) { return precond::chebyshev_smoother({w, 0.25, 2, 0, kind}, {before, after}, "w"); };
  };
  std::vector<Case> const cases = {
      {"weights", [](la::Matrix const&, la::Vector const& w) { return precond::weighted_steps(w, {2, 2}, "w"); },
       [&](Dense const& a, la::Matrix const&) { return twice(richardson(a, diagonal(a), 2)); }},
      {"weights, other steps after", [](la::Matrix const&, la::Vector const& w) { return precond::weighted_steps(w, {1, 2}, "w"); },
       [&](Dense const& a, la::Matrix const&) { return std::pair(richardson(a, diagonal(a), 1), richardson(a, diagonal(a), 2)); }},
      {"first", polynomial(ChebyshevKind::first, 2, 2),
       [&](Dense const& a, la::Matrix const&) { return twice(chebyshev(a, diagonal(a), 2, 2, 8)); }},
      {"fourth", polynomial(ChebyshevKind::fourth, 3, 1),
       [&](Dense const& a, la::Matrix const&) { return std::pair(fourth_kind(a, diagonal(a), 2, 3), fourth_kind(a, diagonal(a), 2, 1)); }},
      {"fourth, by its recurrence", polynomial(ChebyshevKind::fourth, 17, 1),
       [&](Dense const& a, la::Matrix const&) { return std::pair(fourth_kind(a, diagonal(a), 2, 17), fourth_kind(a, diagonal(a), 2, 1)); }},
      {"first, none before", polynomial(ChebyshevKind::first, 0, 2),
       [&](Dense const& a, la::Matrix const&) { return std::pair(Dense(a.rows(), a.cols()), chebyshev(a, diagonal(a), 2, 2, 8)); }},
      {"a preconditioner",
       [](la::Matrix const& A, la::Vector const&) { return precond::preconditioned_steps(precond::jacobi(A), {2, 1}, 0.7, false); },
       [&](Dense const& a, la::Matrix const&) {
         return std::pair(richardson(a, Value(0.7) * diagonal(a), 2), richardson(a, Value(0.7) * diagonal(a), 1));
       }},
      {"sweeps of colours", [](la::Matrix const& A, la::Vector const&) { return gauss_seidel(A, SweepOrder::colours, {1, 2}, false); },
       [](Dense const& a, la::Matrix const& A) {
         auto const colour = all_colours(A, false);
         auto const at = [colour](int64_t i) { return colour[std::size_t(i)]; };
         auto const d = [&](int64_t i) { return a(i, i); };
         auto const forward = triangle_inverse(a, [&](int64_t i, int64_t j) { return at(j) < at(i); }, d);
         auto const backward = triangle_inverse(a, [&](int64_t i, int64_t j) { return at(j) > at(i); }, d);
         return std::pair(richardson(a, forward, 1), richardson(a, backward, 2));
       }},
      {"steps by colours",
       [](la::Matrix const&, la::Vector const& w) { return precond::coloured_steps(odd_and_even(w), {1, 2}, true, ""); },
       [&](Dense const& a, la::Matrix const&) {
         auto const odd = [](int64_t i) { return i % 2 == 1; };
         auto const d = [&](int64_t i) { return a(i, i); };
         auto const forward = triangle_inverse(a, [&](int64_t i, int64_t j) { return odd(i) && !odd(j); }, d);
         auto const backward = triangle_inverse(a, [&](int64_t i, int64_t j) { return !odd(i) && odd(j); }, d);
         return std::pair(richardson(a, forward, 1), richardson(a, backward, 2));
       }},
      {"the same, forward after too",
       [](la::Matrix const&, la::Vector const& w) { return precond::coloured_steps(odd_and_even(w), {2, 1}, false, ""); },
       [&](Dense const& a, la::Matrix const&) {
         auto const forward =
             triangle_inverse(a, [&](int64_t i, int64_t j) { return i % 2 == 1 && j % 2 == 0; }, [&](int64_t i) { return a(i, i); });
         return std::pair(richardson(a, forward, 2), richardson(a, forward, 1));
       }},
      {"sweeps of ranks", [](la::Matrix const& A, la::Vector const&) { return gauss_seidel(A, SweepOrder::ranks, {2, 1}, false); },
       [](Dense const& a, la::Matrix const& A) {
         auto const& offsets = A.range().offsets();
         auto const rank = [&](int64_t i) { return std::upper_bound(offsets.begin(), offsets.end(), i) - offsets.begin(); };
         auto const d = [&](int64_t i) {
           double others = 0;
           for (int64_t j = 0; j < a.cols(); ++j) others += rank(i) == rank(j) ? 0 : std::abs(a(i, j));
           return a(i, i) * (1 + others / std::abs(a(i, i)));
         };
         auto const forward = triangle_inverse(a, [&](int64_t i, int64_t j) { return j < i && rank(i) == rank(j); }, d);
         auto const backward = triangle_inverse(a, [&](int64_t i, int64_t j) { return j > i && rank(i) == rank(j); }, d);
         return std::pair(richardson(a, forward, 2), richardson(a, backward, 1));
       }},
  };
  for (auto const& c : cases)
    for (auto const dtype : all_dtypes) {
      auto const fine = uneven(world(), 62), coarse = la::Layout::even(world(), 31);
      auto const a = line(62, is_complex(dtype)), p = interpolation(62);
      auto const bare = [&](Dense const& d, la::Layout const& rows, la::Layout const& cols) {
        return std::make_shared<Bare>(to_sparse(d, rows, cols, dtype));
      };
      auto const ac = adjoint(p) * a * p, inverse_of_coarse = inverse(ac);
      auto const A = to_sparse(a, fine, fine, dtype);
      la::Vector w(fine, dtype);
      fill(w, 1 / 2.1);
      GridLevel const first{bare(a, fine, fine), bare(p, fine, coarse), bare(adjoint(p), coarse, fine), c.make(A, w), nullptr};
      GridLevel const last{bare(ac, coarse, coarse), nullptr, nullptr, nullptr, bare(inverse_of_coarse, coarse, coarse)};
      auto const one = Dense::identity(62);
      auto const [before, after] = c.book(a, A);
      auto const e = (one - after * a) * (one - p * inverse_of_coarse * adjoint(p) * a) * (one - before * a);
      auto const want = (one - e) * inverse(a);
      precond::Cycle const cycle({first, last}, CycleType::v);
      EXPECT_LT(norm(columns(cycle, fine, dtype) - want), 20 * tolerance(dtype) * norm(want)) << name_of(dtype) << c.name;
      EXPECT_LT(norm(columns(cycle.adjoint(), fine, dtype) - adjoint(want)), 20 * tolerance(dtype) * norm(want))
          << name_of(dtype) << c.name;
    }
}

TEST(Multigrid, VisitsOfTheCoarseLevels) {
  for (auto const dtype : all_dtypes) {
    auto const a = line(52, is_complex(dtype));
    auto const levels = levels_of(a, dtype, damped(0.7));
    auto const layout = uneven(world(), 52);
    auto const p = interpolation(52), ac = adjoint(p) * a * p, one = Dense::identity(52), half = Dense::identity(26);
    precond::Cycle const below({levels[1], levels[2]}, CycleType::v);
    auto const b = columns(below, la::Layout::even(world(), 26), dtype);
    auto const visited = (half - (half - b * ac) * (half - b * ac)) * inverse(ac);
    Dense d(52, 52);
    for (int64_t i = 0; i < 52; ++i) d(i, i) = 0.7 / 2.1;
    auto const e = [&](Dense const& coarse) { return (one - d * a) * (one - p * coarse * adjoint(p) * a) * (one - d * a); };
    for (auto const& [type, coarse] : {std::pair(CycleType::v, b), std::pair(CycleType::w, visited), std::pair(CycleType::f, visited)}) {
      precond::Cycle const cycle(levels, type);
      auto const want = (one - e(coarse)) * inverse(a);
      EXPECT_LT(norm(columns(cycle, layout, dtype) - want), 20 * tolerance(dtype) * norm(want)) << name_of(dtype) << int(type);
      EXPECT_TRUE(cycle.symmetric());  // of so few levels
    }
  }
}

TEST(Multigrid, KCyclesTakeTwoStepsOfAKrylovMethod) {
  for (bool const hermitian : {false, true})
    for (auto const dtype : all_dtypes) {
      auto const a = line(52, is_complex(dtype), hermitian);
      auto const levels = levels_of(a, dtype, damped(0.6));
      auto const layout = uneven(world(), 52), half = la::Layout::even(world(), 26);
      precond::Cycle const cycle(levels, CycleType::k, hermitian);
      EXPECT_TRUE(cycle.varies() && !cycle.symmetric());
      EXPECT_NE(error_of([&] { (void)cycle.adjoint(); }).find("no adjoint"), std::string::npos);
      auto const p = interpolation(52), ac = adjoint(p) * a * p,
                 m = columns(precond::Cycle({levels[1], levels[2]}, CycleType::v), half, dtype);
      Dense d(52, 52);
      for (int64_t i = 0; i < 52; ++i) d(i, i) = 0.6 / 2.1;
      // three columns at once, one of them zero
      auto rhs = random(52, 3, is_complex(dtype), 5);
      for (int64_t i = 0; i < 52; ++i) rhs(i, 1) = 0;
      Dense want(52, 3);
      for (int64_t j = 0; j < 3; ++j) {
        if (j == 1) continue;
        auto const b = column(rhs, j);
        auto x = d * b;
        auto const r = adjoint(p) * (b - a * x);
        // the best of the span of M r and M (r - t A M r), where t is the best step along M r: in the norm of A, or of the residual
        auto const best = [&](Dense const& span) {
          auto const left = hermitian ? span : ac * span;
          return span * solved(adjoint(left) * ac * span, adjoint(left) * r);
        };
        auto const one = best(m * r);
        x = x + p * best(beside(m * r, m * (r - ac * one)));
        x = x + d * (b - a * x);
        for (int64_t i = 0; i < 52; ++i) want(i, j) = x(i, 0);
      }
      auto const b = to_vector(rhs, layout, dtype);
      auto x = b.like();
      cycle.apply(b, x);
      EXPECT_LT(norm(to_dense(x) - want), 100 * tolerance(dtype) * norm(want)) << name_of(dtype) << hermitian;
    }
}

TEST(Multigrid, OptimalCoefficientsLevelTheBoundOfACycle) {
  // Lottes (2023): x p(x)^2 / (1 - p(x)^2) has the same value at all of its k + 1 maxima in [0, 1], and a smaller one than of the fourth
  // kind
  for (int degree = 1; degree <= precond::most_opt_fourth; ++degree) {
    constexpr int64_t n = 4000;
    auto const layout = la::Layout::even(comm::Communicator(), n);
    la::Vector b(layout, Dtype::float64), w = b.like(), x = b.like(), r = b.like(), t = b.like(), d = b.like();
    Dense at(n, 1);
    for (int64_t i = 0; i < n; ++i) at(i, 0) = i == 0 ? 1e-6 : double(i + 1) / n;
    std::vector<int64_t> offsets(n + 1), diagonal(n);
    for (int64_t i = 0; i < n; ++i) offsets[std::size_t(i) + 1] = i + 1, diagonal[std::size_t(i)] = i;
    std::vector<double> values(n);
    for (int64_t i = 0; i < n; ++i) values[std::size_t(i)] = at(i, 0).real();
    auto const A = la::Matrix::from_rows<int64_t>(layout, layout, Dtype::float64, offsets, diagonal, values.data());
    fill(w, 1.0);
    fill(b, 1.0);
    std::vector<std::vector<double>> bound;
    for (auto const kind : {ChebyshevKind::fourth, ChebyshevKind::opt_fourth}) {
      precond::chebyshev(A, {w, 0, 1, degree, kind}, b, x, r, t, d, true);
      std::vector<double> f;
      for (int64_t i = 0; i < n; ++i) {
        auto const v = values[std::size_t(i)], p = 1 - v * x.host<double>()[std::size_t(i)];
        f.push_back(v * p * p / (1 - p * p));
      }
      bound.push_back(f);
    }
    auto const& f = bound[1];
    std::vector<double> peaks{f.front(), f.back()};
    for (std::size_t i = 1; i + 1 < f.size(); ++i)
      if (f[i] > f[i - 1] && f[i] > f[i + 1]) peaks.push_back(f[i]);
    EXPECT_EQ(peaks.size(), std::size_t(degree) + 1);
    for (auto const peak : peaks) EXPECT_NEAR(peak / peaks[0], 1, 2e-3) << degree;
    auto const most = [](std::vector<double> const& v) { return *std::max_element(v.begin(), v.end()); };
    EXPECT_LT(most(f), most(bound[0]));
    EXPECT_NEAR(most(bound[0]), 1 / (4.0 / 3 * degree * (degree + 1)), 1e-3 * most(bound[0]));
  }
}

TEST(Multigrid, StepsByTheRootsOfAPolynomialAreItsRecurrence) {
  constexpr int64_t n = 200;
  auto const layout = la::Layout::even(comm::Communicator(), n);
  la::Vector b(layout, Dtype::float64), w = b.like(), x = b.like(), r = b.like(), t = b.like(), d = b.like();
  std::vector<int64_t> offsets(n + 1), diagonal(n);
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) {
    offsets[std::size_t(i) + 1] = i + 1, diagonal[std::size_t(i)] = i;
    values[std::size_t(i)] = 3.0 * double(i + 1) / n;
  }
  auto const A = la::Matrix::from_rows<int64_t>(layout, layout, Dtype::float64, offsets, diagonal, values.data());
  fill(w, 1.0);
  fill(b, 1.0);
  for (auto const kind : {ChebyshevKind::first, ChebyshevKind::fourth, ChebyshevKind::opt_fourth})
    for (int64_t degree = 0; degree <= (kind == ChebyshevKind::opt_fourth ? precond::most_opt_fourth : 16); ++degree) {
      precond::ChebyshevPolynomial const p{w, 0.5, 3, degree, kind};
      auto const roots = precond::roots_of(p);
      ASSERT_EQ(roots.size(), std::size_t(degree)) << precond::name_of(kind);
      if (degree == 0) continue;
      precond::chebyshev(A, p, b, x, r, t, d, true);
      for (int64_t i = 0; i < n; ++i) {
        double const v = values[std::size_t(i)], want = x.host<double>()[std::size_t(i)];
        double got = 0;
        for (double const root : roots) got += (1 - v * got) / root;
        EXPECT_NEAR(got, want, 1e-12 / v) << precond::name_of(kind) << " " << degree << " " << v;
      }
    }
}

TEST(Multigrid, ColoursDoNotDependOnTheRanks) {
  for (bool const symmetric : {true, false}) {
    auto a = symmetric ? sparse_positive(61, false, 5) : sparse_general(61, false, 5);
    if (!symmetric)
      for (int64_t i = 0; i + 9 < 61; i += 2) a(i, i + 9) = 0.1;  // in one of the two rows alone
    auto const layout = uneven(world(), 61), alone = la::Layout::even(comm::Communicator(), 61);
    auto const colours = all_colours(to_sparse(a, layout, layout, Dtype::float64), symmetric);
    EXPECT_EQ(colours, all_colours(to_sparse(a, alone, alone, Dtype::float64), symmetric));
    std::set<int64_t> const used(colours.begin(), colours.end());
    EXPECT_EQ(*used.rbegin(), int64_t(used.size()) - 1);
    EXPECT_LE(used.size(), 12u);
    for (int64_t i = 0; i < 61; ++i)
      for (int64_t j = 0; j < i; ++j)
        if (a(i, j) != Value(0) || a(j, i) != Value(0)) {
          EXPECT_NE(colours[std::size_t(i)], colours[std::size_t(j)]) << i << " " << j;
        }
  }
  auto const one = la::Layout::even(world(), 1), none = la::Layout::even(world(), 0);
  EXPECT_EQ(all_colours(to_sparse(Dense::identity(1), one, one, Dtype::float64), true), std::vector<int64_t>{0});
  EXPECT_TRUE(precond::colours_of(to_sparse(Dense(0, 0), none, none, Dtype::float64), true).empty());
}

// A grid whose rows threads share, on four ranks too, with a clique that needs more colours than a word has bits.
TEST(Multigrid, ColoursAreThoseOfOneRowAfterTheOther) {
  auto const grid = apps::poisson(world(), {27, 26, 25}, Dtype::float64);
  auto const n = grid.global_rows();
  std::vector<int64_t> i, j;
  for (int64_t a = 0; a < 100; ++a)
    for (int64_t b = 0; b < 100; ++b) i.push_back(70 * a), j.push_back(70 * b);
  bool const mine = world().rank() == 0;
  std::vector<double> const ones(i.size(), 1.0);
  auto const none = std::span<int64_t const>();
  auto const clique = la::Matrix::from_coo<int64_t>(grid.range(), grid.range(), Dtype::float64, mine ? std::span<int64_t const>(i) : none,
                                                    mine ? std::span<int64_t const>(j) : none, ones.data());
  auto const A = la::sum(1.0, grid, 1.0, clique);
  auto const here = precond::colours_of(A, true), without_symmetry = precond::colours_of(A, false);
  EXPECT_EQ(here, without_symmetry);
  // the colour of each row, after those of the rows before it, by way of one rank
  auto const rows = A.to_rows();
  std::vector<int64_t> got(std::size_t(n), 0);
  for (std::size_t r = 0; r < here.size(); ++r) got[std::size_t(A.range().begin()) + r] = here[r];
  world().sum(std::span<int64_t>(got));
  auto const hash = [](int64_t row) { return mixed_bits(std::uint64_t(row) + 0x9e3779b97f4a7c15u); };
  for (std::size_t r = 0; r + 1 < rows.offsets.size(); ++r) {
    auto const row = A.range().begin() + int64_t(r);
    std::set<int64_t> taken;
    for (auto p = rows.offsets[r]; p < rows.offsets[r + 1]; ++p)
      if (auto const c = rows.columns[std::size_t(p)]; hash(c) < hash(row)) taken.insert(got[std::size_t(c)]);
    int64_t least = 0;
    while (taken.contains(least)) ++least;
    ASSERT_EQ(got[std::size_t(row)], least) << row;
  }
  EXPECT_GE(*std::max_element(got.begin(), got.end()), 99);
}
