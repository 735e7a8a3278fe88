// Geometric multigrid against dense cycles that are made by the book, from the operators of the levels.
#include <gtest/gtest.h>

#include <cmath>

#include "asterism/grid/star_operator.hpp"
#include "harness/bare.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;
using precond::OperatorPtr;
using std::int64_t;

namespace {

std::shared_ptr<grid::StarOperator const> star(std::vector<int64_t> const& shape, std::vector<bool> const& periodic, Dtype dtype,
                                               double mass = 0) {
  grid::Grid const g(world(), shape, 1, grid::Stencil::star, periodic, {});
  std::array<double, 3> sides{};
  for (auto d = 3 - shape.size(); d < 3; ++d) sides[d] = -1;
  return std::make_shared<grid::StarOperator const>(g, 2.0 * double(shape.size()) + mass, sides, dtype);
}

precond::PreconditionerPtr made(OperatorPtr const& A, std::string const& options) {
  Options all;
  all.parse("-pc_type gmg " + options, OptionLayer::call, "test");
  return solve::Solver(A, {}, nullptr, all).preconditioner();
}

Dense diagonal_inverse(OperatorPtr const& A) {
  auto const d = to_dense(A->diagonal());
  Dense out(d.rows(), d.rows());
  for (int64_t i = 0; i < d.rows(); ++i) out(i, i) = Value(1) / d(i, 0);
  return out;
}

/// Two smoothers as what they make of b from x = 0, before and after.
struct Book {
  std::string options;
  std::function<std::pair<Dense, Dense>(OperatorPtr const& A, int dimensions)> smoother;
  bool symmetric = true;
};

/// m after some steps of x += weights (b - A x) with other weights each.
Dense steps(Dense const& a, std::vector<Dense> const& weights) {
  Dense x(a.rows(), a.cols());
  for (auto const& w : weights) x = x + w * (Dense::identity(a.rows()) - a * x);
  return x;
}

double least(int dimensions) { return 2.0 / std::max(3, 2 * dimensions); }

std::vector<Dense> weights_of_colours(OperatorPtr const& A, double omega) {
  std::vector<Dense> out;
  for (auto const& v : A->colours()) {
    auto const c = to_dense(v);
    auto w = Value(omega) * diagonal_inverse(A);
    for (int64_t i = 0; i < w.rows(); ++i) w(i, i) *= c(i, 0);
    out.push_back(w);
  }
  return out;
}

/// Weights of the steps that have the roots of Chebyshev's polynomial on [lo, hi].
std::vector<Dense> chebyshev_steps(Dense const& d, double lo, double hi, int degree) {
  std::vector<Dense> out;
  for (int k = 0; k < degree; ++k)
    out.push_back(Value(1 / ((hi + lo) / 2 + (hi - lo) / 2 * std::cos((2 * k + 1) * std::acos(-1.0) / (2 * degree)))) * d);
  return out;
}

/// The cycle from a level on; visits: of the next one.
Dense cycle_of(OperatorPtr const& A, Book const& book, int dimensions, int levels, char type) {
  auto const a = columns_of(*A);
  if (levels == 1) return inverse(a);
  auto const next = A->coarse({}).value();
  if (type == 'm') {  // full multigrid: a V cycle from the interpolated solution of the next level
    auto const start = columns_of(*next.P) * cycle_of(next.A, book, dimensions, levels - 1, 'm') * columns_of(*next.R);
    return start + cycle_of(A, book, dimensions, levels, 'v') * (Dense::identity(a.rows()) - a * start);
  }
  auto const p = columns_of(*next.P), r = columns_of(*next.R), one = Dense::identity(a.rows());
  auto const m = cycle_of(next.A, book, dimensions, levels - 1, type);
  auto const ac = columns_of(*next.A), error = Dense::identity(ac.rows()) - m * ac;
  auto coarse = m;
  if (levels > 2 && type != 'v') {
    auto const second = type == 'w' ? m : cycle_of(next.A, book, dimensions, levels - 1, 'v');
    coarse = m + second * (Dense::identity(ac.rows()) - ac * m);
  }
  auto const [before, after] = book.smoother(A, dimensions);
  auto const e = (one - after * a) * (one - p * coarse * r * a) * (one - before * a);
  return (one - e) * inverse(a);
}

std::vector<Book> const& books() {
  static std::vector<Book> const all = {
      {"",
       [](OperatorPtr const& A, int d) {
         auto const m = steps(columns_of(*A), chebyshev_steps(diagonal_inverse(A), least(d), 2, 2));
         return std::pair(m, m);
       }},
      {"-mg_levels_ksp_max_it 3 -mg_levels_up_ksp_max_it 1",
       [](OperatorPtr const& A, int d) {
         auto const of = [&](int k) { return steps(columns_of(*A), chebyshev_steps(diagonal_inverse(A), least(d), 2, k)); };
         return std::pair(of(3), of(1));
       },
       false},
      {"-mg_levels_pc_type jacobi -mg_levels_ksp_max_it 2",
       [](OperatorPtr const& A, int d) {
         auto const w = Value(2 / (2 + 1.0 / d)) * diagonal_inverse(A);
         auto const m = steps(columns_of(*A), {w, w});
         return std::pair(m, m);
       }},
      {"-mg_levels_pc_type jacobi -pc_gmg_omega 0.6",
       [](OperatorPtr const& A, int) {
         auto const m = Value(0.6) * diagonal_inverse(A);
         return std::pair(m, m);
       }},
      {"-mg_levels_pc_type color_sor -mg_levels_ksp_max_it 1",
       [](OperatorPtr const& A, int) {
         auto const a = columns_of(*A);
         auto const red_black = weights_of_colours(A, 1);
         return std::pair(steps(a, red_black), steps(a, {red_black[1], red_black[0]}));
       }},
      {"-ksp_type gmres",
       [](OperatorPtr const& A, int d) {
         auto const a = columns_of(*A);
         auto const red_black = weights_of_colours(A, 1 + 0.05 * d);
         auto const m = steps(a, red_black);
         return std::pair(m, m);
       },
       false},
  };
  return all;
}

}  // namespace

TEST(GeometricMultigrid, IsTheCycleOfTheBook) {
  std::size_t cases = 0;
  for (auto const& book : books())
    for (std::string const type : {"v", "w", "f", "v2", "f2"})
      for (auto const dtype : two_dtypes(cases++)) {
        bool const plane = type.size() == 2;  // three levels of two dimensions, where an F cycle visits nothing twice; else four of one
        auto const A = plane ? star({15, 7}, {false, false}, dtype) : star({63}, {false}, dtype);
        bool const symmetric = book.symmetric && type != "f";
        auto const method = book.options.find("ksp_type gmres") == std::string::npos ? "-ksp_type auto " : "";
        auto const N = made(A, method + book.options + " -pc_gmg_coarse_size 9 -pc_gmg_cycle_type " + type[0]);
        EXPECT_NE(N->describe().find(plane ? "(3 levels)" : "(4 levels)"), std::string::npos) << N->describe();
        auto const want = cycle_of(A, book, plane ? 2 : 1, plane ? 3 : 4, type[0]);
        auto const got = columns_of(*N);
        EXPECT_LT(norm(got - want), 20 * tolerance(dtype) * norm(want)) << book.options << " " << type << " " << name_of(dtype);
        EXPECT_EQ(N->symmetric(), symmetric) << book.options << type;
        if (symmetric || plane) {  // sweeps and F cycles are nearly symmetric on a line
          EXPECT_EQ(norm(got - adjoint(got)) < 20 * tolerance(dtype) * norm(got), symmetric) << book.options << type;
        }
        EXPECT_LT(norm(columns_of_transpose(*N, true) - adjoint(got)), 20 * tolerance(dtype) * norm(got)) << book.options << type;
      }
}

TEST(GeometricMultigrid, IsFullMultigridOfTheBook) {
  for (std::size_t i = 0; i < books().size(); ++i)
    for (bool const plane : {false, true})
      for (auto const dtype : two_dtypes(i + plane)) {
        auto const& book = books()[i];
        auto const A = plane ? star({15, 7}, {false, false}, dtype) : star({63}, {false}, dtype);
        auto const method = book.options.find("ksp_type gmres") == std::string::npos ? "-ksp_type auto " : "";
        auto const N = made(A, method + book.options + " -pc_gmg_coarse_size 9 -pc_gmg_cycle_type full");
        auto const want = cycle_of(A, book, plane ? 2 : 1, plane ? 3 : 4, 'm');
        auto const got = columns_of(*N);
        EXPECT_LT(norm(got - want), 20 * tolerance(dtype) * norm(want)) << book.options << " " << name_of(dtype);
        EXPECT_FALSE(N->symmetric());
        EXPECT_NE(error_of([&] { columns_of_transpose(*N, true); }).find("full multigrid has no adjoint"), std::string::npos);
      }
}

TEST(GeometricMultigrid, FallsBelowAnEighthInACycle) {
  for (auto const& [shape, periodic] : std::vector<std::pair<std::vector<int64_t>, std::vector<bool>>>{
           {{127}, {false}}, {{63, 63}, {false, false}}, {{32, 63}, {true, false}}, {{31, 31, 31}, {false, false, false}}}) {
    auto const A = star(shape, periodic, Dtype::float64);
    Options options;
    options.parse("-ksp_type richardson -pc_type gmg -pc_gmg_coarse_size 60 -ksp_rtol 1e-9 -pc_gmg_measure", OptionLayer::call, "test");
    solve::Solver s(A, {}, nullptr, options);
    la::Vector b(A->range(), A->dtype()), x = b.like();
    fill_hashed(b, 3);
    fill(x, 0.0);
    auto const info = s.solve(b, x);
    EXPECT_TRUE(info.converged) << info.why;
    EXPECT_LE(info.iterations, 10) << "of at most 0.12 each";
    auto const view = s.view();
    for (auto const* const word : {"smoothing  cycle", "dense inverse", "2 colours"}) EXPECT_NE(view.find(word), std::string::npos) << view;
  }
}

TEST(GeometricMultigrid, LastLevels) {
  auto const A = star({27, 27}, {false, false}, Dtype::float64);  // 27, 13, 6
  auto const view = [&](std::string const& options) { return made(A, options)->report(); };
  auto const has = [](std::string const& text, std::string const& word) { EXPECT_NE(text.find(word), std::string::npos) << text; };
  has(view("-pc_gmg_coarse_size 20"), "6 x 6, float64, dense inverse (no coarser grid fits)");
  has(view("-pc_gmg_coarse_size 1"), "no coarser grid fits");
  has(view("-pc_gmg_max_levels 2"), "(2 levels)");
  has(view("-pc_gmg_coarse_size 40 -pc_gmg_coarse_type smoother"), "6 x 6, float64, chebyshev");
  has(view("-ksp_type fgmres -pc_gmg_coarse_size 40 -pc_gmg_coarse_type ksp -mg_coarse_ksp_type cg -mg_coarse_pc_type jacobi"),
      "6 x 6, float64, solver (cg + jacobi)");
  auto const exact = columns_of(*made(A, "-pc_gmg_coarse_size 40"));
  auto const inner = columns_of(*made(A,
                                      "-ksp_type fgmres -mg_levels_ksp_type chebyshev -pc_gmg_coarse_size 40 -pc_gmg_coarse_type ksp "
                                      "-mg_coarse_ksp_type cg -mg_coarse_pc_type jacobi -mg_coarse_ksp_rtol 1e-12"));
  EXPECT_LT(norm(inner - exact), 1e-8 * norm(exact));
  auto const large = star({51, 51}, {false, false}, Dtype::float64);
  auto const M = made(large, "-pc_gmg_max_levels 1");
  has(M->report(), "lu (sparse");
  la::Vector b(large->range(), Dtype::float64), z = b.like(), r = b.like();
  fill_hashed(b, 3);
  M->apply(b, z);
  large->residual(b, z, r);
  EXPECT_LT(norm(r).real(), 1e-11 * norm(b).real());
}

TEST(GeometricMultigrid, SingularProblemsAreProjected) {
  for (auto const* const method : {"cg", "richardson", "gmres"}) {
    auto const A = star({16, 32, 16}, {true, true, true}, Dtype::float64);
    Options options;
    options.parse(std::string("-pc_type gmg -ksp_rtol 1e-9 -ksp_type ") + method, OptionLayer::call, "test");
    solve::Solver s(A, {}, nullptr, options);
    la::Vector b(A->range(), A->dtype()), x = b.like();
    fill_hashed(b, 3);  // with constants in it
    fill(x, 0.0);
    auto const info = s.solve(b, x);
    EXPECT_TRUE(info.converged) << method << " " << info.why;
    EXPECT_LE(info.iterations, 10) << method;
    EXPECT_NE(s.view().find("singular direction"), std::string::npos);
    auto const sum = to_dense(x);
    Value total = 0;
    for (int64_t i = 0; i < sum.rows(); ++i) total += sum(i, 0);
    EXPECT_LT(std::abs(total), 1e-9 * norm(sum) * 128) << method;
  }
}

TEST(GeometricMultigrid, OfANegativeOperator) {
  grid::Grid const g(world(), {31, 31}, 1, grid::Stencil::star, {false, false}, {});
  auto const A = std::make_shared<grid::StarOperator const>(g, -4.0, std::array<double, 3>{0, 1, 1}, Dtype::float64);
  for (auto const* const method : {"auto", "cg", "richardson"}) {
    Options options;
    options.parse(std::string("-pc_type gmg -pc_gmg_coarse_size 60 -ksp_rtol 1e-9 -ksp_type ") + method, OptionLayer::call, "test");
    solve::Solver s(A, {}, nullptr, options);
    EXPECT_NE(s.view().find("-A x = -b is solved"), std::string::npos) << s.view();
    la::Vector b(A->range(), A->dtype()), x = b.like(), r = b.like();
    fill_hashed(b, 3);
    fill(x, 0.0);
    EXPECT_LE(s.solve(b, x).iterations, 10) << method;
    A->residual(b, x, r);
    EXPECT_LT(norm(r).real(), 1.1e-9 * norm(b).real());
  }
}

TEST(GeometricMultigrid, InAnotherPrecision) {
  auto const A = star({31, 31}, {false, false}, Dtype::float64);
  auto const M = made(A, "-pc_dtype float32");
  EXPECT_NE(M->describe().find("in float32"), std::string::npos) << M->describe();
  auto const narrow = columns_of(*M), wide = columns_of(*made(A, ""));
  EXPECT_LT(norm(narrow - wide), 1e-4 * norm(wide));
  EXPECT_GT(norm(narrow - wide), 1e-12 * norm(wide)) << "it is not in float64";
}

TEST(GeometricMultigrid, ErrorsSayWhatToDo) {
  auto const A = star({31, 31}, {false, false}, Dtype::float64);
  auto const text = [](OperatorPtr const& of, std::string const& options) { return error_of([&] { made(of, options); }); };
  auto const has = [](std::string const& t, std::string const& word) { EXPECT_NE(t.find(word), std::string::npos) << word << ": " << t; };
  has(text(star({30, 31}, {false, false}, Dtype::float64), ""), "has no coarser operator");
  has(text(star({295, 295}, {false, false}, Dtype::float64), "-pc_gmg_max_levels 1"), "too many to be solved directly");
  has(text(A, "-mg_levels_pc_type ilu"), "auto, jacobi, color_sor. A level has no entries");
  has(text(A, "-mg_levels_ksp_type chebyshev -pc_gmg_omega 0.7"), "no effect");
  has(text(A, "-mg_levels_ksp_type richardson -mg_levels_ksp_chebyshev_kind first"), "no effect");
  has(text(A, "-pc_gmg_cycle_type x"), "v, w, f, k, full");
  has(text(A, "-ksp_type cg -pc_gmg_coarse_size 9 -pc_gmg_cycle_type f"), "symmetric");
  has(text(A, "-ksp_type cg -pc_gmg_coarse_size 9 -pc_gmg_cycle_type full"), "symmetric");
  auto const odd = star({62, 62}, {true, true}, Dtype::float64, 0.1);
  std::string const smoothed = "-ksp_type gmres -pc_gmg_max_levels 2 -pc_gmg_coarse_type smoother";
  has(text(odd, smoothed + " -mg_levels_pc_type color_sor"), "knows no colours");
  EXPECT_EQ(text(odd, smoothed), "") << "the default is another smoother there";
}
