// Products, sums and transposes of matrices against dense ones; the same bits on any number of ranks and threads, from a plan too.
#include "asterism/la/products/matrix_product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "asterism/device/host/team.hpp"
#include "asterism/la/products/factors.hpp"
#include "asterism/la/products/galerkin.hpp"
#include "harness/dense.hpp"
#include "harness/world.hpp"

using namespace asterism;
using namespace asterism::la;
using namespace asterism::test;

namespace {

/// A third of the entries, some rows and columns without any.
Dense sparse(std::int64_t rows, std::int64_t cols, bool complex, unsigned seed, double share = 0.3) {
  auto a = random(rows, cols, complex, seed);
  std::mt19937 choose(seed + 99);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      if (i % 7 == 3 || j % 11 == 5 || uniform(choose) > share) a(i, j) = 0;
  return a;
}

struct Case {
  std::int64_t n, m, k;
};
constexpr Case cases[] = {{1, 1, 1}, {5, 3, 4}, {3, 40, 2}, {23, 17, 31}, {60, 2, 60}, {0, 4, 3}, {4, 0, 3}};

void expect_near(Dense const& found, Dense const& wanted, Dtype dtype, char const* what) {
  ASSERT_EQ(found.rows(), wanted.rows());
  ASSERT_EQ(found.cols(), wanted.cols());
  EXPECT_LE(norm(found - wanted), tolerance(dtype) * std::max(1.0, norm(wanted))) << what;
}

bool same_bits(Matrix const& a, Matrix const& b) {
  auto const x = a.to_rows(), y = b.to_rows();
  return x.offsets == y.offsets && x.columns == y.columns && x.dtype == y.dtype &&
         (x.columns.empty() || std::memcmp(x.values.raw(), y.values.raw(), x.columns.size() * size_of(x.dtype)) == 0);
}

/// The same places with other values.
Matrix with_other_values(Matrix const& A) {
  return with_dtype(A.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const rows = A.to_rows();
    std::vector<T> v(rows.values.as<T>(), rows.values.as<T>() + rows.columns.size());
    for (std::size_t p = 0; p < v.size(); ++p) v[p] = v[p] * T(real_t<T>(0.5)) + T(real_t<T>((rows.columns[p] * 31) % 7 + 1));
    return A.with_values(A.dtype(), std::int64_t(v.size()), v.data());
  });
}

Dense in_form(Dense const& a, Form form) { return form == Form::plain ? a : transposed(a, form == Form::conjugate_transposed); }

}  // namespace

TEST(MatrixProduct, OfTwoAndThreeFactorsInEveryForm) {
  for (auto const dtype : all_dtypes)
    for (auto const& c : cases)
      for (auto const form : {Form::plain, Form::transposed, Form::conjugate_transposed}) {
        auto const rows = uneven(world(), c.n), inner = uneven(world(), c.m), columns = comm::Layout::even(world(), c.k);
        bool const plain = form == Form::plain;
        auto const a = plain ? sparse(c.n, c.m, is_complex(dtype), 1) : sparse(c.m, c.n, is_complex(dtype), 1);
        auto const b = plain ? sparse(c.m, c.k, is_complex(dtype), 2) : sparse(c.k, c.m, is_complex(dtype), 2);
        auto const A = plain ? to_sparse(a, rows, inner, dtype) : to_sparse(a, inner, rows, dtype);
        auto const B = plain ? to_sparse(b, inner, columns, dtype) : to_sparse(b, columns, inner, dtype);
        Factor const both[] = {{A, form}, {B, form}};
        auto const C = product(both);
        EXPECT_EQ(C.dtype(), dtype);
        expect_near(to_dense(C), in_form(a, form) * in_form(b, form), dtype, "A B");
        Factor const three[] = {{B, plain ? Form::transposed : Form::plain}, {A, plain ? Form::transposed : Form::plain}, {A, form}};
        auto const R = product(three);
        expect_near(to_dense(R), in_form(b, three[0].form) * in_form(a, three[1].form) * in_form(a, form), dtype, "B' A' A");
      }
}

TEST(MatrixProduct, APlanGivesTheBitsOfTheProductForNewValues) {
  for (auto const dtype : all_dtypes)
    for (auto const& c : cases) {
      auto const rows = uneven(world(), c.n), inner = uneven(world(), c.m);
      auto const A = to_sparse(sparse(c.n, c.n, is_complex(dtype), 3), rows, rows, dtype);
      auto const P = to_sparse(sparse(c.n, c.m, is_complex(dtype), 4), rows, inner, dtype);
      for (auto const form : {Form::transposed, Form::conjugate_transposed}) {
        std::array<Factor, 3> factors{Factor{P, form}, Factor{A, Form::plain}, Factor{P, Form::plain}};
        ProductPlan const plan(factors);
        EXPECT_TRUE(same_bits(plan.first(), product(factors)));
        for (int turn = 0; turn < 2; ++turn) {
          for (auto& f : factors) f.matrix = with_other_values(f.matrix);
          Matrix const now[] = {factors[0].matrix, factors[1].matrix, factors[2].matrix};
          auto const C = plan.multiply(now);
          EXPECT_TRUE(same_bits(C, product(factors)));
          EXPECT_TRUE(C.shares_pattern_with(plan.first()));
        }
        std::array<Factor, 2> const two{factors[0], factors[1]};
        ProductPlan const shorter(two);
        Matrix const old[] = {P, A}, now[] = {factors[0].matrix, factors[1].matrix};
        auto const before = shorter.multiply(old);
        EXPECT_TRUE(same_bits(shorter.multiply(now), shorter.first()));
        EXPECT_TRUE(same_bits(before, product(std::array<Factor, 2>{Factor{P, form}, Factor{A, Form::plain}}))) << "it was changed";
      }
    }
}

// Bits of 1 rank and 1 thread: what a rank finds with matrices of its own.
TEST(MatrixProduct, BitsDependNeitherOnRanksNorOnThreads) {
  auto const alone = comm::Communicator();
  auto const team = device::host::team_size();
  for (auto const dtype : all_dtypes) {
    auto const a = sparse(80, 80, is_complex(dtype), 5), p = sparse(80, 30, is_complex(dtype), 6, 0.1);
    auto const of = [&](comm::Communicator const& comm) {
      auto const rows = uneven(comm, 80), columns = uneven(comm, 30);
      auto const A = to_sparse(a, rows, rows, dtype), P = to_sparse(p, rows, columns, dtype);
      return product(std::array<Factor, 3>{Factor{P, Form::transposed}, Factor{A, Form::plain}, Factor{P, Form::plain}});
    };
    device::host::set_team_size(1);
    auto const wanted = to_dense(of(alone));
    for (int const threads : {1, 2, 3}) {
      device::host::set_team_size(threads);
      auto const found = to_dense(of(world()));
      for (std::int64_t i = 0; i < found.rows(); ++i)
        for (std::int64_t j = 0; j < found.cols(); ++j) EXPECT_EQ(found(i, j), wanted(i, j)) << threads << " threads, " << i << ", " << j;
    }
    device::host::set_team_size(team);
  }
}

// That makes the rows of A P when R asks for them, or forms A P.
TEST(MatrixProduct, TheOneOfTheSetUpHasTheBitsOfThatForUsers) {
  auto const team = device::host::team_size();
  for (auto const dtype : all_dtypes)
    for (auto const& c : cases)
      for (int const threads : {1, 2}) {
        device::host::set_team_size(threads);
        auto const fine = uneven(world(), c.n), coarse = uneven(world(), c.m);
        auto const A = to_sparse(sparse(c.n, c.n, is_complex(dtype), 3), fine, fine, dtype);
        auto const P = to_sparse(sparse(c.n, c.m, is_complex(dtype), 4), fine, coarse, dtype);
        std::array<Factor, 3> const factors{Factor{P, Form::conjugate_transposed}, Factor{A, Form::plain}, Factor{P, Form::plain}};
        auto const found = run_product(world(), dtype, "MatPtAP", "R A P", [&](auto tag, comm::Cancellation& cancel) {
          using T = typename decltype(tag)::type;
          auto const R = rows_of<T>(factors[0], cancel), inner = rows_of<T>(A);
          return matrix_of(triple_product(R, inner, rows_of<T>(P), fine, fine, coarse, cancel), coarse, coarse);
        });
        EXPECT_TRUE(same_bits(found, product(factors)));
      }
  device::host::set_team_size(team);
}

TEST(MatrixProduct, SumsMultiplesAndTransposes) {
  for (auto const dtype : all_dtypes)
    for (auto const& c : cases) {
      auto const rows = uneven(world(), c.n), columns = uneven(world(), c.m);
      auto const a = sparse(c.n, c.m, is_complex(dtype), 7), b = sparse(c.n, c.m, is_complex(dtype), 8);
      auto const A = to_sparse(a, rows, columns, dtype), B = to_sparse(b, rows, columns, dtype);
      expect_near(to_dense(sum(2.0, A, -0.5, B)), Value(2) * a + Value(-0.5) * b, dtype, "sum");
      Value const i(0, 1);
      auto const complex = sum(i, A, 1.0, B);
      EXPECT_TRUE(is_complex(complex.dtype()));
      expect_near(to_dense(complex), i * a + b, dtype, "complex sum");
      expect_near(to_dense(scaled(-3.0, A)), Value(-3) * a, dtype, "multiple");
      expect_near(to_dense(scaled(i, A)), i * a, dtype, "complex multiple");
      for (bool const conjugate : {false, true})
        expect_near(to_dense(transposed(A, conjugate)), test::transposed(a, conjugate), dtype, "transpose");
    }
}

TEST(MatrixProduct, DtypesMixAndBlocksStay) {
  auto const layout = comm::Layout::even(world(), 12);
  auto const a = sparse(12, 12, false, 9), b = sparse(12, 12, true, 10);
  auto A = to_sparse(a, layout, layout, Dtype::float64);
  auto const B = to_sparse(b, layout, layout, Dtype::complex64);
  auto const C = product(std::array<Factor, 2>{Factor{A, Form::plain}, Factor{B, Form::plain}});
  EXPECT_EQ(C.dtype(), Dtype::complex128);
  EXPECT_LE(norm(to_dense(C) - a * b), 1e-5);
}

TEST(MatrixProduct, WhatDoesNotFitIsAnErrorOnAllRanks) {
  auto const layout = comm::Layout::even(world(), 12), other = uneven(world(), 12), longer = comm::Layout::even(world(), 13);
  auto const a = sparse(12, 12, false, 9);
  auto const A = to_sparse(a, layout, layout, Dtype::float64);
  auto const multiply = [](Matrix const& X, Matrix const& Y) {
    return error_of([&] { product(std::array<Factor, 2>{Factor{X, Form::plain}, Factor{Y, Form::plain}}); });
  };
  auto const tall = to_sparse(sparse(13, 12, false, 1), longer, layout, Dtype::float64);
  EXPECT_NE(multiply(A, tall).find("a 12 x 12 matrix times a 13 x 12 matrix"), std::string::npos) << multiply(A, tall);
  EXPECT_NE(error_of([&] { sum(1.0, A, 1.0, tall); }).find("sum of a 12 x 12 and a 13 x 12 matrix"), std::string::npos);
  if (world().size() > 1) {
    auto const moved = to_sparse(a, other, other, Dtype::float64);
    EXPECT_NE(multiply(A, moved).find("am.Redistribution"), std::string::npos) << multiply(A, moved);
    auto const here = world().rank() == 0 ? Form::transposed : Form::plain;
    EXPECT_NE(error_of([&] { product(std::array<Factor, 2>{Factor{A, here}, Factor{A, Form::plain}}); }).find("other ones transposed"),
              std::string::npos);
    EXPECT_NE(error_of([&] { transposed(A, world().rank() == 0); }).find("conjugate is"), std::string::npos);
    EXPECT_NE(error_of([&] { scaled(double(world().rank()), A); }).find("different numbers"), std::string::npos);
    EXPECT_NE(error_of([&] { sum(1.0, A, 1.0, moved); }).find("am.Redistribution"), std::string::npos);
  }
  ProductPlan const plan(std::array<Factor, 2>{Factor{A, Form::plain}, Factor{A, Form::plain}});
  auto const B = to_sparse(sparse(12, 12, false, 10), layout, layout, Dtype::float64);
  EXPECT_NE(error_of([&] { plan.multiply(std::array{A, B}); }).find("factor 2 has entries at other places"), std::string::npos);
  EXPECT_NE(error_of([&] { plan.multiply(std::array{A}); }).find("1 matrices for 2 factors"), std::string::npos);
  EXPECT_NE(error_of([&] { plan.multiply(std::array{A, A.converted(Dtype::complex64)}); }).find("factor 2 is complex64"),
            std::string::npos);
  EXPECT_TRUE(same_bits(plan.multiply(std::array{A, A}), plan.first())) << "after errors";
}
