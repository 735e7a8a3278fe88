// Every method against dense elimination, and against what its theory says of each iterate.
#include "asterism/krylov/method.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

enum class Needs { positive, hermitian, any };

struct Row {
  std::string options;  ///< after -ksp_type
  Needs needs;
  int degree_3;  ///< most iterations where the minimal polynomial of A has degree 3
  std::string pc = "jacobi";
};

// A row for each method, and for each of its variants.
std::vector<Row> const& table() {
  static std::vector<Row> const rows = {
      {"cg", Needs::positive, 3},
      {"cg -ksp_cg_single_reduction", Needs::positive, 3},
      {"pipecg", Needs::positive, 3},
      {"cr", Needs::positive, 3},
      {"minres", Needs::hermitian, 3},
      {"chebyshev", Needs::positive, 0},
      {"gmres", Needs::any, 3},
      {"gmres -ksp_gmres_restart 4", Needs::any, 3},
      {"fgmres", Needs::any, 3},
      {"gcr", Needs::any, 3},
      {"gcr -ksp_gcr_restart 4", Needs::any, 3},
      {"bicg", Needs::any, 3},
      {"bicgstab", Needs::any, 3},
      {"bcgs", Needs::any, 3},
      {"cgs", Needs::any, 3},
      {"tfqmr", Needs::any, 4},
      {"idr", Needs::any, 4},
      {"idr -ksp_idr_s 1", Needs::any, 6},
      {"richardson", Needs::any, 0},
      {"preonly", Needs::any, 0, "lu"},
  };
  return rows;
}

bool single(Dtype d) { return real_of(d) == Dtype::float32; }

/// Hermitian with negative eigenvalues, about as well conditioned as the others.
Dense indefinite(std::int64_t n, bool complex, unsigned seed) {
  auto a = sparse_positive(n, complex, seed);
  for (std::int64_t i = 0; i < n; i += 3) a(i, i) *= -1;
  return a;
}

struct Solved {
  solve::SolveInfo info;
  Dense x;
};
Solved solved_by(la::Matrix const& A, std::string const& options, Dense const& b, Dense const* guess = nullptr) {
  auto s = solver(A, options);
  auto const rhs = to_vector(b, A.range(), A.dtype());
  auto x = to_vector(guess ? *guess : Dense(A.global_cols(), b.cols()), A.domain(), A.dtype());
  auto info = s.solve(rhs, x);
  return {std::move(info), to_dense(x)};
}

/// A with the eigenvalues 1, 2 and 5, of a unitary basis or of another.
Dense of_degree_three(std::int64_t n, bool complex, bool unitary) {
  Dense d(n, n);
  for (std::int64_t i = 0; i < n; ++i) d(i, i) = i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 5;
  if (!unitary) {
    auto const basis = sparse_general(n, complex, 5);
    return basis * d * inverse(basis);
  }
  auto const q = orthonormal(random(n, n, complex, 4));
  auto a = q * d * adjoint(q);
  return Value(0.5) * (a + adjoint(a));
}

/// An orthonormal basis of the Krylov space of M A and M r, of m dimensions.
Dense krylov_space(Dense const& A, Dense const& M, Dense const& r, int m) {
  Dense space;
  auto v = M * r;
  for (int j = 0; j < m; ++j) {
    space = orthonormal(j == 0 ? v : beside(space, v));
    v = M * (A * column(space, j));
  }
  return space;
}

}  // namespace

TEST(Methods, EachHasARow) {
  std::set<std::string> rows;
  for (auto const& row : table()) rows.insert(row.options.substr(0, row.options.find(' ')));
  for (auto const& [name, entry] : krylov::methods()) EXPECT_TRUE(rows.count(name)) << name;
}

namespace {
void check_answer(Row const& row, Dense const& a, la::Layout const& layout, Dtype dtype, std::int64_t k) {
  auto const b = random(a.rows(), k, is_complex(dtype), 3);
  double const rtol = single(dtype) ? 1e-4 : 1e-10;
  auto const pc = row.needs == Needs::hermitian ? "none" : row.pc;  // minres wants a positive definite one
  auto const [info, x] = solved_by(to_sparse(a, layout, layout, dtype),
                                   format("-ksp_type {} -pc_type {} -ksp_rtol {} -ksp_max_it 500", row.options, pc, rtol), b);
  auto const exact = solved(a, b);
  auto const what = format("{}, {}, n {}, k {}", row.options, name_of(dtype), a.rows(), k);
  EXPECT_TRUE(info.converged) << what << " " << info.reason << " " << info.why;
  EXPECT_LT(norm(x - exact), 20 * rtol * norm(exact)) << what;
  ASSERT_EQ(std::int64_t(info.residual_norms.size()), info.iterations + 1) << what;
  ASSERT_EQ(info.true_residual.size(), std::size_t(k)) << what;
  for (std::int64_t j = 0; j < k; ++j) {
    double const size = norm(column(b, j)), left = norm(column(b, j) - a * column(x, j));
    EXPECT_NEAR(info.residual_norms[0][std::size_t(j)], size, 1e-5 * size) << what;
    EXPECT_NEAR(info.true_residual[std::size_t(j)], left, (single(dtype) ? 3e-6 : 1e-13) * size) << what;
    EXPECT_LE(left, 1.1 * rtol * size) << what;
  }
}
}  // namespace

TEST(Methods, AnswersAreThoseOfElimination) {
  struct Size {
    std::int64_t n, k;
    bool even;
  };
  for (auto const& row : table())
    for (auto const dtype : all_dtypes)
      for (auto const& [n, k, even] : {Size{33, 1, true}, {33, 3, false}, {2, 1, false}, {1, 1, true}}) {
        auto const layout = even ? la::Layout::even(world(), n) : uneven(world(), n);
        bool const complex = is_complex(dtype);
        check_answer(row, sparse_positive(n, complex, 7), layout, dtype, k);
        if (row.needs == Needs::any) check_answer(row, sparse_general(n, complex, 8), layout, dtype, k);
        if (row.needs == Needs::hermitian) check_answer(row, indefinite(n, complex, 9), layout, dtype, k);
      }
}

TEST(Methods, TheKrylovSpaceEndsWithTheMinimalPolynomial) {
  // three eigenvalues: three iterations, whatever the size
  for (auto const& row : table()) {
    if (row.degree_3 == 0) continue;
    for (auto const dtype : all_dtypes)
      for (bool const unitary : {true, false}) {
        if (!unitary && row.needs != Needs::any) continue;
        auto const a = of_degree_three(24, is_complex(dtype), unitary);
        auto const layout = la::Layout::even(world(), 24);
        auto const options = format("-pc_type none -ksp_rtol {} -ksp_max_it 60 -ksp_type {}", single(dtype) ? 1e-4 : 1e-9, row.options);
        auto const [info, x] = solved_by(to_sparse(a, layout, layout, dtype), options, random(24, 1, is_complex(dtype), 6));
        EXPECT_TRUE(info.converged) << row.options << " " << name_of(dtype);
        EXPECT_LE(info.iterations, row.degree_3) << row.options << " " << name_of(dtype) << (unitary ? "" : ", not normal");
      }
  }
}

TEST(Methods, ResidualsAreTheSmallestOfTheKrylovSpace) {
  int const steps = 8;
  for (bool const complex : {false, true})
    for (std::string const method : {"gmres", "fgmres", "gcr", "minres", "cr"})
      for (std::string const pc : {"none", "jacobi"}) {
        bool const symmetric = method == "minres" || method == "cr";
        if (symmetric && pc != "none") continue;  // they minimise another norm then
        auto const a = method == "minres" ? indefinite(30, complex, 2)
                       : symmetric        ? sparse_positive(30, complex, 2)
                                          : sparse_general(30, complex, 2);
        auto m = Dense::identity(30);
        for (std::int64_t i = 0; i < 30 && pc == "jacobi"; ++i) m(i, i) = 1.0 / a(i, i);
        auto const b = random(30, 1, complex, 11);
        auto const layout = la::Layout::even(world(), 30);
        auto const A = to_sparse(a, layout, layout, complex ? Dtype::complex128 : Dtype::float64);
        auto const info = solved_by(A, format("-ksp_type {} -pc_type {} -ksp_rtol 1e-14 -ksp_max_it {}", method, pc, steps), b).info;
        for (int j = 1; j <= std::min<int>(steps, int(info.iterations)); ++j) {
          auto const w = a * krylov_space(a, m, b, j);
          auto const left = norm(b - w * solved(adjoint(w) * w, adjoint(w) * b));
          EXPECT_NEAR(info.residual_norms[std::size_t(j)][0], left, 1e-9 * norm(b)) << method << " " << pc << " " << j;
        }
      }
}

TEST(Methods, ResidualsOfConjugateGradientsAreOrthogonalToTheKrylovSpace) {
  // bicg is cg where A is Hermitian and its two vectors begin alike
  int const steps = 8;
  for (bool const complex : {false, true})
    for (std::string const method : {"cg", "cg -ksp_cg_single_reduction", "pipecg", "bicg"})
      for (std::string const pc : {"none", "jacobi"}) {
        auto const a = sparse_positive(30, complex, 2);
        auto m = Dense::identity(30);
        for (std::int64_t i = 0; i < 30 && pc == "jacobi"; ++i) m(i, i) = 1.0 / a(i, i);
        auto const b = random(30, 1, complex, 11);
        auto const layout = uneven(world(), 30);
        auto const A = to_sparse(a, layout, layout, complex ? Dtype::complex128 : Dtype::float64);
        auto const info = solved_by(A, format("-ksp_type {} -pc_type {} -ksp_rtol 1e-14 -ksp_max_it {}", method, pc, steps), b).info;
        for (int j = 1; j <= std::min<int>(steps, int(info.iterations)); ++j) {
          auto const space = krylov_space(a, m, b, j);
          auto const left = norm(b - a * (space * solved(adjoint(space) * a * space, adjoint(space) * b)));
          EXPECT_NEAR(info.residual_norms[std::size_t(j)][0], left, 1e-8 * norm(b)) << method << " " << pc << " " << j;
        }
      }
}

TEST(Methods, StationaryMethodsFollowTheirPolynomials) {
  auto const a = sparse_positive(30, false, 2);
  auto const b = random(30, 2, false, 11);
  auto m = Dense::identity(30);
  for (std::int64_t i = 0; i < 30; ++i) m(i, i) = 1.0 / a(i, i);
  auto const layout = uneven(world(), 30);
  auto const A = to_sparse(a, layout, layout, Dtype::float64);
  {
    auto const info = solved_by(A, "-ksp_type richardson -ksp_richardson_scale 0.8 -pc_type jacobi -ksp_rtol 0 -ksp_max_it 9", b).info;
    auto r = b;
    for (std::size_t it = 0; it <= 9; ++it, r = r - Value(0.8) * (a * (m * r)))
      for (std::size_t j = 0; j < 2; ++j)
        EXPECT_NEAR(info.residual_norms[it][j], norm(column(r, std::int64_t(j))), 1e-10) << it << " " << j;
  }
  {
    double const lo = 0.2, hi = 1.9, theta = (hi + lo) / 2, delta = (hi - lo) / 2;
    auto const info =
        solved_by(A, "-ksp_type chebyshev -ksp_chebyshev_min 0.2 -ksp_chebyshev_max 1.9 -pc_type jacobi -ksp_rtol 0 -ksp_max_it 9", b).info;
    // r_k = T_k((theta - A M) / delta) r_0 / T_k(theta / delta)
    auto const shifted = [&](Dense const& v) { return Value(1 / delta) * (Value(theta) * v - a * (m * v)); };
    Dense before = b, now = shifted(b);
    double t_before = 1, t_now = theta / delta;
    for (std::size_t it = 1; it <= 9; ++it) {
      for (std::size_t j = 0; j < 2; ++j)
        EXPECT_NEAR(info.residual_norms[it][j], norm(column(now, std::int64_t(j))) / t_now, 1e-10) << it << " " << j;
      auto const next = Value(2) * shifted(now) - before;
      double const t_next = 2 * theta / delta * t_now - t_before;
      before = now, now = next, t_before = t_now, t_now = t_next;
    }
  }
}

TEST(Methods, NothingToDo) {
  auto const a = sparse_positive(20, false, 2);
  auto const layout = uneven(world(), 20);
  auto const A = to_sparse(a, layout, layout, Dtype::float64);
  auto const exact = random(20, 1, false, 3);
  for (auto const& row : table()) {
    auto const options = format("-ksp_type {} -pc_type {} -ksp_rtol 1e-8 -ksp_max_it 50", row.options, row.pc);
    auto const zero = solved_by(A, options, Dense(20, 1));
    EXPECT_TRUE(zero.info.converged) << row.options;
    EXPECT_EQ(norm(zero.x), 0) << row.options;
    auto const guessed = solved_by(A, options, a * exact, &exact);
    EXPECT_TRUE(guessed.info.converged) << row.options;
    EXPECT_LT(norm(guessed.x - exact), 1e-12) << row.options;
    EXPECT_EQ(guessed.info.iterations, 0) << row.options;
    auto const empty = solved_by(to_sparse(Dense(0, 0), la::Layout(world(), 0), la::Layout(world(), 0), Dtype::float64),
                                 options + " -ksp_check_input false", Dense(0, 1));
    EXPECT_TRUE(empty.info.converged) << row.options;
  }
}

TEST(Methods, WhatCannotGoOnEndsWithAFiniteAnswer) {
  // skew: (r, A r) = 0, where many divide by it. Singular: the last row is zero, and b is not in the range
  Dense skew(20, 20), singular = sparse_general(20, false, 3);
  for (std::int64_t i = 0; i < 20; i += 2) skew(i, i + 1) = 1, skew(i + 1, i) = -1;
  for (std::int64_t j = 0; j < 20; ++j) singular(19, j) = singular(j, 19) = 0;
  auto const layout = la::Layout::even(world(), 20);
  auto const b = random(20, 1, false, 3);
  // to be emptied: x grows without bound where A is singular
  std::set<std::string> const not_yet = {"bicgstab", "bcgs"};
  for (auto const& row : table()) {
    if (row.options == "preonly") continue;
    for (auto const* matrix : {&skew, &singular}) {
      if (matrix == &singular && not_yet.count(row.options)) continue;
      auto const A = to_sparse(*matrix, layout, layout, Dtype::float64);
      auto const [info, x] =
          solved_by(A, format("-ksp_type {} -pc_type none -ksp_rtol 1e-8 -ksp_max_it 100 -ksp_check_input false", row.options), b);
      auto const left = norm(b - *matrix * x), size = norm(x);
      EXPECT_TRUE(std::isfinite(size)) << row.options << " " << info.reason;
      EXPECT_EQ(info.converged, left <= 1.01e-8 * norm(b)) << row.options << " " << info.reason << " " << left;
      EXPECT_FALSE(info.converged && matrix == &singular) << row.options;
      EXPECT_EQ(info.converged, info.why.empty()) << row.options << " " << info.reason;
      EXPECT_EQ(world().max(std::int64_t(info.iterations)), info.iterations) << row.options;
      // what is told of the answer is true
      EXPECT_NEAR(info.true_residual[0], left, 1e-10 * (norm(b) + size)) << row.options;
    }
  }
}

TEST(Methods, IndefiniteMatricesAndPreconditionersAreNamed) {
  auto const layout = uneven(world(), 24);
  auto const b = random(24, 1, false, 3);
  auto const A = to_sparse(indefinite(24, false, 5), layout, layout, Dtype::float64);
  for (std::string const method : {"cg", "cg -ksp_cg_single_reduction"})
    EXPECT_EQ(solved_by(A, "-pc_type none -ksp_check_input false -ksp_type " + method, b).info.reason, "DIVERGED_INDEFINITE_MAT") << method;
  EXPECT_EQ(solved_by(A, "-pc_type none -ksp_check_input false -ksp_type pipecg", b).info.converged, false);
  // jacobi of a matrix with diagonal entries of both signs, for a positive definite A
  Dense signs(24, 24);
  for (std::int64_t i = 0; i < 24; ++i) signs(i, i) = i % 2 ? 1 : -1;
  auto const P = to_sparse(signs, layout, layout, Dtype::float64);
  auto const positive = std::make_shared<la::Matrix>(to_sparse(sparse_positive(24, false, 5), layout, layout, Dtype::float64));
  for (std::string const method : {"cg", "minres", "cr", "pipecg"}) {
    Options o;
    o.parse("-pc_type jacobi -ksp_check_input false -ksp_type " + method, OptionLayer::call, "test");
    solve::Solver s(positive, P, nullptr, o);
    auto x = to_vector(Dense(24, 1), layout, Dtype::float64);
    auto const info = s.solve(to_vector(b, layout, Dtype::float64), x);
    EXPECT_FALSE(info.converged) << method;
    if (method != "pipecg") {
      EXPECT_EQ(info.reason, "DIVERGED_INDEFINITE_PC") << method;
    }
  }
}

TEST(Methods, ColumnsDoNotTouchEachOther) {
  // one that is zero, one that is done at once, one that takes long: each as by itself
  auto const a = sparse_general(40, true, 2), p = sparse_positive(40, true, 2);
  auto const layout = uneven(world(), 40);
  for (auto const& row : table()) {
    auto const& m = row.needs == Needs::any ? a : p;
    auto const A = to_sparse(m, layout, layout, Dtype::complex128);
    auto const exact = beside(beside(Dense(40, 1), column(Dense::identity(40), 7)), random(40, 1, true, 5));
    auto const options = format("-ksp_type {} -pc_type {} -ksp_rtol 1e-9 -ksp_max_it 300", row.options, row.pc);
    auto const together = solved_by(A, options, m * exact);
    EXPECT_TRUE(together.info.converged) << row.options;
    EXPECT_EQ(norm(column(together.x, 0)), 0) << row.options;
    for (std::int64_t j = 1; j < 3; ++j)
      EXPECT_LT(norm(column(together.x, j) - column(exact, j)), 1e-7 * norm(column(exact, j))) << row.options << " " << j;
  }
}
