// lsmr and lsqr against the normal equations.
#include "asterism/krylov/least_squares.hpp"

#include <gtest/gtest.h>

#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::test;

namespace {

using Method = krylov::LeastSquaresInfo (*)(la::Operator const&, la::Vector const&, la::Vector&, krylov::LeastSquaresRule const&,
                                            std::function<void(std::int64_t, double, double)> const&);
std::vector<std::pair<char const*, Method>> const methods = {{"lsmr", krylov::lsmr}, {"lsqr", krylov::lsqr}};

/// min ||b - A x||^2 + damp^2 ||x||^2
Dense normal_equations(Dense const& a, Dense const& b, double damp) {
  return solved(adjoint(a) * a + Value(damp * damp) * Dense::identity(a.cols()), adjoint(a) * b);
}

}  // namespace

TEST(LeastSquares, AnswersAreThoseOfTheNormalEquations) {
  for (auto const& [name, method] : methods)
    for (auto const dtype : {Dtype::float64, Dtype::float32, Dtype::complex128, Dtype::complex64})
      for (auto const& [m, n] : {std::pair<std::int64_t, std::int64_t>{40, 12}, {12, 12}, {5, 1}, {1, 1}})
        for (double const damp : {0.0, 0.7})
          for (bool const even : {true, false}) {
            bool const low = real_of(dtype) == Dtype::float32;
            auto a = random(m, n, is_complex(dtype), 3);
            for (std::int64_t i = 0; i < n; ++i) a(i, i) += 4;  // well conditioned
            auto const b = random(m, 1, is_complex(dtype), 4);
            auto const rows = even ? la::Layout::even(world(), m) : uneven(world(), m);
            auto const columns = even ? la::Layout::even(world(), n) : uneven(world(), n);
            auto const A = to_sparse(a, rows, columns, dtype);
            auto x = to_vector(Dense(n, 1), columns, dtype);
            double last = 0;
            auto const info = method(A, to_vector(b, rows, dtype), x, {damp, low ? 1e-6 : 1e-12, low ? 1e-6 : 1e-12, 1e12, 200},
                                     [&](std::int64_t, double, double normal) { last = normal; });
            auto const what = format("{}, {}, {} x {}, damp {}", name, name_of(dtype), m, n, damp);
            auto const exact = normal_equations(a, b, damp), got = to_dense(x);
            EXPECT_LT(norm(got - exact), (low ? 3e-4 : 1e-9) * (1 + norm(exact))) << what;
            EXPECT_TRUE(info.stop == 1 || info.stop == 2 || info.stop == 4 || info.stop == 5) << what << ", stop " << info.stop;
            double const left = std::hypot(norm(b - a * got), damp * norm(got));
            EXPECT_NEAR(info.residual_norm, left, (low ? 1e-4 : 1e-9) * norm(b)) << what;
            EXPECT_NEAR(info.norm_x, norm(got), 0.02 * norm(got)) << what;
            EXPECT_LT(last, 1e-2 * norm(adjoint(a) * b)) << what;
          }
}

TEST(LeastSquares, TheLeastOfAllAnswersWhereThereAreMany) {
  // more columns than rows: the answer of least norm, A^H (A A^H)^-1 b
  for (auto const& [name, method] : methods)
    for (auto const dtype : {Dtype::float64, Dtype::complex128}) {
      auto const a = random(9, 30, is_complex(dtype), 3), b = random(9, 1, is_complex(dtype), 4);
      auto const rows = uneven(world(), 9), columns = la::Layout::even(world(), 30);
      auto x = to_vector(Dense(30, 1), columns, dtype);
      method(to_sparse(a, rows, columns, dtype), to_vector(b, rows, dtype), x, {0, 1e-13, 1e-13, 1e12, 200}, {});
      EXPECT_LT(norm(to_dense(x) - adjoint(a) * solved(a * adjoint(a), b)), 1e-9) << name;
    }
}

TEST(LeastSquares, NothingToDo) {
  auto const a = random(8, 5, false, 3);
  auto const rows = uneven(world(), 8), columns = uneven(world(), 5);
  auto const A = to_sparse(a, rows, columns, Dtype::float64);
  for (auto const& [name, method] : methods) {
    auto x = to_vector(Dense(5, 1), columns, Dtype::float64);
    auto const info = method(A, to_vector(Dense(8, 1), rows, Dtype::float64), x, {0, 1e-12, 1e-12, 1e12, 50}, {});
    EXPECT_EQ(info.iterations, 0) << name;
    EXPECT_EQ(info.stop, 0) << name;
    EXPECT_EQ(norm(to_dense(x)), 0) << name;
    // b at a right angle to all columns: x = 0 is the answer
    auto const q = orthonormal(beside(a, random(8, 1, false, 9)));
    auto const info2 = method(A, to_vector(column(q, 5), rows, Dtype::float64), x, {0, 1e-10, 1e-10, 1e12, 50}, {});
    EXPECT_LT(norm(to_dense(x)), 1e-10) << name;
    EXPECT_LE(info2.iterations, 2) << name;
  }
}

TEST(LeastSquares, DependentColumnsAndIterationsThatRunOutAreTold) {
  auto a = random(20, 6, false, 3);
  for (std::int64_t i = 0; i < 20; ++i) a(i, 5) = a(i, 4) * (1 + 1e-13 * double(i));
  auto const rows = la::Layout::even(world(), 20), columns = uneven(world(), 6);
  auto const A = to_sparse(a, rows, columns, Dtype::float64);
  auto const b = to_vector(random(20, 1, false, 4), rows, Dtype::float64);
  for (auto const& [name, method] : methods) {
    auto x = to_vector(Dense(6, 1), columns, Dtype::float64);
    EXPECT_EQ(method(A, b, x, {0, 1e-14, 1e-14, 1e8, 2}, {}).stop, 7) << name;
    x = to_vector(Dense(6, 1), columns, Dtype::float64);
    auto const info = method(A, b, x, {0, 1e-15, 1e-15, 10, 500}, {});
    EXPECT_EQ(info.stop, 3) << name;
    EXPECT_GT(info.cond_A, 10) << name;
  }
}
